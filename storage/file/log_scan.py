"""What stands in a stretch of a log, put together by partition.

Within a block the records of a partition stand together, but a block has little of
each; who copies a log wants much of each at once.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.file import block as blocks
from ropeway.storage.file.block import (
    ENTRY,
    HEADER,
    KEY_BYTES,
    MAGIC,
    RUN,
)
from ropeway.storage.file.compiled import crc32, may_be_compiled

_LOW = 0xFFFFFFFF
_FIRST_PLACE, _LAST = 0, -1

Group = tuple[int, int, int, bytes, bytes, bytes]
"""Ordinal, base offset and count of records of one partition without a gap in their
offsets; the records, their entries, and keys: hash << 32 | the offset's lower half."""

Gathered = tuple[int, bool, int, int, list[Group]]
"""How many bytes were whole blocks; whether damage stands behind them; the log's id and
the time of writing of the last block; the groups, by when they begin."""


class _Group(NamedTuple):
    ordinal: int
    base_offset: int
    data: list[memoryview]
    entries: list[memoryview]
    keys: list[int]

    @property
    def records(self) -> int:
        return sum(map(len, self.entries)) // ENTRY.size


@may_be_compiled
def gather(stretch: bytes) -> Gathered:
    """Put the records of whole blocks together by partition.

    Args:
        stretch: Bytes of a log from a block's first one on; of the last block, some
            may be missing.
    """
    view = memoryview(stretch)
    groups: list[_Group] = []
    newest: dict[int, tuple[_Group, int]] = {}
    at = log_id = written_ms = 0
    damaged = False
    while at + HEADER.size <= len(view):
        length = blocks.length_at(view, at)
        if at + length > len(view):
            break
        block = view[at : at + length]
        if not _is_whole(block) or not _take(block, groups, newest):
            damaged = True
            break
        header = blocks.read_header(block)
        log_id, written_ms = header.log_id, header.written_ms
        at += length
    found = [
        (
            group.ordinal,
            group.base_offset,
            group.records,
            b"".join(group.data),
            b"".join(group.entries),
            struct.pack(f"<{len(group.keys)}Q", *group.keys),
        )
        for group in groups
    ]
    return at, damaged, log_id, written_ms, found


def _is_whole(block: memoryview) -> bool:
    if len(block) < HEADER.size or block[:4] != MAGIC:
        return False
    checksum = int.from_bytes(block[4:CHECKED_FROM], "little")
    return crc32(block[CHECKED_FROM:]) == checksum


def _take(
    block: memoryview, groups: list[_Group], newest: dict[int, tuple[_Group, int]]
) -> bool:
    """Take the runs of a block; whether they are what its header says."""
    header = blocks.read_header(block)
    run_at = HEADER.size + header.data_bytes
    entry_at = run_at + header.runs * RUN.size
    key_at = entry_at + header.records * ENTRY.size
    if key_at + header.keys * KEY_BYTES != len(block):
        return False
    keys = block[key_at:].cast("Q")
    data_at, key = HEADER.size, 0
    for ordinal, count, base_offset in RUN.iter_unpack(block[run_at:entry_at]):
        after = entry_at + count * ENTRY.size
        if not count or after > key_at:
            return False
        entries = block[entry_at:after]
        places = [place for place, *_ in ENTRY.iter_unpack(entries)]
        last_size = ENTRY.unpack_from(entries, len(entries) - ENTRY.size)[1]
        data_end = data_at + places[_LAST] + last_size - places[_FIRST_PLACE]
        if not data_at <= data_end <= run_at:
            return False
        group, end = newest.get(ordinal, (None, 0))
        if group is None or end != base_offset:
            group = _Group(ordinal, base_offset, [], [], [])
            groups.append(group)
        newest[ordinal] = group, base_offset + count
        group.data.append(block[data_at:data_end])
        group.entries.append(entries)
        record = 0
        while key < len(keys) and keys[key] & _LOW <= places[_LAST]:
            while places[record] < keys[key] & _LOW:
                record += 1
            group.keys.append(keys[key] & ~_LOW | base_offset + record & _LOW)
            key += 1
        data_at, entry_at = data_end, after
    return True
