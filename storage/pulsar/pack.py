"""Packs as bytes: the records that one Pulsar message carries. No I/O here.

     0  magic       4s   "RWYP"
     4  crc32       u32  of every byte from 8 to the data
     8  version     u16  1; the first 10 bytes mean the same in every version
    10  zero        u16
    12  length      u32  of the whole pack
    16  base_offset u64  of the first record
    24  count       u32  records; 0 in a marker, which ends here
    28  keys        u32
    32  ends        u32 a record: where it ends, counted from the data's beginning
        tags        i32 a record: its tag hash
        times       i64 a record: its store time in ms
        hashes      u32 a key: its crc32
        owners      u32 a key: which record has it, counted from 0
        data        the records, back to back

Little-endian, as the machines are. Tables are columns, so a reader looks single
values up in place and cuts records out without going over the others. The data has no
checksum here: Pulsar keeps one of each message, and a stored message one of its body.

A marker is a pack without records. It tells only where the next one begins.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from ropeway.common.versions import newer
from ropeway.storage.checked_header import CHECKED_FROM, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import Done, Filter, RecordParts

    Append = tuple[Sequence[RecordParts], int, Done | None, int]
    """Records, store time, callback, bytes: as they came to `Partition.append`."""

MAGIC = b"RWYP"
VERSION = 1
HEADER = Struct("<4sIHHIQII")
RECORD_BYTES = 16
"""What the tables hold of a record."""
KEY_BYTES = 8
"""And of a key."""


class UnknownPackError(Exception):
    """These bytes are no pack that this program can read; says what came instead."""


class Pack:
    """A pack that is whole: its tables and records, looked at in place."""

    __slots__ = ("_keys", "_view", "base_offset", "count", "data", "end", "ends")

    def __init__(
        self, view: memoryview, base_offset: int, count: int, keys: int
    ) -> None:
        self._view = view
        self._keys = keys
        self.base_offset = base_offset
        self.count = count
        self.end = base_offset + count
        """One past the offset of the last record."""
        self.ends = view[HEADER.size : HEADER.size + 4 * count].cast("I")
        self.data = view[HEADER.size + RECORD_BYTES * count + KEY_BYTES * keys :]

    @property
    def length(self) -> int:
        """Bytes of the whole pack."""
        return len(self._view)

    @property
    def tags(self) -> memoryview:
        """The tag hash of each record."""
        at = HEADER.size + 4 * self.count
        return self._view[at : at + 4 * self.count].cast("i")

    @property
    def times(self) -> memoryview:
        """The store time of each record, in milliseconds."""
        at = HEADER.size + 8 * self.count
        return self._view[at : at + 8 * self.count].cast("q")

    def record(self, number: int) -> memoryview:
        """One record, counted from 0."""
        begin = self.ends[number - 1] if number else 0
        return self.data[begin : self.ends[number]]

    def having(self, key_hash: int) -> list[int]:
        """Which records have a key with this hash, counted from 0."""
        at = HEADER.size + RECORD_BYTES * self.count
        middle = at + 4 * self._keys
        hashes = self._view[at:middle].cast("I").tolist()
        if key_hash not in hashes:
            return []
        owners = self._view[middle : middle + 4 * self._keys].cast("I")
        found = [owners[i] for i, one in enumerate(hashes) if one == key_hash]
        return list(dict.fromkeys(found))


def hash_key(key: str) -> int:
    """What a pack keeps of a key."""
    return crc32(key.encode())


def encode(appends: Sequence[Append], base_offset: int) -> bytes:
    """Lay out records that get consecutive offsets."""
    parts: list[bytes] = []
    ends: list[int] = []
    tags: list[int] = []
    times: list[int] = []
    hashes: list[int] = []
    owners: list[int] = []
    at = 0
    for records, store_ms, _, _ in appends:
        for data, tag_hash, words in records:
            for word in words:
                hashes.append(crc32(word.encode()))
                owners.append(len(parts))
            parts.append(data)
            at += len(data)
            ends.append(at)
            tags.append(tag_hash)
            times.append(store_ms)
    count = len(parts)
    tables = _tables(count, len(hashes)).pack(*ends, *tags, *times, *hashes, *owners)
    length = HEADER.size + len(tables) + at
    header = HEADER.pack(MAGIC, 0, VERSION, 0, length, base_offset, count, len(hashes))
    return b"".join([checked(header, tables), tables, *parts])


def encode_marker(base_offset: int) -> bytes:
    """Lay out a pack without records."""
    header = HEADER.pack(MAGIC, 0, VERSION, 0, HEADER.size, base_offset, 0, 0)
    return checked(header)


def peel(pack: bytes) -> Pack:
    """The pack in bytes that `encode` has just made."""
    *_, base_offset, count, keys = HEADER.unpack_from(pack)
    return Pack(memoryview(pack), base_offset, count, keys)


def decode(view: memoryview) -> Pack:
    """The pack in a message's payload.

    Raises:
        UnknownPackError: It is not one, or of a newer format.
    """
    if len(view) < HEADER.size or view[:4] != MAGIC:
        raise UnknownPackError(
            f"{len(view)} bytes that begin with {bytes(view[:4])!r}; "
            f"allowed: a pack, which begins with {MAGIC!r}"
        )
    _, checksum, version, _, length, base_offset, count, keys = HEADER.unpack_from(view)
    if version != VERSION:
        raise UnknownPackError(newer("a pack that", version, VERSION))
    data_at = HEADER.size + RECORD_BYTES * count + KEY_BYTES * keys
    if length != len(view) or data_at > length:
        raise UnknownPackError(
            f"a pack of {len(view)} bytes that says it has {length} and {count} records"
        )
    if crc32(view[CHECKED_FROM:data_at]) != checksum:
        raise UnknownPackError("a pack whose checksum is wrong")
    pack = Pack(view, base_offset, count, keys)
    records_end = pack.ends[-1] if count else 0
    if records_end != length - data_at:
        raise UnknownPackError(
            f"a pack with {length - data_at} bytes of records; "
            f"its table ends at {records_end}"
        )
    return pack


def take(
    pack: Pack,
    begin: int,
    stop: int,
    max_bytes: int,
    *,
    forced: bool,
    into: list[bytes | memoryview],
) -> tuple[int, int]:
    """Cut out records that follow each other.

    Args:
        pack: Where they are.
        begin: The number of the first one in the pack.
        stop: One past the last one.
        max_bytes: Stop before the record that would go over.
        forced: Take the first one, however long it is.
        into: Gets one slice, or nothing.

    Returns:
        How many records, and how many bytes.
    """
    ends = pack.ends
    start = ends[begin - 1] if begin else 0
    if ends[stop - 1] - start > max_bytes:
        stop = bisect_right(ends, start + max_bytes, begin, stop)
        if stop == begin:
            if not forced:
                return 0, 0
            stop = begin + 1
    after = ends[stop - 1]
    into.append(pack.data[start:after])
    return stop - begin, after - start


def matching(pack: Pack, begin: int, stop: int, wanted: Filter) -> list[int]:
    """The numbers of records whose tag hash a filter lets through."""
    if wanted.tag_hashes is None:
        return list(range(begin, stop))
    hashes = wanted.tag_hashes
    tags = pack.tags[begin:stop].tolist()
    return [number for number, tag in enumerate(tags, begin) if tag in hashes]


@lru_cache(maxsize=512)
def _tables(count: int, keys: int) -> Struct:
    return Struct(f"<{count}I{count}i{count}q{2 * keys}I")
