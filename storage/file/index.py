"""The sealed index of a segment: where each record is, in a file.

A sealed index is one file beside its segment:

     0  magic         4s   "RWYI"
     4  crc32         u32  of the header from 8 on, and of the directory
     8  version       u16  1
    10  zero          u16
    12  partitions    u32
    16  base          u64  of the segment
    24  log_id        u64
    32  segment_bytes u64  whole blocks in the segment
    40  newest_ms     i64  when its last block was written
    48  entries       u32
    52  keys          u32
    56  body_crc32    u32  of entries and keys
    60  zero          u32
    64  directory     ordinals u32 each, ascending; counts u32 each; base offsets u64
        entries       as in the blocks, by partition and offset
        keys          as in the blocks, in sorted runs of 4096, the last one shorter

An entry of size 0 stands for a record that was lost to damage.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.file.block import ENTRY, KEY_BYTES
from ropeway.storage.file.compiled import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGIC = b"RWYI"
VERSION = 1
HEADER = struct.Struct("<4sIHHIQQQqIIII")
Piece = bytes | bytearray | memoryview
"""Bytes that are written as they are."""
KEYS_A_RUN = 4096


class Span(NamedTuple):
    """The records of one partition in one segment: offsets, and the first entry."""

    base_offset: int
    records: int
    entry: int


class SealedIndex:
    """The directory of an index file. Its entries and keys stay in the file."""

    __slots__ = (
        "_bases",
        "_counts",
        "_entries_before",
        "_ordinals",
        "body_at",
        "body_crc",
        "checked",
        "entries",
        "key_bytes",
        "keys",
        "newest_ms",
        "segment_bytes",
    )

    def __init__(self, head: bytes, directory: bytes) -> None:
        fields = HEADER.unpack(head)
        count = fields[4]
        self.segment_bytes: int = fields[7]
        self.newest_ms: int = fields[8]
        self.entries: int = fields[9]
        self.keys: int = fields[10]
        self.key_bytes: int = self.keys * KEY_BYTES
        self.body_crc: int = fields[11]
        self.body_at = HEADER.size + len(directory)
        self.checked = False
        """Whether entries and keys have been held against their checksum."""
        self._ordinals = array("I", directory[: 4 * count])
        self._counts = array("I", directory[4 * count : 8 * count])
        self._bases = array("Q", directory[8 * count :])
        self._entries_before = array("I", accumulate(self._counts, initial=0))

    @property
    def file_bytes(self) -> int:
        """How long the file is."""
        return self.keys_at + self.key_bytes

    @property
    def runs(self) -> int:
        """How many runs of keys there are."""
        return -(-self.keys // KEYS_A_RUN)

    @property
    def keys_at(self) -> int:
        """Where the keys begin in the file."""
        return self.body_at + self.entries * ENTRY.size

    def span(self, ordinal: int) -> Span | None:
        """Which offsets of a partition are here."""
        at = bisect_left(self._ordinals, ordinal)
        if at == len(self._ordinals) or self._ordinals[at] != ordinal:
            return None
        return Span(self._bases[at], self._counts[at], self._entries_before[at])

    def ordinals(self) -> Iterable[int]:
        """The partitions that have records here."""
        return self._ordinals


def places_in(
    values: array[int] | memoryview, low: int, high: int, key_hash: int
) -> Iterator[int]:
    """Places of a key hash within one sorted run of key values, newest first."""
    at = bisect_left(values, key_hash + 1 << 32, low, high) - 1
    while at >= low and values[at] >> 32 == key_hash:
        yield values[at] & 0xFFFFFFFF
        at -= 1


def directory_bytes(head: bytes, base: int, log_id: int) -> int | None:
    """How long the directory behind this header is; None where it is no header."""
    if len(head) != HEADER.size:
        return None
    fields = HEADER.unpack(head)
    if fields[0] != MAGIC or fields[2] != VERSION or fields[5:7] != (base, log_id):
        return None
    return int(fields[4]) * 16


def load(head: bytes, directory: bytes) -> SealedIndex | None:
    """The sealed index of these bytes; None where they are not what was written."""
    checksum = HEADER.unpack(head)[1]
    if crc32(directory, crc32(head[CHECKED_FROM:])) != checksum:
        return None
    index = SealedIndex(head, directory)
    return index if sum(index._counts) == index.entries else None  # noqa: SLF001 - its own file
