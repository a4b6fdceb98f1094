"""The copy: what it leaves out, how it catches up, and that it never goes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.routing.api import RouteError, Topic
from ropeway.routing.zookeeper import changes, open_routes
from ropeway.routing.zookeeper.codec import number_of
from tests.contracts.routes import KITCHEN, ORDERS, put_group, put_topic, until
from tests.routing.zookeeper.helpers import expire, opened, raw

if TYPE_CHECKING:
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def topic(name: str, queues: int = 1) -> Topic:
    return Topic(name=name, read_queue_nums=queues, write_queue_nums=1)


def test_a_damaged_topic_is_left_out_and_told_of_once_and_the_rest_goes_on(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):
            await put_topic(routes, ORDERS)
            await put_topic(routes, topic("other"))
        async with raw(chroot) as client:
            client.set("/topics/orders", b'{"name":"orders"')
        with capture_logs() as logs:
            async with opened(chroot) as (routes,):
                assert routes.topics == {"other": topic("other")}
                for _ in range(2):
                    assert await routes.find_topic("orders") is None
                    with pytest.raises(RouteError, match=r"/topics/orders .* damaged"):
                        await put_topic(routes, ORDERS)
                await put_topic(routes, topic("more"))
                assert set(routes.topics) == {"other", "more"}
        assert [(one["log_level"], one["event"]) for one in logs] == [
            ("error", "a damaged route is left out")
        ]
        assert logs[0]["path"].endswith("/topics/orders")
        assert "truncated" in logs[0]["reason"]

    asyncio.run(main())


def test_a_topic_that_is_damaged_while_it_is_known_leaves_and_comes_back(chroot: str):
    async def main():
        async with opened(chroot) as (routes,), raw(chroot) as client:
            await put_topic(routes, ORDERS)
            told = []
            routes.watch_topics(lambda name: told.append((name, dict(routes.topics))))
            good, _ = client.get("/topics/orders")
            for number, data in enumerate((b"", good)):
                client.set("/topics/orders", data)
                # Whoever mends by hand says so.
                client.create(f"/changes/topics,orders,hand{number},", sequence=True)
                await until(lambda: len(told) == number + 1)  # noqa: B023
            assert told == [("orders", {}), ("orders", {"orders": ORDERS})]
            await routes.change_topic("orders", lambda _: None)
            assert told[2:] == [("orders", {})]

    asyncio.run(main())


def test_who_missed_a_change_that_is_forgotten_reads_everything(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, late), raw(chroot) as client:
            await put_topic(first, topic("known"))
            await until(lambda: late._copy.sequence == first._copy.sequence == 0)
            late._follower.cancel()
            await put_topic(first, topic("missed"))
            await put_topic(first, topic("heard of"))
            newest = max(client.get_children("/changes"), key=number_of)
            for name in client.get_children("/changes"):
                if name != newest:
                    client.delete(f"/changes/{name}")
            await late._copy.refresh()
            assert late.topics == first.topics
            assert set(late.topics) == {"known", "missed", "heard of"}

    asyncio.run(main())


def test_names_that_nothing_has_are_left_out(chroot: str):
    async def main():
        async with opened(chroot):
            pass
        async with raw(chroot) as client:
            client.create("/topics/a%2", b"{}")
            client.create("/settings/alone", b'"x"')
            client.create("/brokers/b%2")
            client.create("/changes/nothing")
        async with opened(chroot) as (routes,):
            await put_topic(routes, ORDERS)
            assert routes.topics == {"orders": ORDERS}
            assert (routes.settings, routes.brokers) == ({}, {})

    asyncio.run(main())


def test_who_is_far_behind_reads_everything_again(
    chroot: str, zookeeper: ZooKeeper, monkeypatch
):
    monkeypatch.setattr(changes, "KEPT_CHANGES", 3)
    monkeypatch.setattr(changes, "TRIM_EVERY", 1)

    async def main():
        async with opened(chroot, 2) as (first, second):
            await put_topic(first, ORDERS)
            await put_group(first, KITCHEN)
            await first.put_setting("a", "b", "c")
            await until(lambda: second.settings)
            heard = []
            second.watch_topics(heard.append)
            # It is not woken, as if it had no connection.
            wake, second._copy._wake = second._copy._wake, None
            for number in range(9):
                await put_topic(first, topic(f"t{number}"))
            await first.change_topic("orders", lambda _: None)
            await first.change_group("kitchen", lambda _: None)
            await first.put_setting("a", "b", None)
            await until(first._changes._trimming.done)
            second._copy._wake = wake
            second._awake.set()
            await until(lambda: second.groups == second.settings == {})
            assert set(heard) == {"orders", *(f"t{number}" for number in range(9))}
            assert second.topics == first.topics

    asyncio.run(main())


def test_a_store_that_was_put_back_to_an_earlier_state_is_read_again(chroot: str):
    async def main():
        async with opened(chroot) as (routes,), raw(chroot) as client:
            for name in ("a", "b"):
                await put_topic(routes, topic(name))
            await until(lambda: routes._copy.sequence == 1)
            # What a backup of the time before `b` holds.
            client.delete("/topics/b")
            for name in client.get_children("/changes"):
                if name.endswith("1"):
                    client.delete(f"/changes/{name}")
            await until(lambda: set(routes.topics) == {"a"})

    asyncio.run(main())


def test_a_topic_that_was_deleted_and_made_again_is_not_taken_for_the_old(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await put_topic(first, topic("t", 1))
            await until(lambda: second.topics)
            # Version 0 both times: what it has not seen, it must not change.
            given = []

            def look_and_replace(old: Topic | None) -> Topic:
                given.append(old and old.read_queue_nums)
                return topic("t", 9)

            commit = second._session.commit

            async def late(transaction):
                second._session.commit = commit
                await first.change_topic("t", lambda _: None)
                await put_topic(first, topic("t", 2))
                return await commit(transaction)

            second._session.commit = late
            await second.change_topic("t", look_and_replace)
            assert given == [1, 2]

    asyncio.run(main())


def test_after_a_lost_session_and_a_restart_all_is_there(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await put_topic(first, ORDERS)
            await until(lambda: second.topics)
            await expire(second)
            await put_topic(first, topic("t"))
            await until(lambda: set(second.topics) == {"orders", "t"})
        routes = await open_routes(chroot)
        assert set(routes.topics) == {"orders", "t"}
        await routes.close()

    asyncio.run(main())


def test_a_watcher_that_fails_does_not_keep_others_from_hearing(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            heard = []
            second.watch_topics(lambda _: 1 // 0)
            second.watch_topics(heard.append)
            with capture_logs() as logs:
                await put_topic(first, ORDERS)
                await until(lambda: heard == ["orders"])
            assert [one["name"] for one in logs] == ["orders"]

    asyncio.run(main())


def test_each_change_is_read_once_and_nothing_else(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            read = []
            get = second._copy.read

            async def counted(kind, node) -> None:
                read.append(node)
                await get(kind, node)

            async def everything() -> None:
                read.append("all of it")

            second._copy.read = counted
            second._copy._read_all = everything
            for name in ("a", "b", "c"):
                await put_topic(first, topic(name))
                await until(lambda: name in second.topics)  # noqa: B023
            assert read == ["a", "b", "c"]

    asyncio.run(main())
