"""What the tier knows of itself, in a file beside the log: topics, queues, segments.

A cache of what the provider has, so that no start has to list it; without the file it
is made again from the provider (`rebuilding`). The operations are those of RIP-65's
TieredMetadataStore; besides them there are `get_state` and `put_state` for a few words.
The file is also what `ropeway tier` looks at while a node runs, and speaks to it by.

Used by one thread at a time.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ropeway.common.reasons import reason_of
from ropeway.common.versions import newer
from ropeway.storage import private
from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_partition import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "tier.db"
VERSION = 1
BUSY_S = 30.0
"""How long one process waits while another changes the file."""

SegmentStatus = Literal["new", "sealed", "expired"]
"""New: its objects are on their way. Expired: they are being deleted."""

QueueStatus = Literal["active", "deleted"]

_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE topic (
    topic_id INTEGER PRIMARY KEY, topic TEXT NOT NULL UNIQUE, reserve_ms INTEGER
);
CREATE TABLE queue (
    identity TEXT PRIMARY KEY, topic_id INTEGER NOT NULL REFERENCES topic,
    number INTEGER NOT NULL, status TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX queue_of_topic ON queue (topic_id);
CREATE TABLE segment (
    identity TEXT NOT NULL, base INTEGER NOT NULL, end INTEGER NOT NULL,
    status TEXT NOT NULL, least_ms INTEGER NOT NULL, most_ms INTEGER NOT NULL,
    written_ms INTEGER NOT NULL, bytes INTEGER NOT NULL, keys INTEGER NOT NULL,
    PRIMARY KEY (identity, base, end)
) WITHOUT ROWID;
"""


class TopicRow(Struct, frozen=True):
    """A topic, and how long its segments are kept."""

    topic_id: int
    topic: str
    reserve_ms: int | None
    """None: as the tier's settings say."""


class QueueRow(Struct, frozen=True):
    """A partition, as it was made; made again, it is another."""

    topic: str
    number: int
    identity: int
    status: QueueStatus


