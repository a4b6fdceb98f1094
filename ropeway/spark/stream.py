"""Reading topics as streams: where a batch ends, and what Spark has done with it.

Offsets are all that Spark keeps in its checkpoint: topic to queue to offset. A queue
that they leave out is new, as that of a new topic that a pattern matches, and is read
from its first message.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ropeway.client import RemotingError, ResponseError
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.spark import offset_options
from ropeway.spark.options import LATEST, require_endless, require_topics
from ropeway.spark.ranges import Driver, Range, Ranges, read, tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from ropeway.client import BulkReader, MessageQueue
    from ropeway.spark.options import Offsets, Options

_log = logging.getLogger(__name__)
_NO_GROUP = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics as they grow.

    Args:
        options: What to read.
        wanted: The names of the columns.
    """

    def __init__(self, options: Options, wanted: Sequence[str]) -> None:
        self._options = options
        require_endless(options)
        require_topics(options)
        self._wanted = list(wanted)
        self._driver = Driver(options)
        self._target: dict[MessageQueue, int] | None = None
        """Where the whole query ends; None where it does not."""
        self._batch_at_s = -math.inf
        """When there was a batch last, by `time.monotonic`."""

    # Spark's names.

    def initialOffset(self) -> Offsets:  # noqa: N802
        """Where a new query begins."""

        async def ask(reader: BulkReader) -> Offsets:
            queues = await offset_options.all_queues(reader, self._options)
            starting = await offset_options.first_offsets(
                reader, queues, self._options, LATEST
            )
            return offset_options.dump(starting)

        return self._driver.ask(ask)  # type: ignore[no-any-return]

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch may have."""
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        """Where the next batch ends."""
        begins = offset_options.load(start)
        ends = self._target or self._ends()
        # A queue that went away keeps its place, so that it goes on when it is back.
        ends = {**begins, **ends}
        begins = {
            queue: self._begin(queue, begins.get(queue), end)
            for queue, end in ends.items()
        }
        if self._target is None and self._is_too_little(begins, ends):
            return start
        if isinstance(limit, ReadMaxRows):
            ends = share(begins, ends, limit.max_rows)
        return offset_options.dump(ends)

    def _is_too_little(
        self, begins: Mapping[MessageQueue, int], ends: Mapping[MessageQueue, int]
    ) -> bool:
        """Whether a batch is to wait for more; the first one does not.

        Source: KafkaMicroBatchStream.delayBatch, Spark 4.0.
        """
        least = self._options.least_of_batch
        if least is None:
            return False
        now_s = time.monotonic()
        count = sum(max(0, end - begins[queue]) for queue, end in ends.items())
        if count < least and now_s - self._batch_at_s < self._options.batch_delay_s:
            return True
        self._batch_at_s = now_s
        return False

    def reportLatestOffset(self) -> Offsets:  # noqa: N802
        """Where queues end, for Spark's progress reports."""
        return offset_options.dump(self._ends())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End the query with what is there now."""
        self._target = self._ends()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[Ranges]:
        """The ranges of a batch, by tasks."""
        begins = offset_options.load(start)
        ranges = (
            Range(queue, self._begin(queue, begins.get(queue), until), until)
            for queue, until in offset_options.load(end).items()
        )
        return tasks(ranges, self._options)

    def read(self, partition: Ranges) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Read what one task has to."""
        return read(partition, self._options, self._wanted, None, None)

    def commit(self, end: Offsets) -> None:
        """Store how far the query has come, for who looks at the group's lag."""
        if self._options.group is None:
            return

        async def store(reader: BulkReader) -> None:
            await reader.commit(offset_options.load(end))

        try:
            self._driver.ask(store, waits=False)
        except RemotingError as error:
            if isinstance(error, ResponseError) and error.code == _NO_GROUP:
                # The first pull makes it, and there was nothing to read so far.
                return
            # The checkpoint is what counts; the next batch stores it again.
            _log.warning("offsets of the group not stored: %s", error)

    def stop(self) -> None:
        """Close the connections."""
        self._driver.close()

    def _ends(self) -> dict[MessageQueue, int]:
        async def ask(reader: BulkReader) -> dict[MessageQueue, int]:
            queues = await offset_options.all_queues(reader, self._options)
            return await offset_options.resolve(reader, queues, LATEST, None)

        return self._driver.ask(ask)  # type: ignore[no-any-return]

    def _begin(self, queue: MessageQueue, read_to: int | None, end: int) -> int:
        """Where a queue is read from: its first message, if it is new or made anew."""
        if read_to is not None:
            if read_to <= end:
                return read_to
            found = offset_options.made_anew(queue, read_to, end)
            if self._options.fail_on_data_loss:
                raise found
            _log.warning("the queue is read anew: %s", found)

        async def ask(reader: BulkReader) -> int:
            return await reader.begin_offset(queue)

        return self._driver.ask(ask)  # type: ignore[no-any-return]


def share(
    begins: Mapping[MessageQueue, int], ends: Mapping[MessageQueue, int], most: int
) -> dict[MessageQueue, int]:
    """Ends with no more than so many messages before them, shared by what waits.

    Each queue that has any gets one at least.
    """
    waiting = {queue: max(0, end - begins[queue]) for queue, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    return {
        queue: begins[queue] + min(count, max(1, count * most // total))
        if count
        else ends[queue]
        for queue, count in waiting.items()
    }
