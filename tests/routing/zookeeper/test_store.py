"""The route store on ZooKeeper: the contract, on a real server, and its start."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING

import pytest
from kazoo.exceptions import NoAuthError
from msgspec.structs import replace
from structlog.testing import capture_logs

from ropeway.routing.api import RouteStoreUnavailableError
from ropeway.routing.zookeeper import ZooKeeperSettings, store
from ropeway.routing.zookeeper import open_routes as open_at
from ropeway.routing.zookeeper.local_copy import RouteCopy
from tests.contracts.routes import ORDERS, SeveralNodesContract, grow, put_topic, until
from tests.routing.zookeeper.helpers import opened

if TYPE_CHECKING:
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

IMPATIENT = ZooKeeperSettings(session_s=2.0, wait_s=1.0)
real_read = RouteCopy._read_all


class TestZooKeeperRoutes(SeveralNodesContract):
    @pytest.fixture
    def open_routes(self, chroot: str):
        return lambda: open_at(chroot)


def test_a_refresh_brings_what_another_changed_just_now(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            for count in range(1, 11):
                await grow(first, 1)
                await second.refresh()
                assert second.topics["count"].read_queue_nums == count

    asyncio.run(main())


def test_what_servers_refuse_to_tell_is_asked_for_again_and_said_once(
    chroot: str, monkeypatch
):
    monkeypatch.setattr(store, "RETRY_S", 0.01)

    async def main():
        async with opened(chroot, 2) as (first, second):
            get = first._session.get
            asked = []

            async def refuse(*arguments):
                asked.append(arguments)
                if len(asked) > 2:
                    first._session.get = get
                raise NoAuthError

            for name in ("one", "two"):
                asked.clear()
                first._session.get = refuse
                with capture_logs() as logs:
                    await put_topic(second, replace(ORDERS, name=name, route={}))
                    await until(lambda: name in first.topics)  # noqa: B023
                    await until(lambda: len(logs) == 2)
                assert [(one["event"], one.get("reason")) for one in logs] == [
                    ("routes may be out of date", "NoAuthError"),
                    ("routes are up to date again", None),
                ]

    asyncio.run(main())


def test_a_fault_that_nobody_foresaw_is_told_and_routes_are_followed_on(
    chroot: str, monkeypatch
):
    monkeypatch.setattr(store, "RETRY_S", 0.01)

    async def main():
        async with opened(chroot, 2) as (first, second):
            get = first._session.get

            async def fail(*_):
                first._session.get = get
                raise ValueError("a fault of this test")

            first._session.get = fail
            with capture_logs() as logs:
                await put_topic(second, replace(ORDERS, name="one", route={}))
                await until(lambda: "one" in first.topics)
            assert [one["log_level"] for one in logs] == ["error"]

    asyncio.run(main())


def test_a_start_makes_the_path_that_it_is_given(chroot: str):
    async def main():
        async with opened(f"{chroot}/of/a/cluster", 2) as (first, second):
            await put_topic(first, ORDERS)
            await until(lambda: second.topics == {"orders": ORDERS})

    asyncio.run(main())


def test_a_start_reads_for_as_long_as_it_takes(chroot: str, monkeypatch):
    async def slow_read(copy: RouteCopy) -> None:
        await asyncio.sleep(3 * IMPATIENT.wait_s)
        await real_read(copy)

    async def main():
        async with opened(chroot) as (routes,):
            await put_topic(routes, ORDERS)
        monkeypatch.setattr(RouteCopy, "_read_all", slow_read)
        async with opened(chroot, 1, IMPATIENT) as (routes,):
            assert routes.topics == {"orders": ORDERS}

    asyncio.run(main())


def test_a_start_gives_up_when_the_servers_go_meanwhile(
    chroot: str, zookeeper: ZooKeeper, monkeypatch
):
    async def interrupted_read(copy: RouteCopy) -> None:
        stopped.enter_context(zookeeper.paused())
        await real_read(copy)

    async def main():
        with pytest.raises(RouteStoreUnavailableError, match="cannot be read"):
            await open_at(chroot, IMPATIENT)

    with ExitStack() as stopped:
        monkeypatch.setattr(RouteCopy, "_read_all", interrupted_read)
        asyncio.run(main())


@pytest.mark.parametrize("session_s", [None, 3.0])
def test_a_store_is_opened_as_its_settings_say(chroot: str, session_s: float | None):
    given = None if session_s is None else ZooKeeperSettings(session_s=session_s)

    async def main():
        routes = await open_at(chroot, given)
        try:
            expected = session_s or ZooKeeperSettings().session_s
            assert routes._session.timeout_s == pytest.approx(expected, abs=0.01)
        finally:
            await routes.close()

    asyncio.run(main())


@pytest.mark.parametrize("away", ["closed", "no server"])
def test_who_has_no_connection_answers_at_once_from_what_is_known(
    chroot: str, zookeeper: ZooKeeper, away: str
):
    async def main():
        async with opened(chroot) as (routes,), AsyncExitStack() as stack:
            await put_topic(routes, ORDERS)
            if away == "closed":
                await routes.close()
            else:
                stack.enter_context(zookeeper.paused())
                await until(lambda: not routes._session.is_connected)
            with capture_logs() as logs:
                assert await routes.find_topic("orders") == ORDERS
                assert await routes.find_topic("other") is None
            assert not routes._finding
            assert not logs

    asyncio.run(main())
