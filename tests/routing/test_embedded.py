"""Routes in an SQLite file: the contract, and files that cannot be used."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from typing import TYPE_CHECKING

import pytest

from routing.api import RouteError, RouteStoreUnavailableError
from routing.embedded import SCHEMA_VERSION, EmbeddedRoutes
from tests.contracts.routes import KITCHEN, ORDERS, RoutesContract

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TestEmbeddedRoutes(RoutesContract):
    @pytest.fixture
    def open_routes(self, tmp_path: Path) -> Callable[[], EmbeddedRoutes]:
        return lambda: EmbeddedRoutes(tmp_path / "routes.db")


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "routes.db"
    path.write_bytes(b"something else " * 100)
    with pytest.raises(RouteError, match=re.escape(str(path))):
        EmbeddedRoutes(path)
    assert path.read_bytes() == b"something else " * 100


def test_a_store_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "routes.db"
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    with pytest.raises(RouteError, match=f"version {SCHEMA_VERSION + 1}.*up to"):
        EmbeddedRoutes(path)


def test_a_record_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "routes.db"
    asyncio.run(EmbeddedRoutes(path).close())
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO topics VALUES ('orders', '{')")
    database.close()
    with pytest.raises(RouteError, match="cannot be read"):
        EmbeddedRoutes(path)


def test_a_change_that_cannot_be_written_does_not_happen(tmp_path: Path) -> None:
    path = tmp_path / "routes.db"

    async def main() -> None:
        routes = EmbeddedRoutes(path)
        told: list[str] = []
        routes.watch_topics(told.append)
        with sqlite3.connect(path) as database:
            for table in ("topics", "groups", "settings"):
                database.execute(f"DROP TABLE {table}")
        database.close()
        for change in (
            routes.put_topic(ORDERS),
            routes.put_group(KITCHEN),
            routes.put_setting("space", "key", "value"),
        ):
            with pytest.raises(RouteStoreUnavailableError, match="cannot be written"):
                await change
        assert (routes.topics, routes.groups, routes.settings) == ({}, {}, {})
        assert told == []
        await routes.close()

    asyncio.run(main())
