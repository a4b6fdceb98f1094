"""The last offset of each key, in a bounded piece of memory. No I/O.

A key is known by 16 bytes of its SHA-256: that has a fixed size, and nobody can make
two keys that have it in common, as could be done with MD5. A slot is three numbers of
64 bits: both halves of the digest, and the offset + 1, which is 0 where it is free.
"""

from __future__ import annotations

from array import array
from hashlib import sha256
from typing import TYPE_CHECKING

from ropeway.storage.compaction import steps
from ropeway.storage.compaction_api import ROW

if TYPE_CHECKING:
    from ropeway.storage.compaction.bits import Bits
    from ropeway.storage.sealed.columns import Buffer

DIGEST_BYTES = 16
SLOT_BYTES = 24
_FULLEST = 0.75
"""Beyond that, looking for a free slot takes long."""
_FEWEST = 8


def digest(key: bytes) -> bytes:
    """What a key is known by."""
    return sha256(key, usedforsecurity=False).digest()[:DIGEST_BYTES]


class OffsetMap:
    """Open addressing over arrays of numbers: 32 bytes a key, and no object.

    Args:
        limit_bytes: The most memory that it takes.
        keys: The most keys that will come; it takes no more memory than they need.
    """

    __slots__ = ("_high", "_limit", "_low", "_offsets", "count", "slots")

    def __init__(self, limit_bytes: int, keys: int) -> None:
        wanted = int(keys / _FULLEST) + 1
        self.slots = max(min(limit_bytes // SLOT_BYTES, wanted), _FEWEST)
        """How many slots it has."""
        self._limit = int(self.slots * _FULLEST)
        zeros = array("Q", [0])
        self._low = zeros * self.slots
        self._high = zeros * self.slots
        self._offsets = zeros * self.slots
        self.count = 0
        """How many keys it has."""

    @property
    def is_full(self) -> bool:
        """Whether no further key may come."""
        return self.count >= self._limit

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return SLOT_BYTES * self.slots

    def note(self, rows: Buffer, first: int, stays: Bits) -> int:
        """Set the offsets of the keys of some records; those without one stay.

        Args:
            rows: Of the records; see `storage.compaction_api`.
            first: The first one's offset.
            stays: Gets what has no key.

        Returns:
            How many were taken before it was full.
        """
        bits = stays.cover(first + len(rows) // ROW.size)
        taken, self.count = steps.note(
            rows,
            first,
            self._low,
            self._high,
            self._offsets,
            self.count,
            self._limit,
            bits,
            stays.base,
        )
        return taken

    def mark(self, slot: int, count: int, stays: Bits, end: int) -> None:
        """Have the offsets in some slots stay; all are below `end`."""
        bits = stays.cover(end)
        steps.mark(self._offsets, slot, slot + count, bits, stays.base)

    def staying(self, due: Buffer, digests: Buffer, now_ms: int) -> bytes:
        """Which records have a key that is not here, and are not due: a byte each."""
        return steps.staying(due, digests, self._low, self._high, self._offsets, now_ms)
