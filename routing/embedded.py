"""The route store of a single machine: one SQLite file beside the log."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

import msgspec

from routing.api import Group, RouteError, RouteStoreUnavailableError, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS settings (
    namespace TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (namespace, key));
"""

T = TypeVar("T", bound=msgspec.Struct)


class EmbeddedRoutes:
    """Topics, groups and settings in memory, each change committed to SQLite.

    A change is one small transaction on the caller's thread: milliseconds, and rare.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the store.

        Raises:
            RouteError: The file is not a route store, or of a newer version.
        """
        self._path = path
        self._watchers: list[Callable[[str], None]] = []
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
        except sqlite3.Error as error:
            raise RouteError(f"{path} cannot be read as a route store: {error}") from (
                error
            )
        try:
            self._prepare()
            self._topics = self._load("topics", Topic)
            self._groups = self._load("groups", Group)
            rows = self._db.execute("SELECT namespace, key, value FROM settings")
            self._settings = {(space, key): value for space, key, value in rows}
        except RouteError:
            self._db.close()
            raise
        except (sqlite3.Error, msgspec.DecodeError) as error:
            self._db.close()
            raise RouteError(f"{path} cannot be read as a route store: {error}") from (
                error
            )

    def _prepare(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise RouteError(
                f"{self._path} has version {version}; this program knows up to "
                f"{SCHEMA_VERSION}"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _load(self, table: str, kind: type[T]) -> dict[str, T]:
        rows = self._db.execute(f"SELECT name, value FROM {table}")  # noqa: S608 - ours
        return {name: msgspec.json.decode(value, type=kind) for name, value in rows}

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name."""
        return self._topics

    @property
    def groups(self) -> Mapping[str, Group]:
        """Every consumer group by its name."""
        return self._groups

    @property
    def settings(self) -> Mapping[tuple[str, str], str]:
        """Every setting by its namespace and key."""
        return self._settings

    async def put_topic(self, topic: Topic) -> None:
        """Create or replace a topic."""
        self._write(
            "INSERT OR REPLACE INTO topics VALUES (?, ?)",
            (topic.name, msgspec.json.encode(topic)),
        )
        self._topics[topic.name] = topic
        self._tell(topic.name)

    async def delete_topic(self, name: str) -> None:
        """Remove a topic."""
        self._write("DELETE FROM topics WHERE name = ?", (name,))
        if self._topics.pop(name, None) is not None:
            self._tell(name)

    async def put_group(self, group: Group) -> None:
        """Create or replace a group."""
        self._write(
            "INSERT OR REPLACE INTO groups VALUES (?, ?)",
            (group.name, msgspec.json.encode(group)),
        )
        self._groups[group.name] = group

    async def delete_group(self, name: str) -> None:
        """Remove a group."""
        self._write("DELETE FROM groups WHERE name = ?", (name,))
        self._groups.pop(name, None)

    async def put_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Set a setting, or remove it where the value is None."""
        if value is None:
            self._write(
                "DELETE FROM settings WHERE namespace = ? AND key = ?", (namespace, key)
            )
            self._settings.pop((namespace, key), None)
        else:
            self._write(
                "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)",
                (namespace, key, value),
            )
            self._settings[namespace, key] = value

    def watch_topics(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a topic's name after it was put or deleted."""
        self._watchers.append(changed)

    async def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise RouteStoreUnavailableError(
                f"{self._path} cannot be written: {error}"
            ) from error

    def _tell(self, name: str) -> None:
        for changed in self._watchers:
            changed(name)
