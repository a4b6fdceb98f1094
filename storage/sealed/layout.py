"""The bytes of sealed segments, version 2: what stands where. No I/O here.

    index     0  magic        4s   "RWTI"
              4  crc32        u32  of the header from 8 on, the topic and the blocks
              8  version      u16  2; the first 10 bytes mean the same in every version
             10  flags        u16  1 sparse, 2 zstd
             12  records      u32
             16  base offset  u64  of the first record
             24  end offset   u64  one past the last record's
             32  identity     u64  of the partition; 0 where the log has none
             40  least_ms     i64  the smallest store time
             48  most_ms      i64  the largest
             56  written_ms   i64  when the newest record was written
             64  due_ms       i64  when the first record may go; 0: never
             72  data_bytes   u64  the data file's size
             80  data_at      u32  where the first block stands in it
             84  keys         u32
             88  blocks       u32
             92  number       u16  of the partition
             94  topic_bytes  u16
             96  topic        UTF-8, zeros up to a multiple of 8
                 blocks       {first offset u64, records u32, raw bytes u32, stored
                              bytes u32, data crc32 u32, columns crc32 u32, 0 u32}
                 columns      of each block, see `columns`
    data         blocks       back to back, as stored; crc32 is of these bytes
    keys      0  magic        4s   "RWTK"
              4  crc32        u32  of every byte from 8 on
              8  version      u16  1
             10  0            u16
             12  keys         u32
             16  base offset  u64
             24  identity     u64
             32  keys         u64 each: hash << 32 | record, in ascending runs of 4096

Little-endian. A record is counted from its segment's first.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from ropeway.common.versions import newer
from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.sealed.compiled import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VERSION = 2
KEYS_VERSION = 1
INDEX_MAGIC, KEYS_MAGIC = b"RWTI", b"RWTK"
HEADER = struct.Struct("<4sIHHIQQQqqqqQIIIHH")
KEYS_HEADER = struct.Struct("<4sIHHIQQ")
BLOCK = struct.Struct("<QIIIIII")
SPARSE, ZSTD = 1, 2
"""Flags: offsets have gaps, and records due times and digests; blocks are zstd frames.
"""
_FLAGS = SPARSE | ZSTD
KEYS_A_RUN = 4096
"""Of one run: few enough to be sorted in the nearest cache, and without a list."""
KEY_BYTES = 8
INDEX_SUFFIX, DATA_SUFFIX = ".index", ".data"


class SegmentError(Exception):
    """The bytes of a segment are not what was written."""


class NewerSegmentError(SegmentError):
    """They are of a newer format, and nothing is wrong with them."""


class Whose(NamedTuple):
    """The partition that a segment is of."""

    topic: str
    number: int
    identity: int = 0
    """As `storage.replication.Run` has it; 0 where the log has none."""


class About(NamedTuple):
    """What a segment says of itself."""

    whose: Whose
    flags: int
    records: int
    base_offset: int
    end: int
    """One past its last record's offset."""
    least_ms: int
    most_ms: int
    written_ms: int
    due_ms: int
    data_bytes: int
    data_at: int = 0
    """Where the first block stands: data objects of version 1 begin with a header."""
    keys: int = 0

    @property
    def sparse(self) -> bool:
        """Whether offsets have gaps."""
        return bool(self.flags & SPARSE)


