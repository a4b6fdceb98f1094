"""The ledger's entries in RocksDB: a cache of the log, made again where it is lost.

    "h" key  ->  value       a batch that is in a consumer's hands
    "n"      ->  the checkpoint: see `DerivedStore`

    key    visible time (8) pop time (8) start (8) queue id (4) group "@" topic
    value  attempts (2) open messages, a bit each (4) offset of each message (8)

Numbers are big endian, times are in milliseconds. A record of the log has changes, one
after the other: length of the key (2), key, length of the value (2), value; an empty
value says that the batch is out no more. So what is in the log goes to RocksDB as it
is.

A receipt says all that its key is made of: no key has to be searched for, and what is
due is at the front. What one call changes is written together. The system keeps it over
a kill of the process; what a power cut takes, the newest first, is read from the log
again.
"""

from __future__ import annotations

import struct
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node.derived_store import DerivedStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ropeway.gateway.node.derived_store import Checkpoint


_HAND_OUT = b"h"
_TIME = struct.Struct(">Q")
_KEY = struct.Struct(">QQQI")
_VALUE = struct.Struct(">HI")
_LENGTH = struct.Struct(">H")
_OFFSET_BYTES = 8

Change = tuple[bytes, bytes]
"""A key, and its value; an empty value where the batch is out no more."""
Place = tuple[str, str, int]
"""Group, topic, queue id."""


class Entry(NamedTuple):
    """A batch that is in a consumer's hands."""

    place: Place
    start: int
    pop_ms: int
    visible_ms: int
    attempts: int
    open: int
    """A bit for each message that is."""
    offsets: tuple[int, ...]

    def open_offsets(self) -> list[int]:
        """The messages that are open."""
        return [one for index, one in enumerate(self.offsets) if self.open >> index & 1]


def key_of(place: Place, start: int, pop_ms: int, visible_ms: int) -> bytes:
    """The key of a batch.

    Raises:
        ValueError: A number does not fit; so there is no such batch.
    """
    group, topic, queue_id = place
    try:
        fixed = _KEY.pack(visible_ms, pop_ms, start, queue_id)
    except struct.error as error:
        raise ValueError(f"no batch has such numbers: {error}") from error
    return fixed + f"{group}@{topic}".encode()


def value_of(attempts: int, open_bits: int, offsets: Sequence[int]) -> bytes:
    """The value of a batch."""
    return _VALUE.pack(attempts, open_bits) + struct.pack(f">{len(offsets)}Q", *offsets)


def entry_of(key: bytes, value: bytes) -> Entry:
    """What key and value say."""
    visible_ms, pop_ms, start, queue_id = _KEY.unpack_from(key)
    group, _, topic = key[_KEY.size :].decode().partition("@")
    attempts, open_bits = _VALUE.unpack_from(value)
    count = (len(value) - _VALUE.size) // _OFFSET_BYTES
    offsets = struct.unpack_from(f">{count}Q", value, _VALUE.size)
    return Entry(
        (group, topic, queue_id),
        start,
        pop_ms,
        visible_ms,
        attempts,
        open_bits,
        offsets,
    )


def visible_ms_of(key: bytes) -> int:
    """When the messages of a batch are visible."""
    visible_ms: int = _TIME.unpack_from(key)[0]
    return visible_ms


def dump(changes: Iterable[Change]) -> bytes:
    """The body of a record."""
    return b"".join(
        part
        for key, value in changes
        for part in (_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value)
    )


def load(body: bytes) -> Iterator[Change]:
    """The changes in a record's body, which is known to be whole."""
    at = 0
    while at < len(body):
        parts = []
        for _ in range(2):
            (length,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
            parts.append(body[at : at + length])
            at += length
        yield parts[0], parts[1]


class Store(DerivedStore):
    """The entries in a directory; one process, one thread at a time.

    Args:
        directory: Made where it is missing.
    """

    BLOOM_BITS = 10

    def apply(self, changes: Iterable[Change], checkpoint: Checkpoint) -> None:
        """Note what the log says.

        Args:
            changes: That, in order.
            checkpoint: How far the log was read then.
        """
        batch = self._batch()
        for key, value in changes:
            if value:
                batch.put(_HAND_OUT + key, value)
            else:
                batch.delete(_HAND_OUT + key)
        self._note(batch, checkpoint)
        self._write(batch)

    def get(self, keys: Sequence[bytes]) -> list[bytes]:
        """The values of keys; an empty one where there is none."""
        return [self._get(_HAND_OUT + key) or b"" for key in keys]

    def due(self, after_ms: int, until_ms: int, max_count: int) -> list[Change]:
        """The first batches that are visible after one moment and until another.

        Args:
            after_ms: None before: looking there takes time.
            until_ms: These are among them.
            max_count: No more than so many.
        """
        found = []
        for key, value in self._entries(after_ms):
            if visible_ms_of(key) > until_ms:
                break
            found.append((key, value))
            if len(found) == max_count:
                break
        return found

    def next_ms(self, after_ms: int) -> int | None:
        """When the next messages are visible; None where there are none."""
        for key, _ in self._entries(after_ms):
            return visible_ms_of(key)
        return None

    def counts(self) -> Counter[Place]:
        """How many messages are open, by queue; it looks at every entry."""
        found: Counter[Place] = Counter()
        for key, value in self._entries(0):
            entry = entry_of(key, value)
            found[entry.place] += entry.open.bit_count()
        return found

    def of_place(self, place: Place) -> list[Change]:
        """The batches of a queue; it looks at every entry."""
        group, topic, queue_id = place
        end = struct.pack(">I", queue_id) + f"{group}@{topic}".encode()
        at = _KEY.size - 4
        return [(key, value) for key, value in self._entries(0) if key[at:] == end]

    def page(self, after: bytes, max_count: int) -> list[Change]:
        """Batches in order, behind one that was given here; nothing for the first."""
        start = _HAND_OUT + after + b"\x00" * bool(after)
        pairs = islice(self._from(start, _HAND_OUT), max_count)
        return [(key[1:], value) for key, value in pairs]

    def _entries(self, after_ms: int) -> Iterator[Change]:
        start = _HAND_OUT + _TIME.pack(max(after_ms, 0))
        for key, value in self._from(start, _HAND_OUT):
            yield key[1:], value
