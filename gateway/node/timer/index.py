"""The index of waiting messages by time: a cache in RocksDB, made again where lost.

    "m" visit time (8) offset (8)  ->  due time (8) size (4) queue id (2)
                                           topic "+" unique key
    "c" due time (8) topic "+" unique key  ->  nothing: recalled
    "n"  ->  the checkpoint: see `DerivedStore`

Numbers are big endian, times are in milliseconds. A message is *visited* when it is
due, or earlier, when it has to be stored again before the log's retention takes it.

What one call changes is written together. The system keeps it over a kill of the
process; what a power cut takes, the newest first, is read from the log again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node.derived_store import DerivedStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.gateway.node.derived_store import Checkpoint

"""Enough for what is due next; all else is read once."""
_SWEEP = 4096

_MESSAGE = b"m"
_RECALLED = b"c"
_KEY = struct.Struct(">cQQ")
_VALUE = struct.Struct(">QIH")
_TIME = struct.Struct(">Q")

FIRST_KEY = _MESSAGE


class Entry(NamedTuple):
    """A message that waits."""

    visit_ms: int
    offset: int
    """In the system topic."""
    due_ms: int
    size: int
    """Of the stored message, in bytes."""
    queue_id: int
    """Which queue of its topic it is for."""
    identity: bytes
    """`topic+unique key`: what a recall names."""

    @property
    def topic(self) -> str:
        """Where it is for."""
        return self.identity[: self.identity.index(b"+")].decode()

    @property
    def key(self) -> bytes:
        """What the index keeps it under; keys sort by time, then by offset."""
        return _KEY.pack(_MESSAGE, self.visit_ms, self.offset)


class Index(DerivedStore):
    """The index in a directory; one process, one thread at a time.

    Args:
        directory: Made where it is missing; made anew where it cannot be used.
    """

    MEMORY_BYTES = 8 << 20

    def add(
        self,
        entries: Sequence[tuple[int, int, int, int, int, bytes]],
        recalled: Sequence[tuple[int, bytes]],
        checkpoint: Checkpoint,
    ) -> None:
        """Note what was read.

        Args:
            entries: Messages that wait, with the members of an `Entry`.
            recalled: Due times and identities of those that do no longer.
            checkpoint: How far the log was read then.
        """
        batch = self._batch()
        for visit_ms, offset, due_ms, size, queue_id, identity in entries:
            batch.put(
                _KEY.pack(_MESSAGE, visit_ms, offset),
                _VALUE.pack(due_ms, size, queue_id) + identity,
            )
        for due_ms, identity in recalled:
            batch.put(_recalled_key(due_ms, identity), b"")
        self._note(batch, checkpoint)
        self._write(batch)

    def due(
        self, after_ms: int, until_ms: int, max_count: int, max_bytes: int
    ) -> tuple[list[Entry], set[int]]:
        """The first messages to be visited after one moment and until another.

        Args:
            after_ms: Not these, and none before: looking there takes time.
            until_ms: These are among them.
            max_count: No more than so many.
            max_bytes: No more than so many bytes of them, but one always.

        Returns:
            They, and the offsets of those that were recalled.
        """
        found: list[Entry] = []
        for entry in self._entries(_KEY.pack(_MESSAGE, after_ms + 1, 0)):
            max_bytes -= entry.size
            if entry.visit_ms > until_ms or (found and max_bytes < 0):
                break
            found.append(entry)
            if len(found) == max_count:
                break
        return found, self.recalled(found) if found else set()

    def next_ms(self, after_ms: int) -> int | None:
        """When the next message is to be visited; None where there is none."""
        for entry in self._entries(_KEY.pack(_MESSAGE, after_ms + 1, 0)):
            return entry.visit_ms
        return None

    def recalled(self, entries: Sequence[Entry]) -> set[int]:
        """Offsets of those messages that were recalled."""
        first = min(entry.due_ms for entry in entries)
        last = max(entry.due_ms for entry in entries)
        if not self._has_recalled(first, last):
            return set()
        return {
            entry.offset
            for entry in entries
            if self._get(_recalled_key(entry.due_ms, entry.identity)) is not None
        }

    def _has_recalled(self, first_ms: int, last_ms: int) -> bool:
        """Whether any message that was due then was recalled."""
        end = _recalled_key(last_ms + 1, b"")
        return self._has_between(_recalled_key(first_ms, b""), end)

    def remove(self, entries: Sequence[Entry], done_ms: int) -> None:
        """Forget messages that wait no more.

        Args:
            entries: These.
            done_ms: Until then all messages were visited: their recalls go, too.
        """
        batch = self._batch()
        for entry in entries:
            batch.delete(entry.key)
        if self._has_recalled(0, done_ms - 1):
            batch.delete_range(_RECALLED, _recalled_key(done_ms, b""))
        self._write(batch)

    def sweep(self, done_ms: int, done_offset: int) -> int:
        """Forget messages that another node has visited.

        Args:
            done_ms: Until then it has visited all messages
            done_offset: that are before this one. Later ones may be late.

        Returns:
            Until when all messages were visited that are here: earlier, where some are
            late.
        """
        batch = self._batch()
        late_ms = None
        for entry in self._entries(FIRST_KEY):
            if entry.visit_ms > done_ms:
                break
            if entry.offset < done_offset:
                batch.delete(entry.key)
            elif late_ms is None:
                late_ms = entry.visit_ms
            if batch.len() >= _SWEEP:
                self._write(batch)
                batch = self._batch()
        self._write(batch)
        return done_ms if late_ms is None else late_ms - 1

    def page(
        self, after: bytes, topic: bytes | None, max_count: int, max_looks: int
    ) -> tuple[list[Entry], bytes | None]:
        """Messages that wait, those that are visited first first.

        Args:
            after: Behind the message that a page gave here; nothing for all.
            topic: Of this topic alone.
            max_count: No more than so many.
            max_looks: Look at no more than so many of any topic.

        Returns:
            They, without those that were recalled; and where to go on, or None.
        """
        found: list[Entry] = []
        prefix = b"%b+" % topic if topic is not None else b""
        # A key that no page gave is taken for the first or the last place.
        start = max(after + b"\x00", FIRST_KEY)
        for looks, entry in enumerate(self._entries(start)):
            if looks == max_looks or len(found) == max_count:
                return self._still(found), after
            after = entry.key
            if entry.identity.startswith(prefix):
                found.append(entry)
        return self._still(found), None

    def _still(self, entries: list[Entry]) -> list[Entry]:
        gone = self.recalled(entries) if entries else set()
        return [entry for entry in entries if entry.offset not in gone]

    def _entries(self, start: bytes) -> Iterator[Entry]:
        for key, value in self._from(start, _MESSAGE):
            _, visit_ms, offset = _KEY.unpack(key)
            due_ms, size, queue_id = _VALUE.unpack_from(value)
            identity = value[_VALUE.size :]
            yield Entry(visit_ms, offset, due_ms, size, queue_id, identity)


def _recalled_key(due_ms: int, identity: bytes) -> bytes:
    return _RECALLED + _TIME.pack(due_ms) + identity
