"""Reading records of one partition from the tier: by offset, with filters, by time.

A read looks only at what is in memory. Where something is missing it stops, has that
fetched, and goes on from where it stopped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from typing import TYPE_CHECKING

from ropeway.storage.api import MAX_LOOKED_BYTES, Chunk, Filter
from ropeway.storage.tiered.fetcher import GoneError, MissingError

if TYPE_CHECKING:
    from ropeway.storage.tiered.fetcher import Block, Fetcher
    from ropeway.storage.tiered.loop_share import LoopShare
    from ropeway.storage.tiered.segment import Index
    from ropeway.storage.tiered.tier_partition import Segment, TierPartition

_ALL = Filter()


class Pick:
    """One read, which may stop for what is missing and go on."""

    __slots__ = (
        "_bytes_left",
        "_count_left",
        "_data",
        "_fetcher",
        "_flat",
        "_looks",
        "_shown",
        "_wanted",
        "began",
        "offset",
        "records",
    )

    def __init__(
        self,
        flat: TierPartition,
        fetcher: Fetcher,
        offset: int,
        limits: tuple[int, int],
        wanted: Filter | None,
    ) -> None:
        self._flat = flat
        self._fetcher = fetcher
        self.began = self.offset = offset
        self._count_left, self._bytes_left = limits
        self._wanted = wanted or _ALL
        self._looks = self._wanted.looks
        self._shown = 0
        self._data: list[bytes | memoryview] = []
        self.records = 0

    @property
    def chunk(self) -> Chunk:
        """What was found so far."""
        return Chunk(self._data, self.records, self.offset, cold=True)

    def run(self, end: int) -> Chunk:
        """Read on up to an offset.

        Raises:
            MissingError: What has to be fetched first.
        """
        while (
            self._looks > 0
            and self._count_left > 0
            and self._shown < MAX_LOOKED_BYTES
            and self.offset < end
        ):
            segment = self._flat.locate(self.offset)
            if segment is None or segment.base >= end:
                self.offset = end
                break
            self.offset = max(self.offset, segment.base)
            if not self._run_block(segment, min(end, segment.end)):
                break
        return self.chunk

    def _run_block(self, segment: Segment, end: int) -> bool:
        """Read in the block that has the offset; whether to go on behind it."""
        index = self._fetcher.index(segment)
        first = self.offset - segment.base
        number = bisect_right(index.starts, first) - 1
        start, after = index.starts[number], index.starts[number + 1]
        last = min(after, end - segment.base, first + self._looks)
        tags = self._wanted.tag_hashes
        if tags is None and self._wanted.accept is None:
            block = self._fetcher.block(segment, number)
            went_on = self._slice(block, first - start, last - start)
        else:
            picked = [*range(first, last)]
            if tags is not None:
                picked = [at for at in picked if index.tags[at] in tags]
            went_on = True
            if picked:
                block = self._fetcher.block(segment, number)
                went_on = self._filter(block, picked, start, segment.base)
            if went_on:
                self._looks -= segment.base + last - self.offset
                self.offset = segment.base + last
        if self.offset == segment.base + after:
            following = None
            if after == index.starts[-1]:
                following = self._flat.locate(segment.end)
            self._fetcher.read_ahead(segment, number, following)
        return went_on

    def _slice(self, block: Block, first: int, last: int) -> bool:
        """Take as many records of a block as there may be, in one piece."""
        places = block.places
        last = min(last, first + self._count_left)
        fit = (
            bisect_right(places, places[first] + self._bytes_left, first, last + 1) - 1
        )
        if fit <= first:
            if self.records:
                return False
            fit = first + 1
        piece = block.data[places[first] : places[fit]]
        self._take(piece, fit - first)
        self._looks -= fit - first
        self.offset += fit - first
        return fit == last

    def _filter(self, block: Block, picked: list[int], start: int, base: int) -> bool:
        """Take the records that are accepted, one by one."""
        places, accept = block.places, self._wanted.accept
        for at in picked:
            piece = block.data[places[at - start] : places[at - start + 1]]
            if accept is not None:
                self._shown += len(piece)
            if accept is None or accept(piece):
                if self.records and len(piece) > self._bytes_left:
                    self._looks -= base + at - self.offset
                    self.offset = base + at
                    return False
                self._take(piece, 1)
            if not self._count_left or self._shown >= MAX_LOOKED_BYTES:
                self._looks -= base + at + 1 - self.offset
                self.offset = base + at + 1
                return False
        return True

    def _take(self, piece: memoryview, records: int) -> None:
        self._data.append(piece)
        self.records += records
        self._count_left -= records
        self._bytes_left -= len(piece)


class Reader:
    """Reads what partitions have in the tier.

    Args:
        fetcher: Gets it from the provider.
        share: When it may be read.
    """

    def __init__(self, fetcher: Fetcher, share: LoopShare) -> None:
        self._fetcher = fetcher
        self._share = share

    def read_now(
        self,
        flat: TierPartition,
        offset: int,
        end: int,
        limits: tuple[int, int],
        wanted: Filter | None,
    ) -> Chunk | None:
        """Read from memory alone, at once; None where that cannot be."""
        if not self._share.is_free:
            return None
        pick = Pick(flat, self._fetcher, offset, limits, wanted)
        try:
            return self._share.do(partial(pick.run, end))
        except MissingError:
            return None

    async def read(
        self,
        flat: TierPartition,
        offset: int,
        end: int,
        limits: tuple[int, int],
        wanted: Filter | None,
    ) -> Chunk:
        """Read records from an offset up to another, when the event loop lets it.

        Args:
            flat: The partition.
            offset: What is missing there is passed over.
            end: Beyond it, nothing is read.
            limits: Records and bytes, as in `storage.api`.
            wanted: Which of them.

        Raises:
            LogDamagedError: What the provider has is not what was put.
            LogUnavailableError: The provider did not answer.
        """
        pick = Pick(flat, self._fetcher, offset, limits, wanted)
        while True:
            try:
                return await self._share.take(partial(pick.run, end))
            except MissingError as error:
                missing = error
            await self._fetch(missing)

    async def offset_at(
        self, flat: TierPartition, time_ms: int, end: int, *, upper: bool
    ) -> int | None:
        """An offset by store time among those before `end`.

        Returns:
            The first record stored at or after `time_ms`; with `upper` the last one
            stored at or before it; None where there is none.
        """
        if upper:
            for segment in reversed([*flat.segments]):
                if segment.base < end and segment.least_ms <= time_ms:
                    times = (await self._index(segment)).times
                    last = min(end - segment.base, len(times))
                    at = bisect_right(times, time_ms, 0, last)
                    if at:
                        return segment.base + at - 1
            return None
        for segment in [*flat.segments]:
            if segment.base < end and segment.most_ms >= time_ms:
                times = (await self._index(segment)).times
                last = min(end - segment.base, len(times))
                at = bisect_left(times, time_ms, 0, last)
                if at < last:
                    return segment.base + at
        return None

    async def store_time(self, flat: TierPartition, offset: int) -> int | None:
        """When a record was stored; None where it is not there."""
        segment = flat.locate(offset)
        if segment is None or offset < segment.base:
            return None
        index = await self._index(segment)
        return int(index.times[offset - segment.base])

    async def _index(self, segment: Segment) -> Index:
        while True:
            try:
                return self._fetcher.index(segment)
            except MissingError as error:
                missing = error
            await self._fetcher.fetch(missing)

    async def _fetch(self, missing: MissingError) -> None:
        try:
            await self._fetcher.fetch(missing)
        except GoneError:
            return  # what took its place is found by the next attempt
