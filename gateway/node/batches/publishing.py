"""Brings a committed batch to its queues: all of it, once.

Laws:

* Messages of a batch are appended to a queue in the order of their marks, and the log
  lets no append succeed behind one that failed. So the highest mark in a queue says how
  many are there, and another try goes on behind it.
* No mark is below the place where the queue ended before the batch was decided.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING

import structlog

from gateway.node import names, storing
from gateway.node.batches import records
from gateway.wire import message, properties
from storage.api import LogError, NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from gateway.node.batches.records import Decided, Staged
    from gateway.node.patience import Patience
    from gateway.node.served_topic import ServedTopic
    from gateway.node.topics import Topics
    from storage.api import Partition, Record

log = structlog.get_logger(__name__)

_APPEND_BYTES = 512 * 1024
"""Of one append: it costs little, and does not hold up other work for long."""
_READ_COUNT = 512
_READ_BYTES = 1024 * 1024


class Publisher:
    """Publishes batches.

    Args:
        broker: This broker's name.
        suffix: What it adds to the properties of messages, in wire form.
        topics: Where messages go.
        host: This broker's packed address.
        now_ms: The clock.
        patience: Waits for the log.
    """

    def __init__(
        self,
        broker: str,
        suffix: str,
        topics: Topics,
        host: Callable[[], bytes],
        now_ms: Callable[[], int],
        patience: Patience,
    ) -> None:
        self._broker = broker
        self._suffix = suffix
        self._topics = topics
        self._host = host
        self._now_ms = now_ms
        self._patience = patience

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
                await self._patience.wait(error, topic=topic)
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
            count = len(staged.entries())
            if index + count > there:
                await self._append(topic, staged, decided_at, index, there)
            index += count

    async def _append(
        self,
        topic: ServedTopic,
        staged: Staged,
        decided_at: int,
        index: int,
        there: int,
    ) -> None:
        partition = topic.partitions[staged.queue_id]
        waiting = list(enumerate(staged.entries(), index))[max(0, there - index) :]
        while waiting:
            store_ms = self._now_ms()
            made: list[Record] = []
            size = 0
            for at, entry in waiting:
                if size > _APPEND_BYTES:
                    break
                record = storing.make_record(
                    topic,
                    staged.queue_id,
                    partition.next_offset + len(made),
                    store_ms,
                    body=entry.body,
                    text=f"{_ended(entry.properties)}{self._suffix}"
                    f"{records.mark(decided_at, at)}",
                    pairs=properties.parse(entry.properties),
                    flag=entry.flag,
                    sys_flag=0,
                    born_ms=staged.original.born_ms,
                    born_host=message.pack_host(*staged.original.born_host),
                    store_host=self._host(),
                    reconsume_times=0,
                )
                made.append(record)
                size += len(record.data)
            waiting = waiting[len(made) :]
            await appended(partition, made, store_ms)

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
    while start < partition.end:
        chunk = await partition.read(start, _READ_COUNT, _READ_BYTES)
        for one in chain.from_iterable(map(message.split, chunk.data)):
            index = records.marked_index(one, decided_at)
            if index is not None:
                count = max(count, index + 1)
        start = max(chunk.next_offset, start + 1)
    return count


async def appended(partition: Partition, made: Sequence[Record], store_ms: int) -> int:
    """Append records, and return their offset when they are durable.

    Raises:
        LogError: As in `Partition.append`, or what its `done` was told.
    """
    stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def done(offset: int, error: LogError | None) -> None:
        if stored.cancelled():
            return
        if error is None:
            stored.set_result(offset)
        else:
            stored.set_exception(error)

    partition.append(made, store_ms, done)
    return await stored


def _ended(text: str) -> str:
    if text and not text.endswith(properties.VALUE_END):
        return text + properties.VALUE_END
    return text
