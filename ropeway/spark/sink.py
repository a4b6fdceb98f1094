"""Writing tables and streams to topics: tasks stage or send, the driver commits.

With `exactly-once` tasks only stage, and the batch's commit makes all of it visible.
A stream's batch is named by its query, as Spark's checkpoint has it, and its number:
so it is known when it comes again. With `at-least-once` tasks send, and each row has a
unique key that is the same when its batch comes again.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ropeway.client import (
    BatchProducer,
    Producer,
    ResponseError,
)
from ropeway.client.retry import through_outages
from ropeway.gateway.wire.batch import decode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.spark.clients import lent
from ropeway.spark.message_encoder import TYPES, Packer
from ropeway.spark.options import AT_LEAST_ONCE, EXACTLY_ONCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ropeway.client import MessageQueue
    from ropeway.client.batch_producer import Staged
    from ropeway.client.sync import LoopThread
    from ropeway.spark.clients import Lent
    from ropeway.spark.message_encoder import Parcel
    from ropeway.spark.options import Options

T = TypeVar("T")

_GROUP = "ropeway-spark"
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
_IN_FLIGHT = 4
"""Requests of one task that have no answer yet: memory is bounded by them."""
_UNKNOWN = (ResponseCode.SYSTEM_ERROR,)
"""A broker cannot tell whether it has done it: its log, or the node that it asked, did
not answer. Staging again and committing again is fine, unlike sending again."""


class SinkError(Exception):
    """What was written cannot be committed; the text says why."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has done."""

    producer_id: str
    staged: tuple[Staged, ...]
    rows: int


def check_columns(schema: StructType, options: Options) -> None:
    """Refuse a table that cannot be sent.

    Raises:
        ValueError: Names the column, what came, and what is allowed.
    """
    found = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, kind in found.items():
        if name not in TYPES:
            raise ValueError(
                f"column {name!r} is to be sent; allowed: {', '.join(TYPES)}"
            )
        if kind not in TYPES[name]:
            raise ValueError(
                f"column {name!r} is {kind}; allowed: {' or '.join(TYPES[name])}"
            )
    if "value" not in found:
        raise ValueError(f"columns are {', '.join(found)}; value is missing")
    if found.keys() >= {"properties", "headers"}:
        raise ValueError("columns properties and headers are given; allowed: one")
    if "topic" not in found and len(options.topics) != 1:
        raise ValueError(
            f"option topic is {','.join(options.topics)!r}, and there is no column "
            "topic; allowed: one name, or the column"
        )
    if "delay_ms" in found and options.guarantee != AT_LEAST_ONCE:
        raise ValueError(
            "column 'delay_ms' with guarantee exactly-once; allowed: with "
            "at-least-once, since staged messages cannot wait for a time"
        )


