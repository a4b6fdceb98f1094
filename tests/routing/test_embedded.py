"""The route store of one machine: kept, watched, and refusing what it cannot read."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from routing.api import Group, RouteError, RouteStoreUnavailableError, Topic
from routing.embedded import SCHEMA_VERSION, EmbeddedRoutes

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = Topic(
    name="orders",
    read_queue_nums=2,
    write_queue_nums=1,
    attributes={"a": "b"},
    route={"broker-0": [3, 4]},
)


def test_what_was_put_is_there_again(tmp_path: Path):
    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        await routes.put_topic(ORDERS)
        await routes.put_topic(
            Topic(name="gone", read_queue_nums=1, write_queue_nums=1)
        )
        await routes.delete_topic("gone")
        await routes.put_group(Group(name="g", retry_max_times=3))
        await routes.put_group(Group(name="h"))
        await routes.delete_group("h")
        await routes.put_setting("n", "k", "v")
        await routes.put_setting("n", "gone", "v")
        await routes.put_setting("n", "gone", None)
        await routes.close()
        await routes.close()
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        assert routes.topics == {"orders": ORDERS}
        assert routes.groups == {"g": Group(name="g", retry_max_times=3)}
        assert routes.settings == {("n", "k"): "v"}
        await routes.close()

    asyncio.run(main())


def test_watchers_hear_of_each_topic_after_it_changed(tmp_path: Path):
    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        heard = []
        routes.watch_topics(lambda name: heard.append((name, name in routes.topics)))
        await routes.put_topic(ORDERS)
        await routes.put_topic(ORDERS)
        await routes.delete_topic("orders")
        await routes.delete_topic("orders")
        assert heard == [("orders", True), ("orders", True), ("orders", False)]
        await routes.close()

    asyncio.run(main())


def test_a_change_that_cannot_be_written_changes_nothing(tmp_path: Path):
    async def main():
        path = tmp_path / "routes.db"
        routes = EmbeddedRoutes(path)
        await routes.put_topic(ORDERS)
        heard = []
        routes.watch_topics(heard.append)
        routes._db.execute("PRAGMA query_only = ON")
        for change in (
            routes.put_topic(Topic(name="x", read_queue_nums=1, write_queue_nums=1)),
            routes.delete_topic("orders"),
            routes.put_group(Group(name="g")),
            routes.put_setting("n", "k", "v"),
        ):
            with pytest.raises(RouteStoreUnavailableError, match=r"routes\.db"):
                await change
        assert (dict(routes.topics), dict(routes.groups)) == ({"orders": ORDERS}, {})
        assert heard == []
        await routes.close()

    asyncio.run(main())


def test_another_file_or_a_newer_version_is_refused(tmp_path: Path):
    path = tmp_path / "routes.db"
    path.write_bytes(b"no database at all, but longer than a header of one" * 10)
    with pytest.raises(RouteError, match="cannot be read"):
        EmbeddedRoutes(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(RouteError, match=f"knows up to {SCHEMA_VERSION}"):
        EmbeddedRoutes(path)
    with pytest.raises(RouteError, match="cannot be read"):
        EmbeddedRoutes(tmp_path / "missing" / "routes.db")
