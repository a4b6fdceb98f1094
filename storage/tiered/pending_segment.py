"""Records of one partition that wait to become a segment, and their becoming one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.sealed.columns import in_runs
from ropeway.storage.sealed.layout import (
    KEY_BYTES,
    KEYS_A_RUN,
    ZSTD,
    About,
    Whose,
    encode_keys,
)
from ropeway.storage.sealed.writer import BlockLimits, SegmentWriter
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_config import BLOCK_BYTES, MAX_RECORDS

if TYPE_CHECKING:
    from ropeway.storage.replication import Run
    from ropeway.storage.sealed.compression import Compression


class Encoded(NamedTuple):
    """The objects of a segment, ready to be put."""

    about: About
    data: list[bytes | memoryview]
    keys: bytes | None
    """None where no record has a key."""
    index_object: bytes

    @property
    def name(self) -> SegmentName:
        """What they are called."""
        return SegmentName(*self.about.whose, self.about.base_offset, self.about.end)

    @property
    def size(self) -> int:
        """Bytes of all its objects."""
        return self.about.data_bytes + len(self.keys or b"") + len(self.index_object)


class Pending:
    """What waits, as it came."""

    __slots__ = (
        "_keys",
        "_pieces",
        "base_offset",
        "bytes",
        "position",
        "records",
        "since_s",
        "whose",
        "written_ms",
    )

    def __init__(self, run: Run, position: int, since_s: float) -> None:
        self.whose = Whose(run.topic, run.number, run.identity)
        self.base_offset = run.base_offset
        self.position = position
        """Where the log is to be read again if this does not become a segment."""
        self.since_s = since_s
        self.records = 0
        self.bytes = 0
        self.written_ms = 0
        self._pieces: list[tuple[bytes, bytes]] = []
        self._keys = bytearray()

    @property
    def end(self) -> int:
        """One past the last record's offset."""
        return self.base_offset + self.records

    def add(self, run: Run, written_ms: int) -> None:
        """Take records that begin where these end."""
        self._pieces.append((run.data, run.entries))
        self._keys += run.keys
        self.records += run.records
        self.bytes += len(run.data)
        self.written_ms = max(self.written_ms, written_ms)

    def encode(self, compression: Compression) -> Encoded:
        """Make the objects. It takes a while, and is for a thread."""
        limits = BlockLimits(MAX_RECORDS, BLOCK_BYTES)
        flags = ZSTD if compression == "zstd" else 0
        writer = SegmentWriter(self.whose, flags, limits, self.base_offset)
        for data, entries in self._pieces:
            writer.add(data, entries)
        stored = writer.cut(everything=True)
        keys = in_runs(self._keys, self.base_offset, KEYS_A_RUN)
        about, index = writer.seal(self.written_ms, len(keys) // KEY_BYTES)
        return Encoded(about, stored, key_object(about, keys), index)


def key_object(about: About, keys: bytes) -> bytes | None:
    """The object that has the keys of a segment; None where it has none."""
    if not keys:
        return None
    return encode_keys(about.base_offset, about.whose.identity, keys)
