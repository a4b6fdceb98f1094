"""The route store of one machine: kept, watched, shared, and refusing what is none."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.routing import database, embedded
from ropeway.routing.api import Group, RouteStoreUnavailableError, Topic
from ropeway.routing.embedded import EmbeddedRoutes
from tests.contracts.routes import (
    BROKER,
    ORDERS,
    RoutesContract,
    put_group,
    put_topic,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path


class TestEmbeddedRoutes(RoutesContract):
    @pytest.fixture
    def open_routes(self, tmp_path: Path):
        async def opened() -> EmbeddedRoutes:
            return EmbeddedRoutes(tmp_path / "routes.db")

        return opened


@asynccontextmanager
async def sharing(path: Path, count: int = 2, **settings):
    """Several stores on one file, as several processes have them."""
    stores = [EmbeddedRoutes(path, **settings) for _ in range(count)]
    for one in stores:
        one.follow()
    try:
        yield stores
    finally:
        for one in stores:
            await one.close()


def test_a_change_that_cannot_be_written_changes_nothing(tmp_path: Path):
    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        await put_topic(routes, ORDERS)
        heard = []
        routes.watch_topics(heard.append)
        routes._database.execute("PRAGMA query_only = ON")
        for change in (
            put_topic(routes, Topic(name="x", read_queue_nums=1, write_queue_nums=1)),
            routes.change_topic("orders", lambda _: None),
            put_group(routes, Group(name="g")),
            routes.put_setting("n", "k", "v"),
        ):
            with pytest.raises(RouteStoreUnavailableError, match=r"routes\.db"):
                await change
        assert (dict(routes.topics), dict(routes.groups)) == ({"orders": ORDERS}, {})
        assert heard == []
        await routes.close()

    asyncio.run(main())


@contextmanager
def slow_disk(routes: EmbeddedRoutes):
    """Have commits take until an event is set; yields that one has begun, and it."""
    begun, done = threading.Event(), threading.Event()
    execute = routes._database.execute

    def slowly(statement: str, *values: object) -> object:
        if statement == "COMMIT":
            begun.set()
            assert done.wait(60)
        return execute(statement, *values)

    routes._database.execute = slowly
    try:
        yield begun, done
    finally:
        done.set()


def test_others_go_on_while_the_disk_is_slow(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db", 1) as (routes,):
            with slow_disk(routes) as (begun, done):
                change = asyncio.create_task(put_topic(routes, ORDERS))
                await until(begun.is_set)
                looked = asyncio.create_task(routes.find_topic("orders"))
                # The one that follows has had its turn meanwhile, and waits.
                await asyncio.sleep(3 * embedded.POLL_S)
                assert routes.topics == {}
                assert not change.done()
                done.set()
                await change
                assert await looked == ORDERS

    asyncio.run(main())


def test_changes_that_come_together_are_made_one_after_the_other(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db", 1) as (routes,):
            with slow_disk(routes) as (begun, done):
                changes = [
                    asyncio.create_task(
                        routes.change_setting(
                            "n", "k", lambda old, one=one: (old or "") + one
                        )
                    )
                    for one in "abc"
                ]
                await until(begun.is_set)
                done.set()
                await asyncio.gather(*changes)
            assert routes.settings == {("n", "k"): "abc"}

    asyncio.run(main())


def test_a_change_that_nobody_waits_for_is_made_to_its_end(tmp_path: Path):
    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        heard = []
        routes.watch_topics(heard.append)
        with slow_disk(routes) as (begun, done):
            change = asyncio.create_task(put_topic(routes, ORDERS))
            await until(begun.is_set)
            change.cancel()
            await asyncio.gather(change, return_exceptions=True)
            assert (change.cancelled(), routes.topics, heard) == (True, {}, [])
            closing = asyncio.create_task(routes.close())
            done.set()
            await closing
        assert (routes.topics, heard) == ({"orders": ORDERS}, ["orders"])
        again = EmbeddedRoutes(tmp_path / "routes.db")
        assert again.topics == {"orders": ORDERS}
        await again.close()

    asyncio.run(main())


def test_what_one_changes_others_see_and_their_watchers_hear_of(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            heard = []
            second.watch_topics(lambda name: heard.append((name, second.topics)))
            await put_topic(first, ORDERS)
            await put_group(first, Group(name="kitchen"))
            await first.put_setting("n", "k", "v")
            await until(lambda: second.settings == {("n", "k"): "v"})
            assert second.groups == {"kitchen": Group(name="kitchen")}
            assert heard == [("orders", {"orders": ORDERS})]
            await first.change_topic("orders", lambda _: None)
            await until(lambda: len(heard) == 2)
            assert second.topics == {}

    asyncio.run(main())


def test_a_change_is_made_on_what_others_changed_unseen(tmp_path: Path):
    async def main():
        first, second = (EmbeddedRoutes(tmp_path / "routes.db") for _ in range(2))
        await put_topic(first, ORDERS)
        seen = []

        def look(old: Topic | None) -> Topic | None:
            seen.append(old)
            return old

        await second.change_topic("orders", look)
        assert seen == [ORDERS]
        assert second.topics == {"orders": ORDERS}
        for one in (first, second):
            await one.close()

    asyncio.run(main())


def test_who_catches_up_has_what_others_changed_and_its_watchers_hear_of_it(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)

    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            heard = []
            second.watch_topics(heard.append)
            await put_topic(first, ORDERS)
            await put_group(first, Group(name="kitchen"))
            await first.put_setting("n", "k", "v")
            await first.put_broker(BROKER)
            assert second.topics == second.brokers == {}
            await second.catch_up()
            assert (second.topics, heard) == ({"orders": ORDERS}, ["orders"])
            assert second.groups == {"kitchen": Group(name="kitchen")}
            assert second.settings == {("n", "k"): "v"}
            assert second.brokers == {"broker-0": (BROKER,)}
            await first.remove_broker("broker-0", "n")
            await second.catch_up()
            assert second.brokers == {}

    asyncio.run(main())


def test_what_is_begun_is_caught_up_with(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db") as (routes, _):
            change = asyncio.create_task(put_group(routes, Group(name="kitchen")))
            await asyncio.sleep(0)
            assert len(routes._under_way) == 1
            assert routes.groups == {}
            await routes.catch_up()
            assert routes.groups == {"kitchen": Group(name="kitchen")}
            await change

    asyncio.run(main())


def test_who_cannot_catch_up_goes_on_with_what_it_has(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)

    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            await put_topic(first, ORDERS)
            await second.catch_up()
            await first.change_topic("orders", lambda _: None)
            version = second._database.version

            def failing() -> int:
                raise sqlite3.OperationalError("disk I/O error")

            second._database.version = failing
            await second.catch_up()
            assert second.topics == {"orders": ORDERS}
            second._database.version = version
            await second.catch_up()
            assert second.topics == {}

    asyncio.run(main())


def test_who_is_far_behind_reads_everything_again(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(database, "KEPT_CHANGES", 3)

    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            await put_topic(first, ORDERS)
            await until(lambda: "orders" in second.topics)
            heard = []
            second.watch_topics(heard.append)
            # No await lets the other look in between.
            for number in range(9):
                topic = Topic(name=f"t{number}", read_queue_nums=1, write_queue_nums=1)
                await put_topic(first, topic)
            await first.change_topic("orders", lambda _: None)
            await until(lambda: len(heard) == 10)
            assert second.topics == first.topics
            assert set(heard) == {"orders", *(f"t{number}" for number in range(9))}
            (count,) = first._database.execute(
                "SELECT count(*) FROM changes"
            ).fetchone()
            assert count == 3

    asyncio.run(main())


def test_a_watcher_that_fails_does_not_keep_others_from_hearing(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            heard = []
            second.watch_topics(lambda _: 1 // 0)
            second.watch_topics(heard.append)
            with capture_logs() as logs:
                await put_topic(first, ORDERS)
                await until(lambda: heard == ["orders"])
            assert [line["name"] for line in logs] == ["orders"]

    asyncio.run(main())


def test_routes_that_cannot_be_followed_are_told_of_once(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(embedded, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(embedded, "POLL_S", 0.001)

    async def main():
        async with sharing(tmp_path / "routes.db", 1) as (routes,):
            await put_topic(routes, ORDERS)
            failures = 0

            def failing() -> int:
                nonlocal failures
                failures += 1
                raise sqlite3.OperationalError("disk I/O error")

            version = routes._database.version
            with capture_logs() as logs:
                routes._database.version = failing
                await until(lambda: failures >= 9)
                assert routes.topics == {"orders": ORDERS}
                routes._database.version = version
                await until(lambda: len(logs) == 2)
            assert [line["event"] for line in logs] == [
                "routes may be out of date",
                "routes are up to date again",
            ]

    asyncio.run(main())
