"""What is known of each record of a block: rows on the way in, columns in a segment.

    dense   store times i64 | sizes u32 | tag hashes i32              16 bytes each
    sparse  the same | offsets u64 | due times i64 | digests 16s      48 bytes each

Little-endian, a column after the other. All that looks at every record on its way into
a segment is here.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from ropeway.common.native import count_of
from ropeway.storage import key_runs
from ropeway.storage.replication import ENTRY
from ropeway.storage.sealed.compiled import may_be_compiled

Buffer = bytes | bytearray | memoryview

ROW = Struct("<QIiqq16s")
"""A record on its way into a sparse segment: offset, size, tag hash, store time, when
it may go though nothing replaces it (0: never), and the digest of its key (zeros where
it has none). On its way into a dense one it is `storage.replication.ENTRY`."""
_WORD_BYTES = 4
_DIGEST_BYTES = 16

in_runs = may_be_compiled(key_runs.in_runs)


class _Shape(NamedTuple):
    """Words of a row: how many, which is the size, and where each column begins."""

    words: int
    size: int
    columns: tuple[tuple[int, int], ...]
    """First word and words of each, in the order in which a block has them."""


_DENSE = _Shape(ENTRY.size // _WORD_BYTES, 1, ((3, 2), (1, 1), (2, 1)))
_SPARSE = _Shape(
    ROW.size // _WORD_BYTES, 2, ((4, 2), (2, 1), (3, 1), (0, 2), (6, 2), (8, 4))
)


def width_of(*, sparse: bool) -> int:
    """Bytes that the columns of one record take."""
    return _WORD_BYTES * sum(words for _, words in _shape_of(sparse).columns)


def row_bytes_of(*, sparse: bool) -> int:
    """Bytes of one row."""
    return _WORD_BYTES * _shape_of(sparse).words


def _shape_of(sparse: bool) -> _Shape:
    return _SPARSE if sparse else _DENSE


@may_be_compiled
def columns_of(
    rows: Buffer,
    sparse: bool,
) -> tuple[bytes, int, int, int]:
    """The columns of a block, its least and its most store time, and its first due one.

    Args:
        rows: `ROW` of each record, or `storage.replication.ENTRY`; at least one.
        sparse: Which of them.

    Raises:
        ValueError: There is none, or one is not whole.
    """
    shape = _shape_of(sparse)
    count = count_of(rows, shape.words * _WORD_BYTES, least=1)
    words = array("I", bytes(rows))
    found = []
    for first, width in shape.columns:
        column = array("I", bytes(_WORD_BYTES * width * count))
        for at in range(width):
            column[at::width] = words[first + at :: shape.words]
        found.append(column.tobytes())
    times = memoryview(found[0]).cast("q")
    due = memoryview(found[4]).cast("q") if sparse else ()
    return (
        b"".join(found),
        min(times),
        max(times),
        min((one for one in due if one), default=0),
    )


@may_be_compiled
def cuts_of(
    rows: Buffer,
    sparse: bool,
    most_records: int,
    most_bytes: int,
) -> list[tuple[int, int]]:
    """Blocks of neighbours: how many records and bytes each has.

    Args:
        rows: Of the records, as in `columns_of`; there may be none.
        sparse: Likewise.
        most_records: Of a block.
        most_bytes: Of a block, but where one record has more.

    Raises:
        ValueError: A row is not whole.
    """
    shape = _shape_of(sparse)
    count_of(rows, shape.words * _WORD_BYTES)
    cuts: list[tuple[int, int]] = []
    records = used = 0
    for size in array("I", bytes(rows))[shape.size :: shape.words]:
        if records and (records >= most_records or used + size > most_bytes):
            cuts.append((records, used))
            records = used = 0
        records, used = records + 1, used + size
    if records:
        cuts.append((records, used))
    return cuts


class Columns:
    """The columns of one block.

    Args:
        data: As a segment has them, of the right length.
        records: How many.
        first: The offset of the first one.
        sparse: Whether there are offsets, due times and digests.
    """

    __slots__ = (
        "digests",
        "due",
        "first",
        "last",
        "offsets",
        "records",
        "sizes",
        "tags",
        "times",
    )

    def __init__(
        self, data: memoryview, records: int, first: int, *, sparse: bool
    ) -> None:
        self.records = records
        self.first = first
        self.last = first + records - 1
        """The offset of the last one."""
        self.times = data[: 8 * records].cast("q")
        self.sizes = data[8 * records : 12 * records].cast("I")
        self.tags = data[12 * records : 16 * records].cast("i")
        self.offsets: memoryview | None = None
        """None where there are no gaps."""
        self.due = self.digests = data[:0]
        if sparse:
            self.offsets = data[16 * records : 24 * records].cast("Q")
            self.last = self.offsets[-1]
            self.due = data[24 * records : 32 * records].cast("q")
            self.digests = data[32 * records :]

    def at(self, offset: int) -> int:
        """Which record is the first one at an offset or after it."""
        if offset <= self.first:
            return 0
        if offset > self.last:
            return self.records
        if self.offsets is None:
            return offset - self.first
        return bisect_left(self.offsets, offset)

    def offset(self, at: int) -> int:
        """The offset of a record."""
        return self.first + at if self.offsets is None else int(self.offsets[at])

    def find(self, digest: bytes) -> int | None:
        """The record with a key's digest; None where there is none."""
        digests = bytes(self.digests)
        at = digests.find(digest)
        while at >= 0 and at % _DIGEST_BYTES:
            at = digests.find(digest, at + 1)
        return None if at < 0 else at // _DIGEST_BYTES

    def rows(self) -> bytes:
        """The columns of a sparse block as `ROW` of each record."""
        words = array("I", bytes(_SPARSE.words * _WORD_BYTES * self.records))
        for (first, width), column in zip(
            _SPARSE.columns,
            (self.times, self.sizes, self.tags, self.offsets, self.due, self.digests),
            strict=True,
        ):
            assert column is not None, "it is sparse"
            of_column = array("I", column.tobytes())
            for at in range(width):
                words[first + at :: _SPARSE.words] = of_column[at::width]
        return words.tobytes()
