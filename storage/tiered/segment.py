"""The bytes of tiered segments: data, keys, index. Pure: no I/O, nothing of a gateway.

    index     0  magic        4s   "RWTI"
              4  crc32        u32  of every byte from 8 on
              8  version      u16  1; the first 10 bytes mean the same in every version
             10  compression  u16  0 none, 1 zstd
             12  records      u32
             16  base offset  u64
             24  identity     u64  of the partition
             32  least_ms     i64  the smallest store time
             40  most_ms      i64  the largest
             48  written_ms   i64  when the newest record was written
             56  data_bytes   u64  the data object's size
             64  keys         u32
             68  blocks       u32
             72  number       u32  of the partition
             76  topic_bytes  u32
             80  topic        UTF-8, zeros up to a multiple of 8
                 blocks       {records u32, raw bytes u32, stored bytes u32, crc32 u32}
                 store times  i64 each
                 sizes        u32 each
                 tag hashes   i32 each
    data      0  magic        4s   "RWTD"
              4  crc32        u32  of the bytes from 8 to 32
              8  version      u16
             10  compression  u16
             12  records      u32
             16  base offset  u64
             24  identity     u64
             32  blocks       as stored; crc32 is of these bytes
    keys      0  as the data object's, with magic "RWTK" and the count of keys, but
              4  crc32        u32  of every byte from 8 on
             32  keys         u64 each: hash << 32 | record, in ascending runs of 4096

Little-endian. A record is counted from its segment's first.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.tiered.compiled import crc32
from ropeway.storage.tiered.compression import decompress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VERSION = 1
INDEX_MAGIC, DATA_MAGIC, KEYS_MAGIC = b"RWTI", b"RWTD", b"RWTK"
INDEX = struct.Struct("<4sIHHIQQqqqQIIII")
HEAD = struct.Struct("<4sIHHIQQ")
"""Of data and key objects."""
BLOCK = struct.Struct("<IIII")
CHECKED_FROM = 8
KEYS_A_RUN = 4096
"""Of one run: few enough to be sorted in the nearest cache, and without a list."""
TIME_BYTES, NUMBER_BYTES, KEY_BYTES = 8, 4, 8


class SegmentError(Exception):
    """The bytes of an object are not what was written, or are of a newer format."""


class Block(NamedTuple):
    """One block of the data object."""

    records: int
    raw_bytes: int
    stored_bytes: int
    crc32: int


class About(NamedTuple):
    """What a segment says of itself."""

    topic: str
    number: int
    identity: int
    base_offset: int
    records: int
    least_ms: int
    most_ms: int
    written_ms: int
    data_bytes: int
    keys: int
    compression: int

    @property
    def end(self) -> int:
        """One past its last record's offset."""
        return self.base_offset + self.records


class Index:
    """An index object: which block has a record, and what is known without that."""

    def __init__(
        self, about: About, blocks: list[Block], columns: memoryview, size: int
    ) -> None:
        self.about = about
        self.blocks = blocks
        self.size = size
        """Bytes that it takes."""
        times = about.records * TIME_BYTES
        sizes = times + about.records * NUMBER_BYTES
        self.times = columns[:times].cast("q")
        self.sizes = columns[times:sizes].cast("I")
        self.tags = columns[sizes:].cast("i")

    @cached_property
    def starts(self) -> list[int]:
        """The first record of each block, and one past the last record."""
        return list(accumulate((block.records for block in self.blocks), initial=0))

    @cached_property
    def places(self) -> list[int]:
        """Where each block stands in the data object, and its end."""
        sizes = (block.stored_bytes for block in self.blocks)
        return list(accumulate(sizes, initial=HEAD.size))


def encode_index(
    about: About,
    blocks: Sequence[Block],
    times: bytes | memoryview,
    sizes: bytes | memoryview,
    tags: bytes | memoryview,
) -> bytes:
    """The bytes of an index object."""
    topic = about.topic.encode()
    body = b"".join(
        [
            topic,
            bytes(-len(topic) % 8),
            *(BLOCK.pack(*block) for block in blocks),
            times,
            sizes,
            tags,
        ]
    )
    header = INDEX.pack(
        INDEX_MAGIC,
        0,
        VERSION,
        about.compression,
        about.records,
        about.base_offset,
        about.identity,
        about.least_ms,
        about.most_ms,
        about.written_ms,
        about.data_bytes,
        about.keys,
        len(blocks),
        about.number,
        len(topic),
    )
    return _sealed(header + body)