class Metadata:
    """The file, open."""

    def __init__(self, directory: Path) -> None:
        """Open the file, or make it.

        Raises:
            LogUnavailableError: It cannot be used.
            LogError: A newer program made it.
        """
        self.path = directory / NAME
        try:
            private.directory(directory)
            self._file = sqlite3.connect(
                self.path,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                version = self._prepare()
            except sqlite3.Error:
                self._file.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise LogUnavailableError(
                f"cannot use {self.path}: {reason_of(error)}; it may be deleted while "
                "no node runs, and is made again from the provider"
            ) from error
        if version > VERSION:
            self._file.close()
            raise LogError(newer(self.path, version, VERSION))

    def _prepare(self) -> int:
        """Make the tables where there are none; the format's version."""
        self._file.execute("PRAGMA journal_mode = WAL")
        # What they say was put or merged has to hold when the copies of it go.
        self._file.execute("PRAGMA synchronous = FULL")
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        if not version:
            self._file.executescript(
                f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        return int(version)

    def close(self) -> None:
        """Give up the file."""
        self._file.close()

    def _execute(
        self, statement: str, values: tuple[Any, ...] | dict[str, Any] = ()
    ) -> list[Any]:
        """Run a statement; its rows.

        Raises:
            LogUnavailableError: The file cannot be used now, as on a full disk.
        """
        try:
            return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise LogUnavailableError(f"cannot use {self.path}: {error}") from error

    def get_state(self, name: str) -> str | None:
        """A word that was put, or None."""
        rows = self._execute("SELECT value FROM state WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def put_state(self, name: str, value: str | None) -> None:
        """Keep a word; None forgets it."""
        if value is None:
            self._execute("DELETE FROM state WHERE name = ?", (name,))
        else:
            self._execute("REPLACE INTO state VALUES (?, ?)", (name, value))

    def get_topic(self, topic: str) -> TopicRow | None:
        """A topic; None where the tier has nothing of it."""
        rows = self._execute("SELECT * FROM topic WHERE topic = ?", (topic,))
        return TopicRow(*rows[0]) if rows else None

    def iterate_topic(self) -> Iterator[TopicRow]:
        """All topics."""
        for row in self._execute("SELECT * FROM topic ORDER BY topic"):
            yield TopicRow(*row)

    def add_topic(self, topic: str, reserve_ms: int | None = None) -> TopicRow:
        """Have a topic; one that there is stays as it is."""
        self._execute(
            "INSERT OR IGNORE INTO topic (topic, reserve_ms) VALUES (?, ?)",
            (topic, reserve_ms),
        )
        found = self.get_topic(topic)
        assert found is not None
        return found

    def update_topic_reserve_time(self, topic: str, reserve_ms: int | None) -> None:
        """Set how long a topic's segments are kept."""
        self._execute(
            "UPDATE topic SET reserve_ms = ? WHERE topic = ?", (reserve_ms, topic)
        )

    def delete_topic(self, topic: str) -> None:
        """Forget a topic that has no queue any more."""
        self._execute(
            "DELETE FROM topic WHERE topic = ? AND NOT EXISTS "
            "(SELECT 1 FROM queue WHERE queue.topic_id = topic.topic_id)",
            (topic,),
        )

    def iterate_queue(self, topic: str | None = None) -> Iterator[QueueRow]:
        """All queues, or those of a topic."""
        for row in self._execute(
            "SELECT topic, number, identity, status FROM queue "
            "JOIN topic USING (topic_id) WHERE :topic IS NULL OR topic = :topic "
            "ORDER BY topic, number",
            {"topic": topic},
        ):
            yield _queue(row)

    def add_queue(self, topic: str, number: int, identity: int) -> None:
        """Have a queue; one that there is stays as it is."""
        self._execute(
            "INSERT OR IGNORE INTO queue VALUES (?, ?, ?, 'active')",
            (_hex(identity), self.add_topic(topic).topic_id, number),
        )

    def update_queue(self, identity: int, status: QueueStatus) -> None:
        """Say whether a queue's objects are to be deleted."""
        self._execute(
            "UPDATE queue SET status = ? WHERE identity = ?", (status, _hex(identity))
        )

    def delete_queue(self, identity: int) -> None:
        """Forget a queue and all its segments."""
        self._execute("DELETE FROM segment WHERE identity = ?", (_hex(identity),))
        self._execute("DELETE FROM queue WHERE identity = ?", (_hex(identity),))

    def get_file_segment(
        self, name: SegmentName
    ) -> tuple[Segment, SegmentStatus] | None:
        """A segment and what becomes of it; None where it is not known."""
        for segment, status in self.iterate_file_segment(name.identity):
            if segment.name == name:
                return segment, status
        return None

    def iterate_file_segment(
        self, identity: int | None = None
    ) -> Iterator[tuple[Segment, SegmentStatus]]:
        """All segments by queue and offset, or those of a queue."""
        for row in self._execute(
            "SELECT topic, number, identity, base, end, least_ms, most_ms, written_ms, "
            "bytes, keys, segment.status FROM segment JOIN queue USING (identity) "
            "JOIN topic USING (topic_id) WHERE :queue IS NULL OR identity = :queue "
            "ORDER BY identity, base, end",
            {"queue": None if identity is None else _hex(identity)},
        ):
            topic, number, word, base, end, *facts, status = row
            name = SegmentName(topic, number, int(word, 16), base, end)
            yield Segment(name, *facts), status

    def update_file_segment(self, segment: Segment, status: SegmentStatus) -> None:
        """Keep what is known of a segment."""
        name = segment.name
        self._execute(
            "REPLACE INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_hex(name.identity), name.base, name.end, status, *segment[1:]),
        )

    def delete_file_segment(self, name: SegmentName) -> None:
        """Forget a segment."""
        self._execute(
            "DELETE FROM segment WHERE identity = ? AND base = ? AND end = ?",
            (_hex(name.identity), name.base, name.end),
        )

    def swap(self, old: list[Segment], new: Segment) -> None:
        """Have one segment in place of several, all at once or not at all."""
        self._execute("BEGIN IMMEDIATE")
        try:
            for segment in old:
                self.update_file_segment(segment, "expired")
            self.update_file_segment(new, "sealed")
            self._execute("COMMIT")
        except LogError:
            with suppress(sqlite3.Error):
                self._file.execute("ROLLBACK")
            raise


def _hex(identity: int) -> str:
    # SQLite's integers have a sign, and 63 bits beside it.
    return f"{identity:016x}"


def _queue(row: tuple[str, int, str, QueueStatus]) -> QueueRow:
    topic, number, word, status = row
    return QueueRow(topic, number, int(word, 16), status)
