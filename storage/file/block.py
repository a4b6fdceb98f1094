"""Commit blocks as bytes: what one event-loop tick writes. No I/O here.

     0  magic      4s   "RWYB"
     4  crc32      u32  of every byte from 8 to the end of the block
     8  version    u16  1; the first 16 bytes mean the same in every version
    10  zero       u16
    12  length     u32  of the whole block
    16  position   u64  of the block in the log: segment base + place in the file
    24  log_id     u64  drawn when the directory was made
    32  durable    u64  all before this position was synced when this was written
    40  written_ms i64  milliseconds since 1970
    48  runs       u32
    52  records    u32
    56  keys       u32
    60  data_bytes u32
    64  data       the records, back to back, those of one partition adjacent
        runs       {ordinal u32, count u32, base offset u64} each
        entries    {place in the segment u32, size u32, tag hash i32, store ms i64} each
        keys       u64 each: crc32 of topic and key << 32 | place in the segment

Little-endian. The directory comes after the data, so a record's place is known
without counting keys first; entries and keys go into the indexes as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from zlib import crc32

import msgspec

from ropeway.common.versions import newer
from ropeway.storage.api import Done, LogError, RecordParts
from ropeway.storage.checked_header import CHECKED_FROM, checked
from ropeway.storage.file.compiled import writing_may_be_compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAGIC = b"RWYB"
VERSION = 1
HEADER = struct.Struct("<4sIHHIQQQqIIII")
RUN = struct.Struct("<IIQ")
ENTRY = struct.Struct("<IIiq")
LENGTH = struct.Struct(">i")
"""How a stored message begins: its own size."""
KEY_BYTES = 8
WAITING_KEY_BYTES = 64
"""What a key takes in memory until it is written, about: a message may have thousands,
which take ten times as much as the message."""
_SIZE = struct.Struct(">I")
"""How a record begins."""
_size_at = _SIZE.unpack_from
_MOST_PLACE = (1 << 32) - 1
"""Where the checksum begins: after the magic and itself."""


class HasRuns(Protocol):
    """What a block says of a partition."""

    ordinal: int
    key_seed: int


P = TypeVar("P", bound=HasRuns)


class Run(msgspec.Struct, Generic[P], eq=False):
    """Appends of one partition that one block will carry."""

    partition: P
    base_offset: int
    count: int = 0
    appends: list[tuple[Sequence[RecordParts], int, Done]] = []


class Encoded(NamedTuple):
    """A block ready to be written: the header, then the body."""

    header: bytes
    body: bytes
    entries: bytes
    keys: bytes
    data_bytes: int


class Header(NamedTuple):
    """The header of a block that is whole."""

    log_id: int
    written_ms: int
    runs: int
    records: int
    keys: int
    data_bytes: int


class Block(NamedTuple):
    """A block that was read back and is whole."""

    length: int
    durable: int
    written_ms: int
    runs: list[tuple[int, int, bytes]]
    """Ordinal, base offset, entries."""
    keys: bytes


@writing_may_be_compiled
def lay_out(
    runs: Sequence[Run[Any]],
    base: int,
    place: int,
    log_id: int,
    durable: int,
    written_ms: int,
    /,
) -> tuple[bytes, bytes, bytes, bytes, int]:
    """Lay out a block that will stand at `place` of the segment with that base.

    Its compiled form makes the same bytes.

    Returns:
        What an `Encoded` is made of.

    Raises:
        OverflowError: The block would go over 4 GiB of its segment.
    """
    if place + HEADER.size + _body_bytes(runs) > _MOST_PLACE:
        raise OverflowError("a block goes over 4 GiB of its segment")
    parts: list[bytes] = []
    entries: list[bytes] = []
    keys: list[int] = []
    directory: list[bytes] = []
    entry = ENTRY.pack
    start = at = place + HEADER.size
    for run in runs:
        partition = run.partition
        seed = partition.key_seed
        directory.append(RUN.pack(partition.ordinal, run.count, run.base_offset))
        for records, store_ms, _ in run.appends:
            for data, tag_hash, words in records:
                size = len(data)
                parts.append(data)
                entries.append(entry(at, size, tag_hash, store_ms))
                for word in words:
                    keys.append(crc32(word.encode(), seed) << 32 | at)  # noqa: PERF401 - faster than extend here
                at += size
    packed_entries = b"".join(entries)
    packed_keys = struct.pack(f"<{len(keys)}Q", *keys)
    records_count = len(parts)
    parts += directory
    parts.append(packed_entries)
    parts.append(packed_keys)
    body = b"".join(parts)
    header = HEADER.pack(
        MAGIC,
        0,
        VERSION,
        0,
        HEADER.size + len(body),
        base + place,
        log_id,
        durable,
        written_ms,
        len(directory),
        records_count,
        len(keys),
        at - start,
    )
    header = checked(header, body)
    return header, body, packed_entries, packed_keys, at - start


def _body_bytes(runs: Sequence[Run[Any]]) -> int:
    total = len(runs) * RUN.size
    for run in runs:
        for records, _, _ in run.appends:
            for data, _, words in records:
                total += len(data) + ENTRY.size + KEY_BYTES * len(words)
    return total


@writing_may_be_compiled
def add_up(records: Sequence[RecordParts], most: int, /) -> tuple[int, int]:
    """The bytes and the keys of all records; -1 bytes where one is not a record.

    That is where it is too long, or begins with another size.
    """
    total = keys = 0
    for data, _, words in records:
        size = len(data)
        if not _SIZE.size <= size <= most or _size_at(data)[0] != size:
            return -1, 0
        total += size
        keys += len(words)
    return total, keys


def length_at(view: memoryview, place: int) -> int:
    """How long the block is that begins at a place, by what it says."""
    return int.from_bytes(view[place + 12 : place + 16], "little")


def read_header(view: memoryview) -> Header:
    """The header of a block whose checksum is right."""
    fields = HEADER.unpack_from(view)
    log_id, _, written_ms, runs, records, keys, data_bytes = fields[6:]
    return Header(log_id, written_ms, runs, records, keys, data_bytes)


def decode(  # noqa: PLR0911 - each reason to distrust a block is a line
    view: memoryview, place: int, base: int, log_id: int
) -> Block | None:
    """The block at a place of a segment; None where there is no whole one.

    Raises:
        LogError: The block is whole, and of a newer format.
    """
    if place + HEADER.size > len(view):
        return None
    (
        magic,
        checksum,
        version,
        _,
        length,
        position,
        its_log,
        durable,
        written_ms,
        run_count,
        record_count,
        key_count,
        data_bytes,
    ) = HEADER.unpack_from(view, place)
    end = place + length
    if magic != MAGIC or length < HEADER.size or end > len(view):
        return None
    if crc32(view[place + CHECKED_FROM : end]) != checksum:
        return None
    if version > VERSION:
        where = f"the block at position {base + place}"
        raise LogError(newer(where, version, VERSION))
    if position != base + place or its_log != log_id:
        return None
    run_at = place + HEADER.size + data_bytes
    entry_at = run_at + run_count * RUN.size
    key_at = entry_at + record_count * ENTRY.size
    if key_at + key_count * KEY_BYTES != end:
        return None
    runs = []
    for ordinal, count, base_offset in RUN.iter_unpack(view[run_at:entry_at]):
        after = entry_at + count * ENTRY.size
        runs.append((ordinal, base_offset, bytes(view[entry_at:after])))
        entry_at = after
    if entry_at != key_at:
        return None
    return Block(length, durable, written_ms, runs, bytes(view[key_at:end]))


def intact_after(
    view: memoryview,
    find: Callable[[bytes, int], int],
    place: int,
    base: int,
    log_id: int,
) -> Iterator[tuple[int, Block]]:
    """Whole blocks anywhere past a place, for telling a torn end from damage.

    `find` is that of the memory that is viewed: `mmap.find`, `bytes.find`.

    A record may hold the bytes of a block; it does not count as one, since it does
    not know this log's id and its own position.
    """
    at = place
    while (at := find(MAGIC, at)) >= 0:
        block = decode(view, at, base, log_id)
        if block is None:
            at += 1
        else:
            yield at, block
            at += block.length
