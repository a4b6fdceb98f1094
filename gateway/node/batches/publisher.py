"""Brings a committed batch to its queues: all of it, once.

Laws:

* Messages of a batch are appended to a queue in the order of their marks, and the log
  lets no append succeed behind one that failed. So the highest mark in a queue says how
  many are there, and another try goes on behind it.
* No mark is below the place where the queue ended before the batch was decided.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names, record_builder
from ropeway.gateway.node.batches import records
from ropeway.gateway.node.fold import chunks_from, records_in
from ropeway.gateway.node.record_builder import appended
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.batch import cut, decode_batch
from ropeway.gateway.wire.send_codec import plain_batch
from ropeway.storage.api import NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ropeway.gateway.node.backoff import Backoff
    from ropeway.gateway.node.batches.records import Decided, Staged
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.storage.api import Partition, RecordParts

_ByQueue = defaultdict[tuple[str, int], list[int]]

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
        queues = await self._by_queue(batch.staged.get(self._broker, []))
        await asyncio.gather(
            *(
                self._fill(decided_at, queues[topic, queue_id], topic, queue_id, end)
                for topic, ends in batch.ends.items()
                for queue_id, end in ends.items()
            )
        )

    async def _by_queue(self, offsets: Sequence[int]) -> _ByQueue:
        """Tell which offsets have what was staged for each queue.

        So what is for one queue need not be read for the others.
        """
        while True:
            found: _ByQueue = defaultdict(list)
            try:
                async for staged in self.staged(offsets):
                    queue = (staged.topic, staged.queue_id)
                    found[queue].append(staged.original.queue_offset)
            except NoSuchPartitionError as error:
                log.error("batch lost", reason=str(error))  # noqa: TRY400 - no bug
                return found
            except Exception as error:  # noqa: BLE001 - nobody would begin it again
                await self._backoff.wait(error)
            else:
                return found

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
            for part in cut(staged.original.body):
                async with self._turn():
                    skipped = max(0, there - index)
                    offset = topic.partitions[queue_id].next_offset - skipped
                    store_ms = self._now_ms()
                    made = self._records(
                        topic, staged, part, decided_at, index, offset, store_ms
                    )
                    index += len(made)
                    if not (missing := made[skipped:]):
                        continue
                    stored = appended(topic.partitions[queue_id], missing, store_ms)
                await stored

    def _records(
        self,
        topic: ServedTopic,
        staged: Staged,
        part: bytes,
        decided_at: int,
        index: int,
        offset: int,
        store_ms: int,
    ) -> Sequence[RecordParts]:
        """Make the records of a part of what was staged, with their marks.

        Args:
            topic: Where they go.
            staged: What was staged.
            part: Some of its messages.
            decided_at: The offset of the decision.
            index: The first one's place in its queue's part of the batch.
            offset: The first one's in the queue.
            store_ms: Now.
        """
        queue_id, original = staged.queue_id, staged.original
        born_host, host = message.pack_host(*original.born_host), self._host()
        suffix = f"{self._suffix}{records.mark_before(decided_at)}"
        plain = plain_batch(
            topic.magic,
            topic.name_field,
            queue_id,
            0,
            original.born_ms,
            born_host,
            store_ms,
            host,
            0,
            suffix,
            offset,
            topic.id_bases[queue_id],
            index,
            part,
        )
        if plain is not None:
            return plain
        return [
            record_builder.make_record(
                topic,
                queue_id,
                offset + at,
                store_ms,
                record_builder.NewMessage(
                    body=entry.body,
                    properties=f"{properties.ended(entry.properties)[0]}{suffix}"
                    f"{index + at}{properties.VALUE_END}",
                    flag=entry.flag,
                    born_ms=original.born_ms,
                    born_host=born_host,
                    store_host=host,
                ),
            )
            for at, entry in enumerate(decode_batch(part))
        ]

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
