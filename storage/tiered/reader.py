"""Reading records of one partition from the tier: by offset, with filters, by time.

A read looks only at what is in memory. Where something is missing it stops, has that
fetched, and goes on from where it stopped.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.sealed.pick import Pick
from ropeway.storage.tiered.fetcher import INDEX, GoneError, MissingError

if TYPE_CHECKING:
    from ropeway.storage.api import Chunk, Filter
    from ropeway.storage.sealed.index import Index
    from ropeway.storage.tiered.fetcher import Fetcher
    from ropeway.storage.tiered.loop_share import LoopShare
    from ropeway.storage.tiered.tier_partition import Segment, TierPartition


class TierRead(NamedTuple):
    """What is to be read of a partition."""

    flat: TierPartition
    offset: int
    """What is missing there is passed over."""
    end: int
    """Beyond it, nothing is read."""
    limits: tuple[int, int]
    """Records and bytes, as in `storage.api`."""
    wanted: Filter | None = None
    """Which of them; all, where it is None."""


class TierPick(Pick):
    """One read over a partition's segments, which may stop for what is missing."""

    __slots__ = ("_end", "_fetcher", "_flat")

    def __init__(self, asked: TierRead, fetcher: Fetcher) -> None:
        super().__init__(asked.offset, asked.limits, asked.wanted)
        self._flat = asked.flat
        self._fetcher = fetcher
        self._end = asked.end

    def run(self) -> Chunk:
        """Read on up to the end.

        Raises:
            MissingError: What has to be fetched first.
        """
        end = self._end
        while self.goes_on and self.offset < end:
            segment = self._flat.locate(self.offset)
            if segment is None or segment.base >= end:
                self.offset = end
                break
            self.offset = max(self.offset, segment.base)
            if not self._look_into(segment, min(end, segment.end)):
                break
        return self.chunk(cold=True)

    def _look_into(self, segment: Segment, end: int) -> bool:
        """Read in the block that has the offset; whether to go on behind it."""
        fetcher = self._fetcher
        index = fetcher.index(segment)
        number = index.block_at(self.offset)
        block = fetcher.kept(segment, number)
        columns = index.columns(number) if block is None else block.columns
        fetch = partial(fetcher.block, segment, number)
        went_on = self.look(columns, end, fetch, block)
        if self.offset == segment.base + index.starts[number + 1]:
            following = None
            if number + 1 == index.blocks:
                following = self._flat.locate(segment.end)
            fetcher.read_ahead(segment, number, following)
        return went_on


class Reader:
    """Reads what partitions have in the tier.

    Args:
        fetcher: Gets it from the provider.
        share: When it may be read.
    """

    def __init__(self, fetcher: Fetcher, share: LoopShare) -> None:
        self._fetcher = fetcher
        self._share = share

    def read_now(self, asked: TierRead) -> Chunk | None:
        """Read from memory alone, at once; None where that cannot be."""
        if not self._share.is_free:
            return None
        try:
            return self._share.do(TierPick(asked, self._fetcher).run)
        except MissingError:
            return None

    async def read(self, asked: TierRead) -> Chunk:
        """Read records from an offset up to another, when the event loop lets it.

        Raises:
            LogDamagedError: What the provider has is not what was put.
            LogUnavailableError: The provider did not answer.
        """
        pick = TierPick(asked, self._fetcher)
        while True:
            try:
                return await self._share.take(pick.run)
            except MissingError as error:
                missing = error.with_traceback(None)
            await self._fetch(missing)

    async def offset_at(
        self, flat: TierPartition, time_ms: int, end: int, *, upper: bool
    ) -> int | None:
        """An offset by store time among those before `end`.

        Returns:
            The first record stored at or after `time_ms`; with `upper` the last one
            stored at or before it; None where there is none.
        """
        for segment in flat.segments[:: -1 if upper else 1]:
            if segment.least_ms > time_ms if upper else segment.most_ms < time_ms:
                continue
            base = segment.base
            last = min(end, segment.end) - base
            if last <= 0:
                continue
            index = self._fetcher.kept(segment, INDEX) or await self._index(segment)
            at = index.count_before(time_ms, last, upper=upper) - upper
            if 0 <= at < last:
                return base + at
        return None

    async def store_time(self, flat: TierPartition, offset: int) -> int | None:
        """When a record was stored; None where it is not there."""
        segment = flat.locate(offset)
        if segment is None or offset < segment.base:
            return None
        index = await self._index(segment)
        return index.time_of(offset - segment.base)

    async def _index(self, segment: Segment) -> Index:
        while True:
            try:
                return self._fetcher.index(segment)
            except MissingError as error:
                missing = error.with_traceback(None)
            await self._fetcher.fetch(missing)

    async def _fetch(self, missing: MissingError) -> None:
        try:
            await self._fetcher.fetch(missing)
        except GoneError:
            return  # what took its place is found by the next attempt
