"""The SQLite file of embedded routes: tables, transactions, and who changed what.

Processes share the file. Each change is one transaction, which also notes in the table
`changes` what it was about; SQLite's data version tells the others to look there.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from ropeway.common.reasons import reason_of
from ropeway.common.versions import newer
from ropeway.routing.api import RouteError, RouteStoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from ropeway.routing.api import Broker, Group, Topic

SCHEMA_VERSION = 2
"""2: `changes` and `brokers` came."""
LOCKED_FOR_S = 5.0
"""How long a change waits for those of others, which take milliseconds each."""
KEPT_CHANGES = 10_000
"""Whoever is further behind reads everything again."""

_RETRY_S = 0.005
_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS settings (
    namespace TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (namespace, key));
CREATE TABLE IF NOT EXISTS brokers (
    name TEXT PRIMARY KEY, value BLOB NOT NULL, renewed_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL);
"""

R = TypeVar("R")
Kind = Literal["topics", "groups", "settings"]
"""What was changed; also the name of its table."""


class Database:
    """One process' connection to the file. Only `change` waits."""

    def __init__(self, path: Path, locked_for_s: float = LOCKED_FOR_S) -> None:
        """Open or make the file; waits while another process makes it.

        Raises:
            RouteError: The file is not a route store, or of a newer version.
        """
        self._path = path
        self._locked_for_s = locked_for_s
        try:
            # Waiting for a lock would hold up the event loop: `change` does it.
            # It commits in a thread, while nobody else uses it.
            self._connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self.unreadable(error) from error
        self.execute = self._connection.execute
        """Run one statement.

        Raises:
            sqlite3.Error: It could not be.
        """
        try:
            self._prepare()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise self.unreadable(error) from error
            raise

    def unreadable(self, error: Exception) -> RouteError:
        """The error for a file that does not hold routes."""
        reason = str(error)
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CANTOPEN:
            # SQLite does not say why; the operating system does.
            try:
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            except OSError as why:
                reason = reason_of(why)
        return RouteError(f"{self._path} cannot be read as a route store: {reason}")

    def _prepare(self) -> None:
        (version,) = self._patiently(
            lambda: self.execute("PRAGMA user_version").fetchone()
        )
        if version > SCHEMA_VERSION:
            raise RouteError(newer(self._path, version, SCHEMA_VERSION))
        self._patiently(lambda: self.execute("PRAGMA journal_mode = WAL"))
        self.execute("PRAGMA synchronous = FULL")
        if version < SCHEMA_VERSION:
            self._patiently(lambda: self.execute("BEGIN IMMEDIATE"))
            for statement in _SCHEMA.split(";\n")[:-1]:
                self.execute(statement)
            self.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self.execute("COMMIT")

    def _patiently(self, step: Callable[[], R]) -> R:
        """Take a step of opening again while another process has the file."""
        deadline = time.monotonic() + self._locked_for_s
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)

    @asynccontextmanager
    async def change(self) -> AsyncIterator[None]:
        """Do what follows as one change, which is on the disk at the end, or undone.

        No other process makes a change meanwhile. The caller makes one at a time, goes
        on without an await until the end, and reads nothing then: that would hold up
        the event loop for as long as the disk takes. Not to be cancelled.

        Raises:
            RouteStoreUnavailableError: Others do not let go of the file, or it cannot
                be written, or holds what is no route.
        """
        await self._begin()
        try:
            yield
            await asyncio.to_thread(self.execute, "COMMIT")
        except (sqlite3.Error, msgspec.DecodeError) as error:
            self._roll_back()
            raise self.unavailable(error) from error
        except BaseException:
            self._roll_back()
            raise

    async def _begin(self) -> None:
        deadline = time.monotonic() + self._locked_for_s
        while True:
            try:
                self.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise self.unavailable(error) from error
            else:
                return
            await asyncio.sleep(_RETRY_S)

    def unavailable(self, error: Exception) -> RouteStoreUnavailableError:
        """The error for a change that could not be made."""
        return RouteStoreUnavailableError(f"{self._path} cannot be written: {error}")

    def _roll_back(self) -> None:
        # Some errors have ended the transaction already.
        if self._connection.in_transaction:
            self.execute("ROLLBACK")

    def note(self, kind: Kind, name: str) -> int:
        """Note what a change is about, for other processes.

        Returns:
            The sequence number of the change.
        """
        number = self.execute(
            "INSERT INTO changes (kind, name) VALUES (?, ?)", (kind, name)
        ).lastrowid
        assert number is not None, "an insert has a row"
        self.execute(
            "DELETE FROM changes WHERE sequence <= ?", (number - KEPT_CHANGES,)
        )
        return number

    def version(self) -> int:
        """A number that is another one after other processes have changed anything."""
        (version,) = self.execute("PRAGMA data_version").fetchone()
        return int(version)

    def sequence(self) -> int:
        """The sequence number of the last change."""
        row = self.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'changes'"
        ).fetchone()
        return int(row[0]) if row else 0

    def changes_since(self, sequence: int) -> list[tuple[int, Kind, str]] | None:
        """What was changed after a sequence number; None where that is forgotten."""
        rows = self.execute(
            "SELECT sequence, kind, name FROM changes WHERE sequence > ? "
            "ORDER BY sequence",
            (sequence,),
        ).fetchall()
        if rows and rows[0][0] != sequence + 1:
            return None
        return rows

    def renew_lease(self, broker: Broker, now_ms: int) -> None:
        """Say that a broker runs.

        Raises:
            sqlite3.Error: It could not be written now.
        """
        self.execute(
            "INSERT OR REPLACE INTO brokers VALUES (?, ?, ?)",
            (broker.name, msgspec.json.encode(broker), now_ms),
        )

    def keep_lease(self, broker: Broker, now_ms: int, stale_ms: int) -> bool:
        """Say that a broker still runs, unless another process says that of itself.

        Args:
            broker: Ours.
            now_ms: Milliseconds since the machine was started.
            stale_ms: Who said nothing since then has died.

        Raises:
            sqlite3.Error: It could not be written now.
        """
        done = self.execute(
            "INSERT INTO brokers VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
            "SET value = excluded.value, renewed_ms = excluded.renewed_ms "
            "WHERE value = excluded.value OR renewed_ms NOT BETWEEN ? AND ? "
            # Not `rowcount`: where the capital of i is not I, Python takes no INSERT
            # for a change, and counts -1.
            "RETURNING name",
            (broker.name, msgspec.json.encode(broker), now_ms, stale_ms + 1, now_ms),
        )
        return done.fetchone() is not None

    @contextmanager
    def not_waiting_for_the_disk(self) -> Iterator[None]:
        """For what is said again each second, outside of a change."""
        self.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self.execute("PRAGMA synchronous = FULL")

    def end_lease(self, name: str) -> None:
        """Forget a broker."""
        self.execute("DELETE FROM brokers WHERE name = ?", (name,))

    def leases(self) -> list[tuple[str, bytes, int]]:
        """Every broker that was not forgotten, and when its lease was renewed last."""
        return self.execute("SELECT name, value, renewed_ms FROM brokers").fetchall()

    def all(self, kind: Kind) -> Iterator[tuple[str, bytes]]:
        """Names and values of every topic or group."""
        return self.execute(f"SELECT name, value FROM {kind}")  # noqa: S608 - ours

    def get(self, kind: Kind, name: str, type_: type[R]) -> R | None:
        """A topic or a group; None where there is none."""
        row = self.execute(
            f"SELECT value FROM {kind} WHERE name = ?",  # noqa: S608 - ours
            (name,),
        ).fetchone()
        return msgspec.json.decode(row[0], type=type_) if row else None

    def put(self, kind: Kind, name: str, value: Topic | Group | None) -> None:
        """Set a topic or a group, or remove it where that is None."""
        if value is None:
            self.execute(f"DELETE FROM {kind} WHERE name = ?", (name,))  # noqa: S608
        else:
            self.execute(
                f"INSERT OR REPLACE INTO {kind} VALUES (?, ?)",  # noqa: S608 - ours
                (name, msgspec.json.encode(value)),
            )

    def settings(self) -> dict[tuple[str, str], str]:
        """Every setting by its namespace and key."""
        rows = self.execute("SELECT namespace, key, value FROM settings")
        return {(namespace, key): value for namespace, key, value in rows}

    def put_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Set a setting, or remove it where the value is None."""
        if value is None:
            self.execute(
                "DELETE FROM settings WHERE namespace = ? AND key = ?", (namespace, key)
            )
        else:
            self.execute(
                "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)",
                (namespace, key, value),
            )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _is_locked(error: sqlite3.Error) -> bool:
    # The module's own errors, as for a closed file, have no code.
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
