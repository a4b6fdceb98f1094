"""Ranges of queues: what one task reads, and how it does.

Ranges are all that a task is told; its client is its process' own, since tasks may run
on any machine.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import InputPartition

from ropeway.client import BulkReader, MessageQueue
from ropeway.client.retry import through_outages
from ropeway.client.subscription import Sql
from ropeway.client.sync import LoopThread
from ropeway.spark.clients import lent
from ropeway.spark.frames import read_frames
from ropeway.spark.rows import to_batch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    import pyarrow as pa

    from ropeway.spark.clients import Lent
    from ropeway.spark.options import Options


_PART_BYTES = 1024 * 1024
"""A pull has 1024 messages at most, and Spark takes some time for each batch."""


class Range(NamedTuple):
    """Messages of one queue, `begin` included, `end` not."""

    queue: MessageQueue
    begin: int
    end: int


class Ranges(InputPartition):
    """What one task reads, one range behind the other."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


def split(whole: Range, most: int | None) -> list[Range]:
    """The ranges of one queue, none longer than `most`."""
    queue, begin, end = whole
    step = most or max(1, end - begin)
    return [Range(queue, at, min(at + step, end)) for at in range(begin, end, step)]


def tasks(whole: Iterable[Range], options: Options) -> list[Ranges]:
    """What tasks read: long ranges are split, as far as that is wanted.

    Short ones share a task, as each costs something.

    Args:
        whole: What is to be read, one range a queue.
        options: How long ranges are to be, and how many tasks there are to be.
    """
    whole, most, least = list(whole), options.split_offsets, options.least_offsets
    if options.least_tasks is not None:
        total = sum(max(0, one.end - one.begin) for one in whole)
        each = max(1, total // options.least_tasks)
        most, least = min(most or each, each), 1
    least = min(least, most or least)
    ranges = (part for one in whole for part in split(one, most))
    found: list[Ranges] = []
    waiting: list[Range] = []
    for one in ranges:
        waiting.append(one)
        if sum(part.end - part.begin for part in waiting) >= least:
            found.append(Ranges(waiting))
            waiting = []
    if waiting:
        found.append(Ranges(waiting))
    return found


class Driver:
    """A client for the driver's questions, opened with the first one.

    It stays behind where its owner is sent to tasks.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._thread: LoopThread | None = None
        self._reader: BulkReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_thread": None, "_reader": None}

    def ask(self, question: Any, *, waits: bool = True) -> Any:
        """Return what a coroutine function answers that is given the client.

        Args:
            question: The function.
            waits: Whether it is asked again while servers are away, for as long as the
                option `outageTimeoutMs` says.
        """
        if self._thread is None:
            self._thread = LoopThread("ropeway-spark")
        limit_s = self._options.outage_timeout_s if waits else 0.0
        return self._thread.call(through_outages(lambda: self._ask(question), limit_s))

    async def _ask(self, question: Any) -> Any:
        if self._reader is None:
            self._reader = open_reader(self._options)
            await self._reader.start()
        return await question(self._reader)

    def close(self) -> None:
        """Close the client, if there is one."""
        if self._thread is None:
            return
        if self._reader is not None:
            self._thread.call(self._reader.close())
        self._thread.stop()
        self._thread = self._reader = None


def open_reader(options: Options) -> BulkReader:
    """A client, not started yet."""
    return BulkReader(
        options.name_server,
        options.reading_group,
        config=options.client_config(),
    )


def read(
    task: Ranges,
    options: Options,
    wanted: Sequence[str],
    tags: frozenset[str] | None,
    keys: frozenset[str] | None,
) -> Iterator[pa.RecordBatch]:
    """Read ranges as Arrow batches.

    Args:
        task: The ranges.
        options: Of the source.
        wanted: The names of the columns.
        tags: Only messages with one of these, besides those of `options.tags`.
        keys: Only messages whose keys are one of these.
    """
    expression, named = options.tags, _named(options.tags)
    if tags is not None and named is None:
        named = tags
        if expression.strip() == "*" and all(map(_can_be_asked_for, tags)):
            expression = " || ".join(sorted(tags))
    conditions = {"tag": named, "key": keys}
    group = options.reading_group
    with lent(BulkReader, options, lambda: open_reader(options), group) as reader:
        for one in task.ranges:
            for data in parts(reader, one, expression, options):
                found = read_frames(data, one.begin, one.end)
                batch = to_batch(found, one.queue, wanted, conditions)
                if batch.num_rows:
                    yield batch


def _named(expression: str) -> frozenset[str] | None:
    """The tags of an expression; None for all, and for a condition."""
    if expression.strip() == "*" or isinstance(expression, Sql):
        return None
    # Brokers choose by hashes, and different tags may have the same.
    return frozenset(part.strip() for part in expression.split("||"))


def _can_be_asked_for(tag: str) -> bool:
    """Whether an expression can name it, alone and as it is."""
    return tag == tag.strip() and tag not in ("", "*") and "||" not in tag


def parts(
    reader: Lent[BulkReader], one: Range, expression: str, options: Options
) -> Iterator[bytes]:
    """Stored messages of a range, back to back, some pulls at once."""
    found = _read_ahead(
        reader.client.read_stored(
            *one, expression, must_be_whole=options.fail_on_data_loss
        )
    )

    async def step() -> bytes | None:
        return await anext(found, None)

    try:
        while (part := reader.call(step())) is not None:
            yield part
    finally:
        reader.call(found.aclose())


async def _read_ahead(
    pulls: AsyncGenerator[bytes, None],
) -> AsyncGenerator[bytes, None]:
    """Some pulls at once, the next ones of which come while Spark takes these."""

    async def some() -> bytes:
        found: list[bytes] = []
        size_bytes = 0
        async for data in pulls:
            found.append(data)
            size_bytes += len(data)
            if size_bytes >= _PART_BYTES:
                break
        return b"".join(found)

    ahead = asyncio.create_task(some())
    try:
        while part := await ahead:
            ahead = asyncio.create_task(some())
            yield part
    finally:
        ahead.cancel()
        await asyncio.gather(ahead, return_exceptions=True)
        await pulls.aclose()
