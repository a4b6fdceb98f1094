"""Places that are route stores, that become some, and that are refused."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.routing.api import NoRoutesError, RouteError
from ropeway.routing.zookeeper import open_routes
from tests.routing.zookeeper.helpers import opened, raw

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def refused(url: str, match: str) -> None:
    async def main():
        with pytest.raises(RouteError, match=match):
            await open_routes(url)

    asyncio.run(main())


def test_a_place_that_holds_something_else_is_refused_and_left_alone(chroot: str):
    async def put(*names: str):
        async with raw(chroot) as client:
            for name in names:
                client.create(f"/{name}")

    asyncio.run(put("b", "c", "a"))
    refused(chroot, r"is not a route store: it holds a, b, c; allowed: a path")
    asyncio.run(put("d"))
    refused(chroot, r"is not a route store: it holds a, b, c, \.\.\.; allowed: a path")

    async def look():
        async with raw(chroot) as client:
            assert sorted(client.get_children("/")) == ["a", "b", "c", "d"]

    asyncio.run(look())


@pytest.mark.parametrize("version", ["2", "", "one"])
def test_another_version_is_refused(chroot: str, version: str):
    async def main():
        async with opened(chroot):
            pass
        async with raw(chroot) as client:
            client.set("/version", version.encode())

    asyncio.run(main())
    refused(chroot, f"/version in ZooKeeper has format '{version}'; this program reads")


def test_many_may_make_a_store_at_the_same_time(chroot: str):
    async def main():
        stores = await asyncio.gather(*(open_routes(chroot) for _ in range(5)))
        for one in stores:
            assert one.topics == {}
            await one.close()

    asyncio.run(main())


def test_a_store_that_lost_a_folder_is_refused(chroot: str):
    async def main():
        async with opened(chroot):
            pass
        async with raw(chroot) as client:
            client.delete("/changes")

    asyncio.run(main())
    refused(chroot, "ZooKeeper refuses .*: NoNodeError")


def test_who_only_looks_makes_nothing(chroot: str):
    async def main():
        with pytest.raises(NoRoutesError, match="in ZooKeeper holds nothing"):
            await open_routes(chroot, make=False)
        async with raw(chroot) as client:
            assert client.get_children("/") == []
        async with opened(chroot):
            routes = await open_routes(chroot, make=False)
            await routes.close()

    asyncio.run(main())
