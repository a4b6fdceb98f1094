"""One read over blocks of sealed segments: limits, tags, and which records they give.

Where columns and blocks come from is the caller's: a cache of a tier, or files.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ropeway.storage.api import MAX_LOOKED_BYTES, Chunk, Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.sealed.columns import Columns
    from ropeway.storage.sealed.index import Block

_ALL = Filter()


class Pick:
    """What one read has found so far.

    Args:
        offset: Where to begin.
        limits: Records and bytes, as in `storage.api`.
        wanted: Which of them; None for all.
    """

    __slots__ = (
        "_bytes_left",
        "_count_left",
        "_data",
        "_looks",
        "_shown",
        "_wanted",
        "looked",
        "offset",
        "records",
    )

    def __init__(
        self, offset: int, limits: tuple[int, int], wanted: Filter | None
    ) -> None:
        self.offset = offset
        """Where it goes on."""
        self._count_left, self._bytes_left = limits
        self._wanted = wanted or _ALL
        self._looks = self._wanted.looks
        self._shown = 0
        self._data: list[bytes | memoryview] = []
        self.records = 0
        self.looked = 0
        """Records that were looked at."""

    @property
    def goes_on(self) -> bool:
        """Whether it may look at more."""
        return (
            self.looked < self._looks
            and self._count_left > 0
            and self._shown < MAX_LOOKED_BYTES
        )

    def chunk(self, *, cold: bool = False) -> Chunk:
        """What was found so far."""
        return Chunk(self._data, self.records, self.offset, cold)

    def look(
        self,
        columns: Columns,
        end: int,
        fetch: Callable[[], Block],
        block: Block | None = None,
    ) -> bool:
        """Take what is wanted of a block, from the offset on.

        Args:
            columns: Of the block.
            fetch: Gives its records; is called only where some are wanted and they
                are not at hand. What it raises comes through, and nothing has changed
                then.
            block: The block, where it is at hand.
            end: Nothing at this offset or after it is looked at.

        Returns:
            Whether all before the end was looked at.
        """
        first, whole = columns.at(self.offset), columns.records
        if end <= columns.last:
            whole = columns.at(end)
        last = min(whole, first + self._looks - self.looked)
        wanted = self._wanted
        if wanted.tag_hashes is None and wanted.accept is None:
            done = first
            last = min(last, first + self._count_left)
            if first < last:
                done = self._slice(block or fetch(), first, last)
        else:
            done = last
            picked: Sequence[int] = range(first, last)
            if wanted.tag_hashes is not None:
                tags = columns.tags
                picked = [at for at in picked if tags[at] in wanted.tag_hashes]
            if picked:
                done = self._filter(block or fetch(), picked, last)
        if done > first:
            self.looked += done - first
            self.offset = columns.offset(done - 1) + 1
        return done >= whole

    def _slice(self, block: Block, first: int, last: int) -> int:
        """Take as many records as there may be, in one piece; the first not taken."""
        data, places, _ = block
        begin = places[first]
        fit = bisect_right(places, begin + self._bytes_left, first, last + 1) - 1
        if fit <= first:
            if self.records:
                return first
            fit = first + 1
        self._take(data[begin : places[fit]], fit - first)
        return fit

    def _filter(self, block: Block, picked: Sequence[int], last: int) -> int:
        """Take those that are accepted, one by one; the first not looked at."""
        data, places, _ = block
        accept = self._wanted.accept
        for at in picked:
            piece = data[places[at] : places[at + 1]]
            if accept is not None:
                self._shown += len(piece)
            if accept is None or accept(piece):
                if self.records and len(piece) > self._bytes_left:
                    return at
                self._take(piece, 1)
            if not self._count_left or self._shown >= MAX_LOOKED_BYTES:
                return at + 1
        return last

    def _take(self, piece: memoryview, records: int) -> None:
        self._data.append(piece)
        self.records += records
        self._count_left -= records
        self._bytes_left -= len(piece)
