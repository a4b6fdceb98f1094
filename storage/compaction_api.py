"""Compaction: the contract. Of some topics only the last record of each key is kept.

A record of such a topic has a key. Once a later record of the same partition has the
same key, compaction may drop it. What stays has the offset that it had, so a compacted
partition has gaps: a read at an offset that is gone goes on with the next one there is.
A record without a value, a *tombstone*, says that its key is deleted; it is dropped
itself some time later, so that slow readers hear of it.

The log knows neither keys nor values: the app gives it a `Describer`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ropeway.storage.api import EntryFormat, Found


ROW = Struct("<IiqQ16s")
"""What compaction needs to know of a record: its size, the hash of its tag as in
`storage.api.Record`, when it was stored in milliseconds, its state, and the first half
of its key's SHA-256, zeros where it has none."""
KEYED, TOMBSTONE = 1, 2
"""States, added: there is a key; it is a tombstone."""


class Describer(Protocol):
    """Reads what records say; never fails on one that was appended."""

    def key(self, record: bytes | memoryview) -> tuple[bytes | None, bool]:
        """Its key, None where it has none; and whether it is a tombstone."""

    def rows(self, records: bytes | memoryview) -> bytes:
        """A `ROW` of each of some records that stand back to back.

        Raises:
            ValueError: They are no records.
        """


class CompactionStatus(NamedTuple):
    """How far compaction of one partition is."""

    number: int
    """Of the partition."""
    clean_end: int
    """Below this offset each key has one record at most."""
    end: int
    clean_records: int
    clean_bytes: int
    problem: str | None
    """Why the last round failed; None where it did not."""


class Compaction(Protocol):
    """What a log does for compacted topics, beside `storage.api.Log`."""

    entry_format: EntryFormat
    """How the records of such topics have to be kept."""

    def keep_last(self, topic: str, *, compacted: bool) -> None:
        """Say whether a topic is compacted; told after each opening of the log.

        It is said before `Log.partition` is called for the topic. Said otherwise
        later on, that gives other partitions from then on; those from before stay
        usable, and read the topic as it was.
        """

    async def compact(self, topic: str) -> list[CompactionStatus]:
        """Compact all that the topic's partitions have by now, and return then.

        Raises:
            NoSuchPartitionError: The topic is not compacted.
            LogError: It could not be done; what was there before is there still.
        """

    async def status(self, topic: str) -> list[CompactionStatus]:
        """How far compaction of each partition is.

        Raises:
            NoSuchPartitionError: The topic is not compacted.
        """

    async def latest(self, topic: str, key: str) -> Found | None:
        """The newest record of a compacted topic with a key; None where there is none.

        A tombstone counts as a record. Where several partitions have the key, the one
        that was stored last is meant.

        Raises:
            NoSuchPartitionError: The topic is not compacted.
        """
