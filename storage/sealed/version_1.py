"""Indexes of version 1, of tiers and of compaction, as version 2 has them.

Version 1 was two formats; what they say is what version 2 says. So an index of theirs
becomes one of today by itself, and the data stay as they are.

    tier      0  magic "RWTI" 4s | crc32 u32 of all from 8 on | version u16 | zstd u16
             12  records u32 | base offset u64 | identity u64
             32  least_ms i64 | most_ms i64 | written_ms i64 | data_bytes u64
             64  keys u32 | blocks u32 | number u32 | topic_bytes u32
             80  topic, zeros up to a multiple of 8
                 blocks {records u32, raw bytes u32, stored bytes u32, crc32 u32}
                 store times i64 each | sizes u32 each | tag hashes i32 each
    compacted 0  magic "RWYC" 4s | crc32 u32 of header and directory | version u16
             10  records of a group u16 | records u32 | data_bytes u64
             24  newest_ms i64 | due_ms i64 | 0 u64
             48  directory {first offset u64, place u32, data crc32 u32, entries crc32
                            u32} of each group
                 entries {offset u64, place u32, size u32, tag hash i32, store ms i64,
                          due ms i64, digest 16s} each
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING
from zlib import crc32

from ropeway.common.versions import newer
from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.sealed.columns import ROW, columns_of
from ropeway.storage.sealed.layout import (
    BLOCK,
    INDEX_MAGIC,
    KEYS_HEADER,
    SPARSE,
    ZSTD,
    About,
    NewerSegmentError,
    SegmentError,
    Whose,
    check_crc,
    encode_index,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
_TIER = struct.Struct("<4sIHHIQQqqqQIIII")
_TIER_BLOCK = struct.Struct("<IIII")
_TIME_BYTES, _NUMBER_BYTES = 8, 4
_COMPACTED_MAGIC = b"RWYC"
_COMPACTED = struct.Struct("<4sIHHIQqqQ")
_GROUP = struct.Struct("<QIII")
_ENTRY = struct.Struct("<QIIiqq16s")


def of_tier(data: bytes) -> bytes | None:
    """An index of a tier as today's; None where it is not one of version 1.

    Raises:
        SegmentError: It is not what was written.
    """
    if data[:4] != INDEX_MAGIC or data[8:10] != VERSION.to_bytes(2, "little"):
        return None
    if len(data) < _TIER.size:
        raise SegmentError(f"{len(data)} bytes; a header has {_TIER.size}")
    check_crc(data)
    _, _, _, zstd, records, base, identity, *times_and_size = _TIER.unpack_from(data)
    keys, block_count, number, topic_bytes = times_and_size[4:]
    least_ms, most_ms, written_ms, data_bytes = times_and_size[:4]
    at = _TIER.size + topic_bytes + -topic_bytes % 8
    blocks = data[at : at + block_count * _TIER_BLOCK.size]
    at += len(blocks)
    columns = memoryview(data)[at:]
    if len(columns) != records * (_TIME_BYTES + 2 * _NUMBER_BYTES):
        raise SegmentError(f"{len(columns)} bytes of columns for {records} records")
    ends = [records * _TIME_BYTES, records * (_TIME_BYTES + _NUMBER_BYTES)]
    wholes = [
        (columns[: ends[0]], _TIME_BYTES),
        (columns[ends[0] : ends[1]], _NUMBER_BYTES),
        (columns[ends[1] :], _NUMBER_BYTES),
    ]
    counts, raw, stored, crcs = zip(*_TIER_BLOCK.iter_unpack(blocks), strict=True)
    starts = [*accumulate(counts, initial=0)]
    found = [
        b"".join(whole[first * size : end * size] for whole, size in wholes)
        for first, end in pairwise(starts)
    ]
    firsts = [base + start for start in starts[:-1]]
    topic = data[_TIER.size : _TIER.size + topic_bytes].decode()
    about = About(
        *(Whose(topic, number, identity), ZSTD if zstd else 0, records, base),
        *(base + records, least_ms, most_ms, written_ms, 0, data_bytes),
        *(KEYS_HEADER.size, keys),
    )
    blocks = _blocks(zip(firsts, counts, raw, stored, crcs, strict=True), found)
    return encode_index(about, blocks, found)


def of_compaction(data: bytes, whose: Whose) -> bytes | None:
    """An index of compacted records as today's; None where it is not of version 1.

    Args:
        data: The whole file.
        whose: It does not say.

    Raises:
        SegmentError: It is not what was written.
        NewerSegmentError: It is of a version that there never was.
    """
    if data[:4] != _COMPACTED_MAGIC:
        return None
    if (version := int.from_bytes(data[8:10], "little")) > VERSION:
        raise NewerSegmentError(newer("it", version, VERSION))
    if len(data) < _COMPACTED.size:
        raise SegmentError(f"{len(data)} bytes; a header has {_COMPACTED.size}")
    _, checksum, _, group, records, data_bytes, newest_ms, due_ms, _ = (
        _COMPACTED.unpack_from(data)
    )
    at = _COMPACTED.size + -(-records // max(group, 1)) * _GROUP.size
    if crc32(data[CHECKED_FROM:at]) != checksum:
        raise SegmentError("its directory is damaged")
    firsts, places, data_crcs, entry_crcs = zip(
        *_GROUP.iter_unpack(data[_COMPACTED.size : at]), strict=True
    )
    found, counts, least_ms = [], [], newest_ms
    last = firsts[0]
    for entry_crc in entry_crcs:
        entries = data[at : at + group * _ENTRY.size]
        if crc32(entries) != entry_crc:
            raise SegmentError(f"entries at {at}: not what was written")
        at += len(entries)
        rows = [
            ROW.pack(offset, *of_row)
            for offset, _, *of_row in _ENTRY.iter_unpack(entries)
        ]
        columns, its_least_ms, _, _ = columns_of(b"".join(rows), True)
        found.append(columns)
        counts.append(len(rows))
        least_ms = min(least_ms, its_least_ms)
        (last, *_) = ROW.unpack(rows[-1])
    if at != len(data) or sum(counts) != records:
        raise SegmentError(f"{len(data)} bytes; its header says {records} records")
    sizes = [after - place for place, after in pairwise([*places, data_bytes])]
    about = About(
        *(whose, SPARSE, records, firsts[0], last + 1, least_ms, newest_ms, newest_ms),
        *(due_ms, data_bytes),
    )
    blocks = _blocks(zip(firsts, counts, sizes, sizes, data_crcs, strict=True), found)
    return encode_index(about, blocks, found)


def _blocks(
    some: Iterable[tuple[int, int, int, int, int]], columns: list[bytes]
) -> bytes:
    """`BLOCK` of each: all that it has but for its columns' checksum is given."""
    return b"".join(
        BLOCK.pack(*one, crc32(of_block), 0)
        for one, of_block in zip(some, columns, strict=True)
    )
