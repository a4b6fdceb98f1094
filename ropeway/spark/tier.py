"""Reading the segments of a tier as a table: no gateway has to run.

Options, columns and filters are those of a topic that a broker gives; what the tier has
is the earliest and the latest there is.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ropeway.client.sync import LoopThread
from ropeway.spark import segments as tiered
from ropeway.spark.batch import BatchReader
from ropeway.spark.frames import read_frames
from ropeway.spark.offset_options import check_ends, check_starts, load, time_in
from ropeway.spark.options import COMMITTED, LATEST
from ropeway.spark.rows import to_batch
from ropeway.spark.segments import TierError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    import pyarrow as pa

    from ropeway.client import MessageQueue
    from ropeway.spark.options import Offsets, Options
    from ropeway.spark.segments import Name, TierQueue
    from ropeway.storage.tiered.api import Provider

_TASK_OFFSETS = 500_000
"""What one task reads about, where `maxOffsetsPerTask` is not given."""
_EARLIEST, _LATEST = -2, -1


class TierRange(InputPartition):
    """Messages of one queue in the segments of a tier: `begin` included, `end` not."""

    def __init__(
        self,
        url: str,
        queue: MessageQueue,
        segments: Sequence[Name],
        begin: int,
        end: int,
    ) -> None:
        super().__init__(None)
        self.url = url
        self.queue = queue
        self.segments = tuple(segments)
        self.begin = begin
        self.end = end


class TierReader(BatchReader):
    """Reads what a tier has of topics.

    Args:
        options: What to read; `tier` names at least one URL.
        wanted: The names of the columns.
    """

    def __init__(self, options: Options, wanted: Sequence[str]) -> None:
        super().__init__(options, wanted)
        if options.needs_start:
            raise ValueError(
                "option startingOffsetsByTimestampStrategy is 'error'; allowed with "
                "tier: latest"
            )
        for name, given in (("starting", options.starting), ("ending", options.ending)):
            if given == COMMITTED:
                raise ValueError(
                    f"option {name}Offsets is {given!r}, which brokers know; allowed "
                    "with tier: earliest, latest, or offsets"
                )

    def partitions(self) -> Sequence[TierRange]:  # type: ignore[override]
        """The ranges to read."""
        return asyncio.run(self._ranges())

    async def _ranges(self) -> list[TierRange]:
        options = self._options
        found, seen = [], []
        for url in options.tier:
            async with tiered.opened(url) as provider:
                queues = await self._queues(provider, tiered.broker_of(url))
                seen += [queue.queue for queue in queues]
                for queue in queues:
                    begin = await self._place(
                        provider, queue, options.starting, options.starting_ms
                    )
                    end = await self._place(
                        provider, queue, options.ending or LATEST, options.ending_ms
                    )
                    offset_at = partial(tiered.offset_at, provider, queue)
                    begin, end = await self._bounds.narrow(begin, end, offset_at)
                    if begin < end:
                        self._check(queue, begin, end)
                        found += split(url, queue, begin, end, options.split_offsets)
        if not self._allowed:
            check_starts(options, seen)
            check_ends(options, seen)
        return found

    async def _queues(self, provider: Provider, broker: str) -> list[TierQueue]:
        if not self._lets("broker", broker):
            return []
        found = []
        for topic in self._options.topics:
            if self._lets("topic", topic):
                there = await tiered.queues(provider, topic, broker)
                if not there:
                    raise TierError(
                        f"{provider.label} has nothing of topic {topic!r}; allowed: "
                        "the URL of one broker's tier, and a topic that it has"
                    )
                found += [
                    one for one in there if self._lets("queue", one.queue.queue_id)
                ]
        return found

    async def _place(
        self,
        provider: Provider,
        queue: TierQueue,
        where: str | Offsets | None,
        times_ms: int | Offsets | None,
    ) -> int:
        if (time_ms := time_in(times_ms)(queue.queue)) is not None:
            return await tiered.offset_at(provider, queue, time_ms)
        if isinstance(where, dict):
            # Those that are not named begin with their first, as of a broker.
            offset = load(where).get(queue.queue, _EARLIEST)
            if offset not in (_EARLIEST, _LATEST):
                return offset
            where = LATEST if offset == _LATEST else None
        return queue.end if where == LATEST else queue.begin

    def _check(self, queue: TierQueue, begin: int, end: int) -> None:
        if self._options.fail_on_data_loss and (begin < queue.begin or end > queue.end):
            raise TierError(
                f"offsets {begin} to {end} of queue {queue.queue.queue_id} of topic "
                f"{queue.queue.topic!r} are wanted, and the tier has {queue.begin} to "
                f"{queue.end}; allowed: these, or failOnDataLoss false"
            )

    def read(self, partition: TierRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Read one range."""
        if not isinstance(partition, TierRange):
            # What Spark makes of an empty list of ranges.
            return
        tags = _either(self._options.tags, self._words("tag"))
        # Segments choose by hashes, and different tags may have the same.
        conditions = {"tag": tags, "key": self._words("key")}
        thread = LoopThread("ropeway-tier")
        pieces = _pieces(partition, tags, whole=self._options.fail_on_data_loss)

        async def step() -> bytes | None:
            return await anext(pieces, None)

        try:
            while (data := thread.call(step())) is not None:
                found = read_frames(data, partition.begin, partition.end)
                batch = to_batch(found, partition.queue, self._wanted, conditions)
                if batch.num_rows:
                    yield batch
        finally:
            thread.call(pieces.aclose())
            thread.stop()


def split(
    url: str, queue: TierQueue, begin: int, end: int, most: int | None
) -> list[TierRange]:
    """Ranges of one queue, none longer than `most`; without it, of whole segments."""
    if most is not None:
        cuts = [*range(begin, end, most)]
    else:
        cuts = [begin]
        for name in queue.segments:
            if begin < name.base < end and name.end - cuts[-1] > _TASK_OFFSETS:
                cuts.append(name.base)
    return [
        TierRange(
            url,
            queue.queue,
            [one for one in queue.segments if one.base < after and one.end > first],
            first,
            after,
        )
        for first, after in zip(cuts, [*cuts[1:], end], strict=True)
    ]


def _either(expression: str, tags: frozenset[str] | None) -> frozenset[str] | None:
    """The tags that an expression and a filter both let through; None for all."""
    if expression.strip() == "*":
        return tags
    wanted = frozenset(part.strip() for part in expression.split("||"))
    return wanted if tags is None else wanted & tags


async def _pieces(
    one: TierRange, tags: frozenset[str] | None, *, whole: bool
) -> AsyncGenerator[bytes, None]:
    async with tiered.opened(one.url) as provider:
        async for data in tiered.read(
            provider, one.segments, one.begin, one.end, tags, must_be_whole=whole
        ):
            yield data
