"""Nodes of brokers: through lost sessions, and seen by all in one order."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import pytest
from kazoo.exceptions import NoNodeError
from structlog.testing import capture_logs

from ropeway.routing.zookeeper.session import LostError
from tests.contracts.routes import node, until
from tests.routing.zookeeper.helpers import expire, opened, raw

if TYPE_CHECKING:
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

A, B = node("a"), node("b")


def test_a_node_whose_session_has_ended_comes_back_as_the_last(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            other = node("a", "broker-1")
            await first.put_broker(A)
            await first.put_broker(other)
            await second.put_broker(B)
            await until(lambda: first.brokers["broker-0"] == (A, B))
            held = []
            first.watch_brokers(
                lambda name: held.append(
                    (name, first.brokers.get(name), first.held_until_s)
                )
            )
            await expire(first)
            expected = {"broker-0": (B, A), "broker-1": (other,)}
            await until(lambda: first.brokers == second.brokers == expected)
            # It knew that it was no master before it knew of anything else.
            assert held[:2] == [
                ("broker-0", (B,), -math.inf),
                ("broker-1", None, -math.inf),
            ]
            # On a busy machine the next session may be late, too.
            await until(lambda: first.held_until_s > time.monotonic())

    asyncio.run(main())


def test_a_connection_that_comes_back_in_time_changes_nothing(
    chroot: str, zookeeper: ZooKeeper
):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await first.put_broker(A)
            await second.put_broker(B)
            await until(lambda: first.brokers == {"broker-0": (A, B)})
            told = []
            first.watch_brokers(told.append)
            second.watch_brokers(told.append)
            connections = []
            told_connected = first._session._told_connected

            def connected(is_another: bool) -> None:
                connections.append(is_another)
                told_connected(is_another)

            first._session._told_connected = connected
            first._session._client._connection._socket.shutdown(2)
            await until(lambda: connections == [False])
            await first.put_broker(node("c", "broker-1"))
            await until(lambda: "broker-1" in second.brokers)
            assert first.brokers["broker-0"] == second.brokers["broker-0"] == (A, B)
            assert set(told) == {"broker-1"}
            # What others announce from now on is seen as before.
            await second.put_broker(node("d", "broker-2"))
            await second.put_broker(node("e", "broker-0"))
            await until(lambda: "broker-2" in first.brokers)
            await until(lambda: first.brokers["broker-0"][2:] != ())

    asyncio.run(main())


def test_what_a_server_puts_off_is_read_again(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await first.put_broker(A)
            children = first._session.children
            lost = []

            async def throttled(path, watch=None):
                names = await children(path, watch)
                if any(one.startswith("b,") for one in names) and not lost:
                    lost.append(path)
                    raise LostError("a fault of this test")
                return names

            first._session.children = throttled
            await second.put_broker(B)
            await until(lambda: first.brokers == {"broker-0": (A, B)})
            assert lost

    asyncio.run(main())


def test_what_was_announced_while_there_was_no_connection_is_read_at_once(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            brokers = first._brokers
            children = first._session.children
            # Watches of the lost connection say nothing.
            first._session.children = lambda path, _=None: children(path)
            await first.put_broker(A)
            await until(lambda: not brokers._folders_changed)
            await second.put_broker(B)
            assert first.brokers == {"broker-0": (A,)}
            await brokers.read_all()
            assert first.brokers == {"broker-0": (A, B)}

    asyncio.run(main())


def test_a_node_that_somebody_else_removes_at_the_same_time_is_removed(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await first.put_broker(A)
            commit = second._session.commit

            async def late(transaction):
                second._session.commit = commit
                await first.remove_broker("broker-0", "a")
                return await commit(transaction)

            second._session.commit = late
            await second.remove_broker("broker-0", "a")
            await until(lambda: first.brokers == second.brokers == {})

    asyncio.run(main())


def test_an_announcement_whose_answer_was_lost_is_there_once(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await second.put_broker(B)
            commit = first._session.commit

            async def lossy(transaction):
                first._session.commit = commit
                await commit(transaction)
                raise LostError("a fault of this test")

            first._session.commit = lossy
            await first.put_broker(A)
            await until(lambda: second.brokers == {"broker-0": (B, A)})

    asyncio.run(main())


def test_damaged_announcements_are_left_out(chroot: str):
    async def main():
        async with opened(chroot) as (routes,), raw(chroot) as client:
            await routes.put_broker(A)
            with capture_logs() as logs:
                client.create("/brokers/broker-0/x,", b"{", sequence=True)
                client.create("/brokers/broker-0/no-number", b"{")
                await routes.put_broker(B)
            assert routes.brokers == {"broker-0": (A, B)}
            assert [one["event"] for one in logs] == ["a damaged broker is left out"]

    asyncio.run(main())


def test_a_broker_is_seen_that_comes_while_it_is_looked_for_in_vain(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            children = first._session.children

            async def late(path, watch=None):
                try:
                    return await children(path, watch)
                except NoNodeError:
                    if watch is not None:
                        first._session.children = children
                        await second.put_broker(A)
                        # By then the folders were read again, and this is one of them.
                        await second.put_broker(node("a", "broker-1"))
                        await until(lambda: "broker-1" in first.brokers)
                    raise

            first._session.children = late
            await first.remove_broker("broker-0", "b")
            await until(lambda: first.brokers.get("broker-0") == (A,))
            await second.put_broker(B)
            await until(lambda: first.brokers["broker-0"] == (A, B))

    asyncio.run(main())


def test_a_broker_is_seen_of_which_is_told_before_an_older_answer_comes(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            children = first._session.children

            async def late(path, watch=None):
                names = await children(path, watch)
                if path == first._layout.brokers:
                    first._session.children = children
                    # kazoo has a thread for answers, and another one for watches.
                    await second.put_broker(node("a", "broker-1"))
                    await until(first._awake.is_set)
                return names

            first._session.children = late
            await second.put_broker(A)
            await until(lambda: first.brokers.keys() == {"broker-0", "broker-1"})

    asyncio.run(main())


def test_a_folder_that_is_gone_is_made_again_with_who_was_there(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second), raw(chroot) as client:
            await first.put_broker(A)
            await until(lambda: second.brokers == {"broker-0": (A,)})
            client.delete("/brokers/broker-0", recursive=True)
            # Until it is announced again the stores may not have noticed anything.
            await until(
                lambda: (
                    client.exists("/brokers/broker-0")
                    and client.get_children("/brokers/broker-0")
                )
            )
            await until(lambda: first.brokers == second.brokers == {"broker-0": (A,)})
            await second.put_broker(B)
            await until(lambda: first.brokers == {"broker-0": (A, B)})

    asyncio.run(main())
