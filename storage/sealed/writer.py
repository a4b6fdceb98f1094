"""Making a segment: takes records, gives what its files have. No I/O here."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.sealed.columns import ROW, columns_of, cuts_of, row_bytes_of
from ropeway.storage.sealed.compiled import crc32
from ropeway.storage.sealed.compression import compress
from ropeway.storage.sealed.layout import BLOCK, SPARSE, ZSTD, About, encode_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.sealed.columns import Buffer
    from ropeway.storage.sealed.index import Index
    from ropeway.storage.sealed.layout import Whose


class BlockLimits(NamedTuple):
    """What a block has at most, but where one record has more bytes."""

    records: int
    bytes: int


class SegmentWriter:
    """Gathers records and cuts them into blocks. One thread at a time.

    Args:
        whose: The partition that they are of.
        flags: See `layout`.
        limits: Of a block.
        base_offset: Of the first record, where the segment is dense.
    """

    def __init__(
        self, whose: Whose, flags: int, limits: BlockLimits, base_offset: int = 0
    ) -> None:
        self._whose = whose
        self._flags = flags
        self._limits = limits
        self._sparse = bool(flags & SPARSE)
        self.records = 0
        """How many are in blocks."""
        self.data_bytes = 0
        """What their blocks take as stored."""
        self.waiting_bytes = 0
        """What is in no block yet."""
        self._base = self._end = base_offset
        self._pieces: deque[Buffer] = deque()
        self._rows = bytearray()
        self._blocks = bytearray()
        self._columns: list[bytes] = []
        self._times: list[tuple[int, ...]] = []

    @property
    def is_empty(self) -> bool:
        """Whether no record came yet."""
        return not (self.records or self._rows)

    def add(self, data: Buffer, rows: Buffer) -> None:
        """Take records that come next, by offset.

        Args:
            data: Back to back; must not be changed.
            rows: What is known of each, see `columns.columns_of`.
        """
        self._pieces.append(data)
        self._rows += rows
        self.waiting_bytes += len(data)

    def cut(self, *, everything: bool = False) -> list[bytes | memoryview]:
        """Make blocks; what is next in the data file.

        Args:
            everything: Of what is left, too; otherwise the last one waits for more.
        """
        cuts = cuts_of(self._rows, self._sparse, *self._limits)
        if not everything:
            cuts = cuts[:-1]
        row_bytes = row_bytes_of(sparse=self._sparse)
        stored: list[bytes | memoryview] = []
        at = 0
        for records, size in cuts:
            after = at + records * row_bytes
            stored += self._block(self._rows[at:after], records, self._taken(size))
            at = after
        del self._rows[:at]
        return stored

    def _taken(self, size: int) -> list[memoryview]:
        """The next bytes of those that wait; nothing is copied."""
        self.waiting_bytes -= size
        found: list[memoryview] = []
        while size:
            piece = memoryview(self._pieces.popleft())
            if len(piece) > size:
                self._pieces.appendleft(piece[size:])
                piece = piece[:size]
            found.append(piece)
            size -= len(piece)
        return found

    def _block(
        self, rows: bytearray, records: int, pieces: list[memoryview]
    ) -> list[memoryview]:
        raw_bytes = sum(map(len, pieces))
        if self._flags & ZSTD:
            pieces = [compress(b"".join(pieces))]
        checksum = 0
        for piece in pieces:
            checksum = crc32(piece, checksum)
        stored_bytes = sum(map(len, pieces))
        columns, *times = columns_of(rows, self._sparse)
        first = self._end
        self._end += records
        if self._sparse:
            first, *_ = ROW.unpack_from(rows)
            self._end = ROW.unpack_from(rows, len(rows) - ROW.size)[0] + 1
        if not self._columns:
            self._base = first
        self._blocks += BLOCK.pack(
            first, records, raw_bytes, stored_bytes, checksum, crc32(columns), 0
        )
        self._columns.append(columns)
        self._times.append(tuple(times))
        self.records += records
        self.data_bytes += stored_bytes
        return pieces

    def seal(self, written_ms: int | None = None, keys: int = 0) -> tuple[About, bytes]:
        """What the segment says of itself, and its index; all was cut into blocks.

        Args:
            written_ms: When the newest record was written; None: its store time.
            keys: How many the key object has.
        """
        assert not self._rows, "everything is cut first"
        least, most, due = zip(*self._times, strict=True)
        about = About(
            *(self._whose, self._flags, self.records, self._base, self._end),
            *(min(least), max(most), max(most) if written_ms is None else written_ms),
            *(min((one for one in due if one), default=0), self.data_bytes, 0, keys),
        )
        return about, encode_index(about, bytes(self._blocks), self._columns)


def join(indexes: Sequence[Index], keys: int) -> tuple[About, bytes]:
    """What one segment with the blocks of several says of itself, and its index.

    Args:
        indexes: Of segments that follow on each other, each whole in memory; their
            blocks are taken as they are.
        keys: How many the key object has.
    """
    abouts = [index.about for index in indexes]
    about = abouts[0]._replace(
        records=sum(one.records for one in abouts),
        end=abouts[-1].end,
        least_ms=min(one.least_ms for one in abouts),
        most_ms=max(one.most_ms for one in abouts),
        written_ms=max(one.written_ms for one in abouts),
        due_ms=min((one.due_ms for one in abouts if one.due_ms), default=0),
        data_bytes=sum(one.data_bytes - one.data_at for one in abouts),
        data_at=0,
        keys=keys,
    )
    blocks = b"".join(index.block_rows for index in indexes)
    columns = [bytes(index.all_columns) for index in indexes]
    return about, encode_index(about, blocks, columns)
