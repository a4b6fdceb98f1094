"""Records of one partition that wait to become a segment, and their becoming one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.tiered import segment as segments
from ropeway.storage.tiered.columns import columns_of, cuts_of, in_runs
from ropeway.storage.tiered.compiled import crc32
from ropeway.storage.tiered.compression import CODES, compress
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.segment import KEYS_A_RUN, About, Block
from ropeway.storage.tiered.tier_config import BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.storage.replication import Run
    from ropeway.storage.tiered.compression import Compression


class Encoded(NamedTuple):
    """The objects of a segment, ready to be put."""

    name: SegmentName
    about: About
    data: list[bytes | memoryview]
    keys: bytes | None
    """None where no record has a key."""
    index_object: bytes

    @property
    def size(self) -> int:
        """Bytes of all its objects."""
        return self.about.data_bytes + len(self.keys or b"") + len(self.index_object)


class Pending:
    """What waits, as it came."""

    __slots__ = (
        "_entries",
        "_keys",
        "_pieces",
        "base_offset",
        "bytes",
        "identity",
        "number",
        "position",
        "records",
        "since_s",
        "topic",
        "written_ms",
    )

    def __init__(self, run: Run, position: int, since_s: float) -> None:
        self.topic = run.topic
        self.number = run.number
        self.identity = run.identity
        self.base_offset = run.base_offset
        self.position = position
        """Where the log is to be read again if this does not become a segment."""
        self.since_s = since_s
        self.records = 0
        self.bytes = 0
        self.written_ms = 0
        self._pieces: list[bytes] = []
        self._entries = bytearray()
        self._keys = bytearray()

    @property
    def end(self) -> int:
        """One past the last record's offset."""
        return self.base_offset + self.records

    def add(self, run: Run, written_ms: int) -> None:
        """Take records that begin where these end."""
        self._pieces.append(run.data)
        self._entries += run.entries
        self._keys += run.keys
        self.records += run.records
        self.bytes += len(run.data)
        self.written_ms = max(self.written_ms, written_ms)

    def encode(self, compression: Compression) -> Encoded:
        """Make the objects. It takes a while, and is for a thread."""
        times, sizes, tags, least_ms, most_ms = columns_of(self._entries)
        keys = in_runs(self._keys, self.base_offset, KEYS_A_RUN)
        code = CODES[compression]
        header = segments.data_header(
            self.base_offset, self.identity, self.records, code
        )
        stored: list[bytes | memoryview] = [header]
        cuts = cuts_of(sizes, BLOCK_BYTES)
        blocks = [
            _stored(pieces, records, code, stored)
            for (records, _), pieces in zip(
                cuts, pieces_of(self._pieces, [size for _, size in cuts]), strict=True
            )
        ]
        about = About(
            self.topic,
            self.number,
            self.identity,
            self.base_offset,
            self.records,
            least_ms,
            most_ms,
            self.written_ms,
            len(header) + sum(block.stored_bytes for block in blocks),
            len(keys) // segments.KEY_BYTES,
            code,
        )
        index = segments.encode_index(about, blocks, times, sizes, tags)
        name = SegmentName(
            self.topic, self.number, self.identity, self.base_offset, self.end
        )
        key_object = (
            segments.encode_keys(self.base_offset, self.identity, keys)
            if keys
            else None
        )
        return Encoded(name, about, stored, key_object, index)


def pieces_of(
    all_pieces: Sequence[bytes], sizes: Sequence[int]
) -> Iterator[list[bytes | memoryview]]:
    """Bytes that come in some pieces, cut anew by these sizes; nothing is copied."""
    coming = iter(all_pieces)
    left = memoryview(b"")
    for size in sizes:
        found: list[bytes | memoryview] = []
        wanted = size
        while wanted:
            if not left:
                left = memoryview(next(coming))
            found.append(left[:wanted])
            left = left[wanted:]
            wanted -= len(found[-1])
        yield found


def _stored(
    pieces: list[bytes | memoryview],
    records: int,
    code: int,
    stored: list[bytes | memoryview],
) -> Block:
    """Put a block's bytes behind what is stored already."""
    raw = sum(map(len, pieces))
    if code != CODES["none"]:
        pieces = [compress(code, b"".join(pieces))]
    checksum = 0
    for piece in pieces:
        checksum = crc32(piece, checksum)
    stored += pieces
    return Block(records, raw, sum(map(len, pieces)), checksum)