class BatchWriter(DataSourceArrowWriter):
    """Sends the rows of a table: with `exactly-once` all of them, or none.

    Raises:
        ValueError: The options name a transaction, and the guarantee is another one.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        if options.transaction is None:
            self._producer_id, self._number = f"spark-{uuid.uuid4().hex}", 0
        else:
            self._producer_id, self._number = options.transaction
            if options.guarantee != EXACTLY_ONCE:
                raise ValueError(
                    f"options txnAppId and guarantee {options.guarantee} are given; "
                    "allowed: txnAppId with exactly-once"
                )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage or send the rows of one task."""
        return write(iterator, self._options, self._producer_id, self._number)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make them visible, once for each transaction."""
        commit(self._options, messages, self._number)


class StreamWriter(DataSourceStreamArrowWriter):
    """Sends the rows of a stream, batch by batch.

    Raises:
        ValueError: The options name a transaction, as those of a table do.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        if options.transaction is not None:
            raise ValueError(
                "option txnAppId is given for a stream; allowed: for a table, as in "
                "foreachBatch; whose batches those of a stream are, producerId says"
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage or send the rows of one task of a batch."""
        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        query, batch = (context.getLocalProperty(name) for name in (_QUERY, _BATCH))
        assert query is not None, "Spark names the query of a task"
        assert batch is not None, "Spark numbers the batch of a task"
        producer_id = self._options.producer_id or f"spark-{query}"
        return write(iterator, self._options, producer_id, int(batch))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Make a batch visible, once."""
        commit(self._options, messages, batchId)


def write(
    batches: Iterator[pa.RecordBatch], options: Options, producer_id: str, number: int
) -> Written:
    """Stage or send the rows of one task.

    Args:
        batches: The rows.
        options: Of the sink.
        producer_id: Names the query.
        number: Of its batch.
    """
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    with _senders(options, producer_id) as (sender, thread):

        def ask(one: Callable[[], Awaitable[T]]) -> T:
            return thread.call(_asked(one, options))

        packer = Packer(
            lambda topic: ask(lambda: sender.queues(topic)),
            options.topics[0] if len(options.topics) == 1 else None,
            f"{producer_id}/{number}/{partition}",
            options.producer_config().max_message_bytes,
        )
        rows = 0
        with _InFlight(sender, options, thread) as under_way:
            for batch in batches:
                rows += batch.num_rows
                for parcel in packer.pack(batch):
                    under_way.take(parcel)
            for parcel in packer.rest():
                under_way.take(parcel)
        return Written(producer_id, tuple(sender.staged), rows)


class _InFlight:
    """Parcels that servers have not answered for yet, while the next ones are made.

    They are one a queue, which keeps it in order, and a few in all.
    """

    def __init__(
        self, sender: _Stager | _Sender, options: Options, thread: LoopThread
    ) -> None:
        self._sender = sender
        self._options = options
        self._thread = thread
        self._waiting: dict[MessageQueue, Future[None]] = {}

    def take(self, parcel: Parcel) -> None:
        """Send or stage a parcel; raises what became of one before it."""
        if parcel.queue in self._waiting:
            self._waiting.pop(parcel.queue).result()
        elif len(self._waiting) >= _IN_FLIGHT:
            self._waiting.pop(next(iter(self._waiting))).result()
        one = _asked(partial(self._sender.take, parcel), self._options)
        self._waiting[parcel.queue] = self._thread.begin(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the rest; where the task has failed, nobody needs it."""
        try:
            while self._waiting and kind is None:
                self._waiting.pop(next(iter(self._waiting))).result()
        finally:
            for one in self._waiting.values():
                one.cancel()


@contextmanager
def _senders(
    options: Options, producer_id: str
) -> Iterator[tuple[_Stager | _Sender, LoopThread]]:
    """What takes the parcels of one task, and the loop that it runs on."""
    if options.guarantee == AT_LEAST_ONCE:
        with lent(Producer, options, lambda: _producer(options)) as one:
            yield _Sender(one.client), one.thread
    else:
        with _stagers(options, producer_id) as lent_one:
            yield _Stager(lent_one.client), lent_one.thread


def _stagers(
    options: Options, producer_id: str
) -> AbstractContextManager[Lent[BatchProducer]]:
    def make() -> BatchProducer:
        config = options.producer_config()
        return BatchProducer(options.name_server, producer_id, config=config)

    return lent(BatchProducer, options, make, producer_id)


def _producer(options: Options) -> Producer:
    return Producer(options.name_server, _GROUP, config=options.producer_config())


class _Stager:
    """Stages parcels, for the driver to commit."""

    def __init__(self, client: BatchProducer) -> None:
        self._client = client
        self.staged: list[Staged] = []

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        return await self._client.queues(topic)

    async def take(self, parcel: Parcel) -> None:
        found = await self._client.stage_encoded(parcel.queue, parcel.data)
        self.staged.append(found)


class _Sender:
    """Sends parcels right away."""

    def __init__(self, client: Producer) -> None:
        self._client = client
        self.staged: list[Staged] = []

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        return await self._client.queues(topic)

    async def take(self, parcel: Parcel) -> None:
        if parcel.is_alone:
            (entry,) = decode_batch(parcel.data)
            await self._client.send_entry(parcel.queue, entry)
        else:
            await self._client.send_encoded(parcel.queue, parcel.data, parcel.messages)


def commit(
    options: Options, messages: Sequence[WriterCommitMessage | None], number: int
) -> None:
    """Commit what tasks have staged, as one batch.

    Args:
        options: Of the sink.
        messages: What its tasks returned, in the order of their partitions.
        number: Of the batch.

    Raises:
        SinkError: The query has committed later batches.
        RemotingError: It may be committed or not; Spark commits it again.
    """
    written = [one for one in messages if isinstance(one, Written)]
    staged = [place for one in written for place in one.staged]
    if staged:
        producer_id = written[0].producer_id
        with _stagers(options, producer_id) as one:
            attempt = partial(_commit, one.client, producer_id, number, staged)
            one.call(_asked(attempt, options))


async def _commit(
    producer: BatchProducer, producer_id: str, number: int, staged: Sequence[Staged]
) -> None:
    last = await producer.last()
    if last is not None and last > number:
        raise SinkError(
            f"batch {number} of {producer_id} comes after its batch {last} "
            "was committed; allowed: a checkpoint that was not set back"
        )
    await producer.commit(number, staged)


async def _asked(ask: Callable[[], Awaitable[T]], options: Options) -> T:
    """Ask until servers answer, or have been away for too long."""
    also = _UNKNOWN if options.guarantee == EXACTLY_ONCE else ()
    try:
        return await through_outages(ask, options.outage_timeout_s, also)
    except ResponseError as error:
        if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise SinkError(
                f"{error.address} knows no batches over many queues, as RocketMQ's own "
                "brokers do not; allowed there: guarantee at-least-once"
            ) from error
        raise
