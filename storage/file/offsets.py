"""Consumer offsets of the embedded log: in memory, and in an SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import structlog

from ropeway.common.reasons import reason_of
from ropeway.common.versions import newer
from ropeway.storage import private
from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.offset_table import OffsetTable

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.offset_table import Row

NAME = "offsets.db"
VERSION = 1
FLUSH_INTERVAL_MS = 1000
"""How much a crash may take back. RocketMQ's brokers write every 5 s."""

_log = structlog.get_logger()


def open_offsets(
    directory: Path, *, flush_interval_ms: int = FLUSH_INTERVAL_MS
) -> FileOffsets:
    """Open the offsets in a directory, or begin with none. It waits for the disk.

    Raises:
        LogError: The file is no database of ours, or of a newer format.
    """
    path = directory / NAME
    try:
        private.database(path)
        database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                text = newer(path, version, VERSION)
                raise LogError(text)  # noqa: TRY301 - the database is closed below
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS offsets (grp TEXT, topic TEXT, "
                "queue_id INTEGER, next_offset INTEGER NOT NULL, "
                "PRIMARY KEY (grp, topic, queue_id)) WITHOUT ROWID"
            )
            database.execute(f"PRAGMA user_version = {VERSION}")
            return FileOffsets(path, database, flush_interval_ms)
        except BaseException:
            database.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise LogError(f"cannot open {path}: {reason_of(error)}") from error


class FileOffsets(OffsetTable):
    """Offsets of all groups; see `storage.offsets` for what it promises."""

    def __init__(
        self, path: Path, database: sqlite3.Connection, flush_interval_ms: int
    ) -> None:
        super().__init__()
        self._path = path
        self._database = database
        self._interval_s = flush_interval_ms / 1000
        self._thread = ThreadPoolExecutor(1, "offsets")
        self._dirty: dict[Row, int | None] = {}
        """What the file does not have yet; None for what is to be deleted."""
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        for group, topic, queue_id, offset in database.execute("SELECT * FROM offsets"):
            self._set(group, topic, queue_id, offset)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the next offset to consume, forwards or backwards."""
        self._refuse_when_closed()
        queues = self._queues(group, topic)
        if queues.get(queue_id) == offset:
            return
        queues[queue_id] = offset
        self._dirty[group, topic, queue_id] = offset
        if self._timer is None:
            self._schedule()

    def forget(
        self,
        *,
        group: str | None = None,
        topic: str | None = None,
        queue_id: int | None = None,
    ) -> None:
        """Drop the offsets of a group, of a topic, or of one on the other."""
        self._refuse_when_closed()
        for row in self._rows(group, topic, queue_id):
            self._remove(*row)
            self._dirty[row] = None
        if self._dirty and self._timer is None:
            self._schedule()

    async def flush(self) -> None:
        """Return when all commits so far are on the medium.

        Raises:
            LogUnavailableError: They could not be written; they are kept to try again.
        """
        dirty, self._dirty = self._dirty, {}
        loop = asyncio.get_running_loop()
        try:
            # Also with nothing to write: an earlier flush may still be under way.
            await loop.run_in_executor(self._thread, self._write, dirty)
        except sqlite3.Error as error:
            self._dirty = dirty | self._dirty
            raise LogUnavailableError(f"cannot write {self._path}: {error}") from error

    async def close(self) -> None:
        """Flush, and give the file up. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self.flush()
        finally:
            self._thread.shutdown()
            self._database.close()

    def _write(self, dirty: dict[Row, int | None]) -> None:
        """Write changes in one transaction. In the offsets' thread."""
        if not dirty:
            return
        database = self._database
        database.execute("BEGIN")
        try:
            database.executemany(
                "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?)",
                [(*row, offset) for row, offset in dirty.items() if offset is not None],
            )
            database.executemany(
                "DELETE FROM offsets WHERE grp = ? AND topic = ? AND queue_id = ?",
                [row for row, offset in dirty.items() if offset is None],
            )
            database.execute("COMMIT")
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._flush_later)

    def _flush_later(self) -> None:
        self._timer = None
        task = asyncio.ensure_future(self.flush())
        task.add_done_callback(self._flushed)

    def _flushed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            _log.error("offsets are not kept", error=str(task.exception()))
        if self._dirty and self._timer is None and not self._closed:
            self._schedule()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise LogUnavailableError(f"{self._path} is closed")