def encode_index(about: About, blocks: bytes, columns: Iterable[bytes]) -> bytes:
    """The bytes of an index.

    Args:
        about: What it says first.
        blocks: `BLOCK` of each.
        columns: Of each block.
    """
    topic = about.whose.topic.encode()
    header = HEADER.pack(
        *(INDEX_MAGIC, 0, VERSION, about.flags, about.records, about.base_offset),
        *(about.end, about.whose.identity, about.least_ms, about.most_ms),
        *(about.written_ms, about.due_ms, about.data_bytes, about.data_at),
        *(about.keys, len(blocks) // BLOCK.size, about.whose.number, len(topic)),
    )
    head = sealed(b"".join([header, topic, bytes(-len(topic) % 8), blocks]))
    return b"".join([head, *columns])


def head_bytes(topic: str, block_bytes: int) -> int:
    """How many bytes header, topic and blocks have."""
    return _blocks_at(len(topic.encode())) + block_bytes


def wanted_bytes(begin: bytes) -> int:
    """How much of an index `decode_head` needs.

    Args:
        begin: Its first `HEADER.size` bytes.
    """
    if len(begin) < HEADER.size:
        return HEADER.size
    blocks, _, topic_bytes = HEADER.unpack_from(begin)[-3:]
    return _blocks_at(topic_bytes) + int(blocks) * BLOCK.size


def decode_head(data: bytes) -> tuple[About, bytes]:
    """Read the head of an index: what it says of itself, and its `BLOCK`s as bytes.

    Args:
        data: The index, or `wanted_bytes` of it at least.

    Raises:
        SegmentError: It is not what was written.
        NewerSegmentError: It is of a newer format.
    """
    check_begin(data, INDEX_MAGIC, HEADER.size, VERSION)
    size = wanted_bytes(data)
    if len(data) < size:
        raise SegmentError(f"{len(data)} bytes; its header says {size} at least")
    head = data[:size]
    check_crc(head)
    fields = HEADER.unpack_from(head)
    flags, records, base_offset, end, identity = fields[3:8]
    if flags & ~_FLAGS:
        raise SegmentError(f"flags {flags}; allowed: 0 to {_FLAGS}")
    *times_and_sizes, _, number, topic_bytes = fields[8:]
    topic = head[HEADER.size : HEADER.size + topic_bytes].decode()
    whose = Whose(topic, number, identity)
    about = About(whose, flags, records, base_offset, end, *times_and_sizes)
    return about, head[_blocks_at(topic_bytes) :]


def _blocks_at(topic_bytes: int) -> int:
    return HEADER.size + topic_bytes + -topic_bytes % 8


def encode_keys(base_offset: int, identity: int, keys: bytes) -> bytes:
    """The bytes of a key object; `keys` stand in runs of `KEYS_A_RUN` already."""
    count = len(keys) // KEY_BYTES
    fields = (KEYS_MAGIC, 0, KEYS_VERSION, 0, count, base_offset, identity)
    return sealed(KEYS_HEADER.pack(*fields) + keys)


def decode_keys(data: bytes, about: About) -> memoryview:
    """The keys of a segment.

    Raises:
        SegmentError: It is not what was written, or is of a newer format.
    """
    check_begin(data, KEYS_MAGIC, KEYS_HEADER.size, KEYS_VERSION)
    check_crc(data)
    wanted = about.keys, about.base_offset, about.whose.identity
    if KEYS_HEADER.unpack_from(data)[4:] != wanted:
        raise SegmentError("its header is of another segment")
    if len(data) != KEYS_HEADER.size + about.keys * KEY_BYTES:
        raise SegmentError(f"{len(data)} bytes; its header says {about.keys} keys")
    return memoryview(data)[KEYS_HEADER.size :].cast("Q")


def records_with(keys: memoryview, key_hash: int) -> Iterator[list[int]]:
    """The records of a segment that have a key of that hash, newest first.

    Yields:
        Those of one run of keys, maybe none; the newest run first. A record with two
        such keys is there twice, maybe in two runs.
    """
    for low in reversed(range(0, len(keys), KEYS_A_RUN)):
        high = min(low + KEYS_A_RUN, len(keys))
        first = bisect_left(keys, key_hash << 32, low, high)
        end = bisect_left(keys, key_hash + 1 << 32, first, high)
        yield [key & 0xFFFFFFFF for key in reversed(keys[first:end])]


def sealed(data: bytes) -> bytes:
    """Bytes with the checksum of all of them in place."""
    checksum = crc32(memoryview(data)[CHECKED_FROM:])
    return data[:4] + checksum.to_bytes(4, "little") + data[CHECKED_FROM:]


def check_begin(data: bytes, magic: bytes, least: int, version: int) -> None:
    """Hold what bytes begin with against what they should be.

    Raises:
        SegmentError: They are of something else, or too few.
        NewerSegmentError: They are of a newer format.
    """
    if data[:4] != magic:
        raise SegmentError(f"it begins with {data[:4]!r}; allowed: {magic!r}")
    # Before the checksum, for a newer format may have its elsewhere.
    found = int.from_bytes(data[8:10], "little")
    if found > version:
        raise NewerSegmentError(newer("it", found, version))
    if len(data) < least:
        raise SegmentError(f"{len(data)} bytes; a header has {least}")


def check_crc(data: bytes) -> None:
    """Hold bytes against the checksum that they begin with.

    Raises:
        SegmentError: They are not what was written.
    """
    checksum = crc32(memoryview(data)[CHECKED_FROM:])
    if checksum != int.from_bytes(data[4:CHECKED_FROM], "little"):
        raise SegmentError("its checksum is wrong")
