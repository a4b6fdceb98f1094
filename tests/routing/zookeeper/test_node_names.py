"""A node's name is one process's: who is refused, who waits, and who comes back."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from ropeway.routing.api import Broker, NameTakenError, RouteStoreUnavailableError
from ropeway.routing.zookeeper import ZooKeeperRoutes, ZooKeeperSettings
from ropeway.routing.zookeeper.session import LostError
from tests.contracts.routes import node, until
from tests.routing.zookeeper.helpers import expire, opened, raw
from tests.system.test_routes import holder

if TYPE_CHECKING:
    from kazoo.client import KazooClient

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SHORT = ZooKeeperSettings(session_s=4.0)
"""Whoever lives is waited for until twice that is over. Of a second, a busy machine
ended those of who lived."""


def process(name: str, incarnation: str) -> Broker:
    return replace(node(name), incarnation=incarnation, addresses=(incarnation,))


A, COPY, B = process("a", "1st"), process("a", "2nd"), process("b", "3rd")


def order(routes: ZooKeeperRoutes) -> tuple[Broker, ...]:
    return routes.brokers.get("broker-0", ())


def delete(client: KazooClient, name: str) -> None:
    """Take a node's place away, as people do by hand."""
    (path,) = (
        one for one in client.get_children("/brokers/broker-0") if one[0] == name
    )
    client.delete(f"/brokers/broker-0/{path}")


def test_a_name_that_a_living_process_has_is_refused_with_its_address(chroot: str):
    async def main():
        async with opened(chroot, 2, SHORT) as (first, second):
            await first.put_broker(A)
            with capture_logs() as logs, pytest.raises(NameTakenError) as error:
                await second.put_broker(COPY)
            assert "node a of broker broker-0 runs already" in str(error.value)
            assert "process 1 at 1st" in str(error.value)
            (line,) = logs
            assert line["event"].startswith("another process has the name")
            assert line["addresses"] == ("1st",)
            assert order(first) == order(second) == (A,)
            await until(lambda: first.held_until_s > time.monotonic())
            # The same name on another broker is another node.
            await second.put_broker(replace(COPY, name="broker-1"))

    asyncio.run(main())


def test_a_process_that_was_killed_is_waited_for_and_then_its_name_is_free(
    chroot: str,
):
    async def main():
        async with opened(chroot, 1, SHORT) as (routes,):
            with holder(chroot, "a", SHORT.session_s) as killed:
                killed.kill()
                with capture_logs() as logs:
                    await routes.put_broker(replace(COPY, name="b"))
            assert [one.incarnation for one in routes.brokers["b"]] == ["2nd"]
            assert [one["process"] for one in logs] == [killed.pid]
            await until(lambda: routes.held_until_s > time.monotonic())

    asyncio.run(main())


def test_of_two_that_come_at_the_same_moment_one_stays(chroot: str):
    async def main():
        async with opened(chroot, 3, SHORT) as (first, second, third):
            tried = await asyncio.gather(
                first.put_broker(A), second.put_broker(COPY), return_exceptions=True
            )
            assert [type(one) for one in tried if one] == [NameTakenError]
            stayed = A if tried[0] is None else COPY
            for one in (first, second, third):
                await until(lambda: order(one) == (stayed,))  # noqa: B023

    asyncio.run(main())


def test_a_rival_that_is_announced_between_a_look_and_the_announcement_stays(
    chroot: str,
):
    async def main():
        async with opened(chroot, 2, SHORT) as (first, second):
            commit = second._session.commit

            async def late(transaction):
                second._session.commit = commit
                await first.put_broker(A)
                return await commit(transaction)

            second._session.commit = late
            with pytest.raises(NameTakenError):
                await second.put_broker(COPY)
            await until(lambda: order(first) == order(second) == (A,))

    asyncio.run(main())


@pytest.mark.parametrize("name", ["a", "b"])
def test_who_loses_its_place_by_hand_comes_back_as_the_last(chroot: str, name: str):
    async def main():
        async with opened(chroot, 2) as (first, second), raw(chroot) as client:
            await first.put_broker(A)
            await second.put_broker(B)
            await until(lambda: order(first) == (A, B))
            loser = first if name == "a" else second
            held = []
            loser.watch_brokers(lambda _: held.append(loser.held_until_s))
            delete(client, name)
            expected = (B, A) if name == "a" else (A, B)
            for _ in range(3):
                await until(lambda: len(held) > 1)
                await until(lambda: order(first) == order(second) == expected)
            # It knew that its place was free before it knew anything else.
            assert held[0] == -math.inf
            await until(lambda: loser.held_until_s > time.monotonic())

    asyncio.run(main())


