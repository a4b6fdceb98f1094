"""A segment's index as it is looked into: which block has a record, and its columns.

Law: nothing that an index or a block says is used before a checksum has confirmed it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.sealed import version_1
from ropeway.storage.sealed.columns import Columns, width_of
from ropeway.storage.sealed.compiled import crc32
from ropeway.storage.sealed.compression import decompress
from ropeway.storage.sealed.layout import (
    BLOCK,
    ZSTD,
    SegmentError,
    decode_head,
    head_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.sealed.columns import Buffer
    from ropeway.storage.sealed.layout import About, Whose

_WORDS = BLOCK.size // 4
_RECORDS, _RAW, _STORED, _DATA_CRC, _COLUMNS_CRC = 2, 3, 4, 5, 6
"""Words of a block; its first offset has the two before them."""


class Block(NamedTuple):
    """A block's records, back to back, and what is known of each."""

    data: memoryview
    places: list[int]
    """Where each record begins; one more than there are records."""
    columns: Columns


class Index:
    """The head of an index: in memory some 56 bytes a block.

    Args:
        about: What the segment says of itself.
        blocks: `BLOCK` of each.
        columns: Those of all blocks, where they are in memory, too.

    Raises:
        SegmentError: The blocks do not add up to what the header says.
    """

    def __init__(
        self, about: About, blocks: bytes, columns: memoryview | None = None
    ) -> None:
        self._words = words = array("I", blocks)
        self.about = about
        self.width = width_of(sparse=about.sparse)
        """Bytes of one record's columns."""
        self.head_bytes = head_bytes(about.whose.topic, len(blocks))
        self.firsts = array("Q", blocks)[:: _WORDS // 2]
        """The first offset of each block."""
        self.starts = array("Q", accumulate(words[_RECORDS::_WORDS], initial=0))
        """The first record of each block, and one past the last record."""
        sizes = words[_STORED::_WORDS]
        self.places = array("Q", accumulate(sizes, initial=about.data_at))
        """Where each block stands in the data, and its end."""
        self.all_columns = b"" if columns is None else columns
        self.times: list[memoryview] = []
        """Store times of each block, where its columns are in memory."""
        self._first_times = array("q")
        self._last: tuple[int, Columns] | None = None
        """Whose columns were asked for last."""
        if self.starts[-1] != about.records or self.places[-1] != about.data_bytes:
            raise SegmentError("its blocks do not add up to its header")

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.firsts)

    @property
    def block_rows(self) -> bytes:
        """`BLOCK` of each."""
        return self._words.tobytes()

    @property
    def index_bytes(self) -> int:
        """Bytes of the whole index."""
        return self.head_bytes + self.about.records * self.width

    def check_name(self, whose: Whose, base: int, end: int | None = None) -> None:
        """Hold what the index says against what it is found by.

        Args:
            whose: The partition.
            base: The first offset.
            end: One past the last one; None where the name has none.

        Raises:
            SegmentError: They differ.
        """
        about = self.about
        if (about.whose, about.base_offset) != (whose, base) or end not in {
            *(None, about.end)
        }:
            raise SegmentError("its name says another segment than it does")

    def check_index_bytes(self, size: int) -> None:
        """Hold the size of the index against what its head says.

        Raises:
            SegmentError: They differ.
        """
        if size != self.index_bytes:
            raise SegmentError(f"{size} bytes; its header says {self.index_bytes}")

    def check_data_bytes(self, size: int) -> None:
        """Hold the size of the data against what was written.

        Raises:
            SegmentError: They differ.
        """
        if size != self.about.data_bytes:
            raise SegmentError(f"{size} bytes; written were {self.about.data_bytes}")

    def block_of(self, record: int) -> int:
        """The block that has a record."""
        return bisect_right(self.starts, record) - 1

    def block_at(self, offset: int) -> int:
        """The block that has an offset, or would have it."""
        return bisect_right(self.firsts, offset, 1) - 1

    def columns_at(self, first: int, end: int) -> tuple[int, int]:
        """Place and size, within the index, of the columns of some blocks."""
        place = self.head_bytes + self.starts[first] * self.width
        return place, (self.starts[end] - self.starts[first]) * self.width

    def data_at(self, first: int, end: int) -> tuple[int, int]:
        """Place and size, within the data, of some blocks."""
        return self.places[first], self.places[end] - self.places[first]

    def columns_of(self, block: int, data: Buffer) -> Columns:
        """The columns of a block.

        Raises:
            SegmentError: They are not what was written.
        """
        start, end = self.starts[block], self.starts[block + 1]
        if (
            len(data) != (end - start) * self.width
            or crc32(data) != self._words[block * _WORDS + _COLUMNS_CRC]
        ):
            raise SegmentError(
                f"columns of block {block}, record {start} and on: not what was written"
            )
        return self._made(block, memoryview(data))

    def _made(self, block: int, data: memoryview) -> Columns:
        records = self.starts[block + 1] - self.starts[block]
        return Columns(data, records, self.firsts[block], sparse=self.about.sparse)

    def columns(self, block: int) -> Columns:
        """The columns of a block of an index that is in memory as a whole."""
        last = self._last
        if last is None or last[0] != block:
            last = self._last = block, self._own(block)
        return last[1]

    def _own(self, block: int) -> Columns:
        begin, end = (self.starts[at] * self.width for at in (block, block + 1))
        return self._made(block, memoryview(self.all_columns)[begin:end])

    def time_of(self, record: int) -> int:
        """The store time of a record of an index that is in memory as a whole."""
        block = self.block_of(record)
        return int(self.times[block][record - self.starts[block]])

    def keep_times(self, times: memoryview) -> None:
        """Have the store times of the next block in memory."""
        self.times.append(times)
        self._first_times.append(times[0])

    def count_before(
        self,
        time_ms: int,
        end: int,
        times: Callable[[int], memoryview] | None = None,
        *,
        upper: bool = False,
    ) -> int:
        """How many records were stored before a time, with `upper` at it as well.

        Args:
            time_ms: Store times that do not ascend are searched as if they did.
            end: Only of so many records from the first on.
            times: Gives those of a block, where they are not in memory.
            upper: Count those that were stored at the time, too.
        """
        cut = bisect_right if upper else bisect_left
        # The last block that begins before the time has the place, if there is one.
        if times is None:
            times = self.times.__getitem__
            block = cut(self._first_times, time_ms)
        else:
            block = cut(range(self.blocks), time_ms, key=lambda at: times(at)[0])
        if not block:
            return 0
        at = self.starts[block - 1] + cut(times(block - 1), time_ms)
        return min(end, at)

    def check_block(self, block: int, stored: Buffer) -> None:
        """Hold a block's bytes against the index.

        Raises:
            SegmentError: They are not what was written.
        """
        place, size = self.data_at(block, block + 1)
        if len(stored) != size:
            raise SegmentError(
                f"block {block} has {len(stored)} bytes; the index says {size}"
            )
        if crc32(stored) != self._words[block * _WORDS + _DATA_CRC]:
            raise SegmentError(
                f"block {block} at {place}: not what was written, or of another segment"
            )

    def open_block(
        self, block: int, stored: Buffer, columns: Columns | None = None
    ) -> Block:
        """The records of a block.

        Args:
            block: Its number.
            stored: Its bytes.
            columns: Its columns, where they are not in memory.

        Raises:
            SegmentError: It is not what was written.
        """
        self.check_block(block, stored)
        data = memoryview(stored)
        if self.about.flags & ZSTD:
            try:
                data = decompress(data, self._words[block * _WORDS + _RAW])
            except ValueError as error:
                raise SegmentError(f"block {block}: {error}") from error
        columns = columns or self._own(block)
        places = [*accumulate(columns.sizes, initial=0)]
        if places[-1] != len(data):
            raise SegmentError(f"block {block} has not the records that the index says")
        return Block(data, places, columns)


def decode_index(data: bytes) -> Index:
    """Read a whole index, with the columns of all blocks; of any version.

    Raises:
        SegmentError: It is not what was written.
        NewerSegmentError: It is of a newer format.
    """
    data = version_1.of_tier(data) or data
    about, blocks = decode_head(data)
    size = head_bytes(about.whose.topic, len(blocks))
    index = Index(about, blocks, memoryview(data)[size:])
    index.check_index_bytes(len(data))
    for block in range(index.blocks):
        place, size = index.columns_at(block, block + 1)
        columns = index.columns_of(block, memoryview(data)[place : place + size])
        index.keep_times(columns.times)
    return index
