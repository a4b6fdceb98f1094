"""Brings a committed batch to its queues: all of it, once.

Laws:

* Messages of a batch are appended to a queue in the order of their marks, and the log
  lets no append succeed behind one that failed. So the highest mark in a queue says how
  many are there, and another try goes on behind it.
* No mark is below the place where the queue ended before the batch was decided.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names, record_builder
from ropeway.gateway.node.batches import records
from ropeway.gateway.node.fold import chunks_from, records_in
from ropeway.gateway.node.record_builder import appended
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.batch import cut, decode_batch
from ropeway.storage.api import NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from ropeway.gateway.node.backoff import Backoff
    from ropeway.gateway.node.batches.records import Decided, Staged
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.batch import BatchEntry
    from ropeway.storage.api import Partition

log = structlog.get_logger(__name__)


class Publisher:
    """Publishes batches.

    Args:
        broker: The one that staged them.
        suffix: What it adds to the properties of messages, in wire form.
        backoff: Waits for the log.
    """

    def __init__(self, broker: BrokerContext, suffix: str, backoff: Backoff) -> None:
        self._broker = broker.name
        self._suffix = suffix
        self._topics = broker.topics
        self._host = broker.host
        self._now_ms = broker.clock
        self._backoff = backoff
        self._lock = asyncio.Lock()

    async def publish(self, decided_at: int, batch: Decided) -> None:
        """Return when all messages of a batch are in their queues.

        Args:
            decided_at: The offset of its decision.
            batch: The decision.
        """
        offsets = batch.staged.get(self._broker, [])
        queues = [
            (topic, queue_id, end)
            for topic, ends in batch.ends.items()
            for queue_id, end in ends.items()
        ]
        await asyncio.gather(
            *(self._fill(decided_at, offsets, *queue) for queue in queues)
        )

    async def _fill(
        self,
        decided_at: int,
        offsets: Sequence[int],
        topic: str,
        queue_id: int,
        end: int,
    ) -> None:
        """Bring its messages to one queue, however often it takes."""
        while True:
            try:
                await self._go_on(decided_at, offsets, topic, queue_id, end)
            except NoSuchPartitionError as error:
                log.error("batch lost", topic=topic, reason=str(error))  # noqa: TRY400 - no bug
                return
            except Exception as error:  # noqa: BLE001 - nobody would begin it again
                await self._backoff.wait(error, topic=topic)
            else:
                return

    async def _go_on(
        self,
        decided_at: int,
        offsets: Sequence[int],
        name: str,
        queue_id: int,
        end: int,
    ) -> None:
        topic = self._topics.get(name)
        if topic is None or queue_id >= len(topic.partitions):
            raise NoSuchPartitionError(f"topic {name} was deleted")
        there = await _count_marked(topic.partitions[queue_id], end, decided_at)
        index = 0
        async for staged in self.staged(offsets):
            if (staged.topic, staged.queue_id) != (name, queue_id):
                continue
            for part in cut(staged.original.body):
                async with self._turn():
                    entries = decode_batch(part)
                    marks = range(index, index + len(entries))
                    index = marks.stop
                    missing = list(zip(marks, entries, strict=True))
                    missing = missing[max(0, there - marks.start) :]
                    stored = self._append(topic, staged, missing, decided_at)
                await stored

    def _append(
        self,
        topic: ServedTopic,
        staged: Staged,
        entries: Sequence[tuple[int, BatchEntry]],
        decided_at: int,
    ) -> Awaitable[object]:
        """Begin to append messages with their marks; returned when they are durable."""
        partition = topic.partitions[staged.queue_id]
        store_ms = self._now_ms()
        made = [
            record_builder.make_record(
                topic,
                staged.queue_id,
                offset,
                store_ms,
                record_builder.NewMessage(
                    body=entry.body,
                    properties=f"{properties.ended(entry.properties)[0]}{self._suffix}"
                    f"{records.mark(decided_at, at)}",
                    flag=entry.flag,
                    born_ms=staged.original.born_ms,
                    born_host=message.pack_host(*staged.original.born_host),
                    store_host=self._host(),
                ),
            )
            for offset, (at, entry) in enumerate(entries, partition.next_offset)
        ]
        return appended(partition, made, store_ms) if made else asyncio.sleep(0)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Let others go on, and then no other batch until this part is done."""
        async with self._lock:
            await asyncio.sleep(0)
            yield

    async def staged(self, offsets: Sequence[int]) -> AsyncIterator[Staged]:
        """What was staged at some offsets, in their order.

        Raises:
            NoSuchPartitionError: Some of it is not there.
            LogError: It cannot be read now.
        """
        topic = self._topics.get(names.STAGED_TOPIC)
        for offset in offsets:
            chunk = None
            if topic is not None:
                async with self._turn():
                    chunk = await topic.partitions[0].read(offset, 1, 1)
            if chunk is None or not chunk.data:
                raise NoSuchPartitionError(f"nothing is staged at offset {offset}")
            found = records.read_staged(chunk.data[0])
            if found.original.queue_offset != offset:
                raise NoSuchPartitionError(f"nothing is staged at offset {offset}")
            yield found


async def _count_marked(partition: Partition, start: int, decided_at: int) -> int:
    """How many messages of a batch a queue has, from an offset on."""
    count = 0
    async for chunk in chunks_from(partition, start):
        for one in records_in(chunk):
            index = records.marked_index(one, decided_at)
            if index is not None:
                count = max(count, index + 1)
    return count