def decode_index(data: bytes) -> Index:
    """Read an index object.

    Raises:
        SegmentError: It is not what was written, or is of a newer format.
    """
    _check(data, INDEX_MAGIC, INDEX.size, len(data))
    fields = INDEX.unpack_from(data)
    compression, records, base_offset, identity = fields[3:7]
    least_ms, most_ms, written_ms, data_bytes = fields[7:11]
    keys, block_count, number, topic_bytes = fields[11:]
    blocks_at = INDEX.size + topic_bytes + -topic_bytes % 8
    columns_at = blocks_at + block_count * BLOCK.size
    wanted = columns_at + records * (TIME_BYTES + 2 * NUMBER_BYTES)
    if wanted != len(data):
        raise SegmentError(f"{len(data)} bytes; its header says {wanted}")
    about = About(
        data[INDEX.size : INDEX.size + topic_bytes].decode(),
        number,
        identity,
        base_offset,
        records,
        least_ms,
        most_ms,
        written_ms,
        data_bytes,
        keys,
        compression,
    )
    blocks = [*map(Block._make, BLOCK.iter_unpack(data[blocks_at:columns_at]))]
    index = Index(about, blocks, memoryview(data)[columns_at:], len(data))
    if index.starts[-1] != records or index.places[-1] != data_bytes:
        raise SegmentError("its blocks do not add up to its header")
    return index


def data_header(base_offset: int, identity: int, records: int, code: int) -> bytes:
    """What a data object begins with."""
    return _sealed(
        HEAD.pack(DATA_MAGIC, 0, VERSION, code, records, base_offset, identity)
    )


def check_data_header(data: bytes, about: About) -> None:
    """Hold the first bytes of a data object against its index.

    Raises:
        SegmentError: They are not those of that segment.
    """
    _check(data, DATA_MAGIC, HEAD.size, HEAD.size)
    if HEAD.unpack_from(data)[4:] != (about.records, about.base_offset, about.identity):
        raise SegmentError("its header is of another segment")


def encode_keys(base_offset: int, identity: int, keys: bytes) -> bytes:
    """The bytes of a key object; `keys` stand in runs of `KEYS_A_RUN` already."""
    count = len(keys) // KEY_BYTES
    header = HEAD.pack(KEYS_MAGIC, 0, VERSION, 0, count, base_offset, identity)
    return _sealed(header + keys)


def decode_keys(data: bytes, about: About) -> memoryview:
    """The keys of a segment.

    Raises:
        SegmentError: It is not what was written, or is of a newer format.
    """
    _check(data, KEYS_MAGIC, HEAD.size, len(data))
    if HEAD.unpack_from(data)[4:] != (about.keys, about.base_offset, about.identity):
        raise SegmentError("its header is of another segment")
    if len(data) != HEAD.size + about.keys * KEY_BYTES:
        raise SegmentError(f"{len(data)} bytes; its header says {about.keys} keys")
    return memoryview(data)[HEAD.size :].cast("Q")


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


def open_block(index: Index, number: int, stored: bytes | memoryview) -> bytes:
    """The records of a block, back to back.

    Raises:
        SegmentError: It is not what was written.
    """
    block = index.blocks[number]
    if len(stored) != block.stored_bytes:
        raise SegmentError(
            f"block {number} has {len(stored)} bytes; the index says "
            f"{block.stored_bytes}"
        )
    if crc32(stored) != block.crc32:
        raise SegmentError(f"block {number} has another checksum than the index says")
    try:
        return decompress(index.about.compression, stored, block.raw_bytes)
    except ValueError as error:
        raise SegmentError(f"block {number}: {error}") from error


def _sealed(data: bytes) -> bytes:
    """An object with its checksum in place."""
    checksum = crc32(memoryview(data)[CHECKED_FROM:])
    return data[:4] + checksum.to_bytes(4, "little") + data[CHECKED_FROM:]


def _check(data: bytes, magic: bytes, least: int, checked_to: int) -> None:
    if data[:4] != magic:
        raise SegmentError(f"it begins with {data[:4]!r}; allowed: {magic!r}")
    if len(data) < least:
        raise SegmentError(f"{len(data)} bytes; a header has {least}")
    # First, for a newer format may have its checksum elsewhere.
    version = int.from_bytes(data[8:10], "little")
    if version > VERSION:
        raise SegmentError(
            f"it has format {version}; this program reads up to {VERSION}: "
            "use a newer one"
        )
    checksum = crc32(memoryview(data)[CHECKED_FROM:checked_to])
    if checksum != int.from_bytes(data[4:CHECKED_FROM], "little"):
        raise SegmentError("its checksum is wrong")
