"""Sealed segments for tests, dense and sparse, of records that say who they are."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from ropeway.storage.replication import ENTRY
from ropeway.storage.sealed.columns import ROW
from ropeway.storage.sealed.layout import SPARSE, ZSTD, Whose
from ropeway.storage.sealed.writer import BlockLimits, SegmentWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.sealed.layout import About

WHOSE = Whose("orders", 3, 0xABCDEF)
LIMITS = BlockLimits(3, 60)


class One(NamedTuple):
    """A record of a segment."""

    offset: int
    text: str = ""
    tag: int = 0
    store_ms: int = 1000
    due_ms: int = 0
    digest: bytes = bytes(16)

    @property
    def data(self) -> bytes:
        """Its bytes, with their count first."""
        return struct.pack(">i", 4 + len(self.text)) + self.text.encode()

    def row(self, *, sparse: bool) -> bytes:
        """What a writer is told of it."""
        size = len(self.data)
        if sparse:
            return ROW.pack(
                self.offset, size, self.tag, self.store_ms, self.due_ms, self.digest
            )
        return ENTRY.pack(77, size, self.tag, self.store_ms)


class Made(NamedTuple):
    """A segment's bytes."""

    about: About
    index: bytes
    data: bytes


def made(
    records: Sequence[One],
    flags: int = SPARSE,
    limits: BlockLimits = LIMITS,
    cut_after: frozenset[int] = frozenset(),
    at_once: int = 1,
) -> Made:
    """A segment of these records, given to its writer so many at once."""
    sparse = bool(flags & SPARSE)
    writer = SegmentWriter(WHOSE, flags, limits, records[0].offset)
    data = b""
    for first in range(0, len(records), at_once):
        some = records[first : first + at_once]
        writer.add(
            b"".join(one.data for one in some),
            b"".join(one.row(sparse=sparse) for one in some),
        )
        if first in cut_after:
            data += b"".join(writer.cut())
    data += b"".join(writer.cut(everything=True))
    about, index = writer.seal(written_ms=5)
    return Made(about, index, data)


@st.composite
def some_records(draw: st.DrawFn, flags: int) -> list[One]:
    """At least one record, with gaps where there may be some."""
    gaps = st.integers(1, 5) if flags & SPARSE else st.just(1)
    found = []
    offset = draw(st.integers(0, 1 << 50))
    for gap in draw(st.lists(gaps, min_size=1, max_size=20)):
        due_ms = draw(st.sampled_from([0, 5, 9])) if flags & SPARSE else 0
        digest = draw(st.binary(min_size=16, max_size=16)) if flags & SPARSE else b""
        text = draw(st.text("abc", max_size=30))
        store_ms = draw(st.integers(0, 1 << 42))
        tag = draw(st.integers(-2, 2))
        found.append(One(offset, text, tag, store_ms, due_ms, digest or bytes(16)))
        offset += gap
    return found


FLAGS = [0, SPARSE, ZSTD, SPARSE | ZSTD]
EXAMPLE = [
    One(7, "one coffee", -1, 1000, 0, b"k" * 16),
    One(9, "two", 5, 1001, 90, bytes(16)),
    One(12, "three" * 9, 5, 1002, 80, b"t" * 16),
    One(13, "four", 0, 1003, 0, b"f" * 16),
]
"""Of more than one block; sparse."""
DENSE = [one._replace(offset=7 + at) for at, one in enumerate(EXAMPLE)]
EXAMPLES = {flags: made(EXAMPLE if flags & SPARSE else DENSE, flags) for flags in FLAGS}
