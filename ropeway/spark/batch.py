"""Reading topics as tables: ranges are laid down when the query is planned."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, EqualTo, In

from ropeway.spark.bounds import Bounds
from ropeway.spark.offset_options import (
    all_queues,
    check_ends,
    first_offsets,
    made_anew,
    resolve,
)
from ropeway.spark.options import EARLIEST, LATEST, require_topics
from ropeway.spark.ranges import Driver, Range, Ranges, read, tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from ropeway.client import BulkReader, MessageQueue
    from ropeway.spark.options import Options

_ALWAYS_THERE = (None, EARLIEST, LATEST)
"""Where a queue is never shorter than that."""


class BatchReader(DataSourceReader):
    """Reads what topics have.

    Args:
        options: What to read.
        wanted: The names of the columns.
    """

    def __init__(self, options: Options, wanted: Sequence[str]) -> None:
        self._options = options
        require_topics(options)
        self._wanted = list(wanted)
        self._allowed: dict[str, frozenset[object]] = {}
        """Column to the values that a filter lets through."""
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Note which values of some columns are wanted; Spark filters again."""
        for one in filters:
            self._bounds.take(one)
            if isinstance(one, EqualTo):
                self._allow(one.attribute, [one.value])
            elif isinstance(one, In):
                self._allow(one.attribute, one.value)
        return filters

    def _allow(self, attribute: tuple[str, ...], values: Iterable[object]) -> None:
        if len(attribute) == 1:
            name = attribute[0]
            before = self._allowed.get(name, frozenset(values))
            self._allowed[name] = before & frozenset(values)

    def partitions(self) -> Sequence[Ranges]:
        """The ranges to read, by tasks."""
        driver = Driver(self._options)
        try:
            return driver.ask(self._plan)  # type: ignore[no-any-return]
        finally:
            driver.close()

    async def _plan(self, reader: BulkReader) -> list[Ranges]:
        options = self._options
        there = await all_queues(reader, options)
        check_ends(options, there)
        queues = [
            queue
            for queue in there
            if self._lets("topic", queue.topic)
            and self._lets("broker", queue.broker_name)
            and self._lets("queue", queue.queue_id)
        ]
        starting, ending = await asyncio.gather(
            first_offsets(reader, queues, options, EARLIEST, there),
            resolve(reader, queues, options.ending or LATEST, options.ending_ms),
        )
        if options.starting_ms is None and options.starting not in _ALWAYS_THERE:
            await self._check_starts(reader, starting)

        async def narrowed(queue: MessageQueue) -> Range:
            offset_at = partial(reader.offset_for_timestamp, queue)
            span = (starting[queue], ending[queue])
            return Range(queue, *await self._bounds.narrow(*span, offset_at))

        return tasks(await asyncio.gather(*map(narrowed, queues)), options)

    async def _check_starts(
        self, reader: BulkReader, starting: dict[MessageQueue, int]
    ) -> None:
        """See to queues that end before they are to be read."""
        ends = await resolve(reader, starting, LATEST, None)
        for queue, begin in starting.items():
            if begin > ends[queue]:
                if self._options.fail_on_data_loss:
                    raise made_anew(queue, begin, ends[queue])
                starting[queue] = await reader.begin_offset(queue)

    def _lets(self, name: str, value: object) -> bool:
        return name not in self._allowed or value in self._allowed[name]

    def read(self, partition: Ranges) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Read what one task has to."""
        if not isinstance(partition, Ranges):
            # What Spark makes of an empty list of ranges.
            return iter(())
        return read(
            partition,
            self._options,
            self._wanted,
            self._words("tag"),
            self._words("key"),
        )

    def _words(self, name: str) -> frozenset[str] | None:
        if name not in self._allowed:
            return None
        return frozenset(map(str, self._allowed[name]))