def test_who_was_removed_as_dead_and_is_not_comes_back(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await first.put_broker(A)
            with capture_logs() as logs:
                await second.remove_broker("broker-0", "a")
                await until(lambda: logs)
                await until(lambda: order(first) == order(second) == (A,))
            assert [one["event"] for one in logs] == ["this node lost its place"]
            # It may still be about to be announced again.
            await first.remove_broker("broker-0", "a")
            assert order(first) == ()
            assert not first._names.returning
            await expire(first)
            await first.put_broker(replace(A, name="broker-1"))
            await until(lambda: set(second.brokers) == {"broker-1"})

    asyncio.run(main())


def test_one_process_is_removed_and_another_of_its_name_stays(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):
            await routes.put_broker(A)
            await routes.remove_broker("broker-0", "a", COPY.incarnation)
            assert order(routes) == (A,)
            await routes.remove_broker("broker-0", "a", A.incarnation)
            assert order(routes) == ()

    asyncio.run(main())


def test_who_comes_back_to_a_name_that_was_taken_waits_and_then_has_to_end(chroot: str):
    async def main():
        async with opened(chroot, 2, SHORT) as (first, second):
            lost: list[str] = []
            first.watch_names(lost.append)
            await first.put_broker(A)
            coming = asyncio.create_task(second.put_broker(COPY))
            await expire(first)
            # Both may have come at the same moment: whoever was first.
            await asyncio.wait([coming])
            if coming.exception() is not None:
                await until(lambda: order(first) == order(second) == (A,))
                return
            await until(lambda: order(first) == (COPY,))
            assert first.held_until_s == -math.inf
            await until(lambda: lost)
            assert "process 1 at 2nd" in lost[0]
            assert order(second) == (COPY,)

    asyncio.run(main())


def test_who_waits_for_its_own_name_has_it_when_the_copy_stops(chroot: str):
    async def main():
        async with opened(chroot, 2, SHORT) as (first, second):
            lost: list[str] = []
            first.watch_names(lost.append)
            await first.put_broker(A)
            place = first._brokers
            real, refused = place.put, asyncio.Event()

            async def put(broker: Broker) -> Broker | None:
                # The copy is faster.
                await second.put_broker(COPY)
                place.put = watched
                return await watched(broker)

            async def watched(broker: Broker) -> Broker | None:
                rival = await real(broker)
                if rival:
                    refused.set()
                return rival

            place.put = put
            await expire(first)
            await refused.wait()
            await second.close()
            await until(lambda: order(first) == (A,))
            await until(lambda: first.held_until_s > time.monotonic())
            assert not lost

    asyncio.run(main())


def test_what_goes_with_nobodys_session_is_replaced(chroot: str):
    async def main():
        async with opened(chroot) as (routes,), raw(chroot) as client:
            client.ensure_path("/brokers/broker-0")
            for content in (b"{", b'{"name":"broker-0","node":"a"}'):
                client.create("/brokers/broker-0/a,", content, sequence=True)
            await routes.put_broker(A)
            assert order(routes) == (A,)
            assert len(client.get_children("/brokers/broker-0")) == 1

    asyncio.run(main())


def test_a_node_that_cannot_be_announced_again_is_so_later(chroot: str):
    async def main():
        settings = ZooKeeperSettings(session_s=2.0, wait_s=0.5)
        async with opened(chroot, 2, settings) as (first, second):
            await first.put_broker(A)
            place = first._brokers
            real = place.put

            async def silent(_: Broker) -> Broker | None:
                await asyncio.sleep(0.01)
                raise LostError("a fault of this test")

            place.put = silent
            with pytest.raises(RouteStoreUnavailableError):
                await first.put_broker(A)
            place.put = real
            await first.put_broker(A)
            place.put = silent
            await second.remove_broker("broker-0", "a")
            with capture_logs() as logs:
                await until(
                    lambda: (
                        "this node is not announced" in [one["event"] for one in logs]
                    )
                )
            place.put = real
            await until(lambda: order(second) == (A,))

    asyncio.run(main())
