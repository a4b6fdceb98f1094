"""Reading topics as tables: ranges are laid down when the query is planned."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, EqualTo, In

from ropeway.spark.offset_options import all_queues, resolve
from ropeway.spark.options import EARLIEST, LATEST, require_topics
from ropeway.spark.ranges import Driver, Ranges, read, split, tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from ropeway.client import BulkReader
    from ropeway.spark.options import Options


class BatchReader(DataSourceReader):
    """Reads what topics have.

    Args:
        options: What to read.
        wanted: The names of the columns.
    """

    def __init__(self, options: Options, wanted: Sequence[str]) -> None:
        self._options = options
        self._topics = require_topics(options)
        self._wanted = list(wanted)
        self._allowed: dict[str, frozenset[object]] = {}
        """Column to the values that a filter lets through."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Note which values of some columns are wanted; Spark filters again."""
        for one in filters:
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
        queues = [
            queue
            for queue in await all_queues(reader, self._topics)
            if self._lets("topic", queue.topic)
            and self._lets("broker", queue.broker_name)
            and self._lets("queue", queue.queue_id)
        ]
        starting, ending = await asyncio.gather(
            resolve(reader, queues, options.starting or EARLIEST, options.starting_ms),
            resolve(reader, queues, options.ending or LATEST, options.ending_ms),
        )
        ranges = (
            part
            for queue in queues
            for part in split(
                queue, starting[queue], ending[queue], options.split_offsets
            )
        )
        return tasks(ranges, options)

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
