"""Batches as processors see them: staged, committed, and known by their last number.

Laws:

* A batch is committed when its decision is in the topic of batches; nothing else
  counts. Of two decisions with one number the first counts.
* What is committed is delivered, by this node or the one that leads after it, and what
  was staged for a commit that never came is not.
* The floor is a consumer offset: all batches decided below it are delivered, and the
  last ones of their producers are told again at or above it. So a stale floor means
  more to read at a start, no more.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names
from ropeway.gateway.node.backoff import Backoff
from ropeway.gateway.node.batches import records
from ropeway.gateway.node.batches.publisher import Publisher
from ropeway.gateway.node.batches.records import Decided, Known, Published
from ropeway.gateway.node.fold import chunks_from, first_above, records_in
from ropeway.gateway.node.record_builder import appended
from ropeway.gateway.wire.commands.batches import NO_BATCH
from ropeway.storage.api import LogError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ropeway.gateway.node.batches.records import Entry
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.storage.api import Partition

    Allow = Callable[[str], Awaitable[None]]

log = structlog.get_logger(__name__)

_KNOWN_S = 10.0
"""How long a commit waits until it is known what was committed before."""
_TELL_EVERY_S = 1800.0
"""How often producers' last batches are told again: far more often than retention
deletes records."""
_FORGET_MS = 7 * 24 * 3_600_000
"""A producer that has committed nothing for so long is forgotten, as in Kafka."""


async def _everybody_may(_topic: str) -> None:
    """Access is not controlled."""


class BatchError(Exception):
    """A batch cannot be committed so; the text says why."""


class ForeignBatchError(Exception):
    """A batch or a producer is another principal's; the text says which."""


class Batches:
    """The batches of a broker; a duty of the node that leads it.

    Args:
        broker: Whose they are; its offsets keep the floor.
        suffix: What it adds to the properties of messages, in wire form.
        most_producers: So many are known; commits of one more are refused.
        pause: Waits for so many seconds.
    """

    def __init__(
        self,
        broker: BrokerContext,
        suffix: str,
        most_producers: int,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._broker = broker.name
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._host = broker.host
        self._now_ms = broker.clock
        self._most_producers = most_producers
        self._backoff = Backoff("batches wait", broker.log, pause)
        self._publisher = Publisher(broker, suffix, self._backoff)
        self._task: asyncio.Task[None] | None = None
        self._begin()

    def _begin(self) -> None:
        self._known = asyncio.Event()
        self._lost = asyncio.Event()
        self._deciding = asyncio.Lock()
        self._last: dict[str, Decided] = {}
        self._publishing: dict[int, asyncio.Task[None]] = {}
        """By the offset of its decision."""

    # The duty.

    async def take_over(self) -> None:
        """Find out what was committed, beside other work, and deliver it."""
        self._begin()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def give_up(self) -> None:
        """Leave the rest to the node that leads next."""
        if self._task is None:
            return
        ended = [self._task, *self._publishing.values()]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        self._task = None
        self._begin()

    async def _run(self) -> None:
        while True:
            self._lost.clear()
            await self._backoff.insist(self._rebuild)
            self._known.set()
            while not self._lost.is_set():
                await self._backoff.insist(self._tell)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._lost.wait(), _TELL_EVERY_S)

    async def _rebuild(self) -> None:
        """Read what was committed, and go on with what is not delivered yet."""
        topic = self._topics.get(names.BATCHES_TOPIC)
        if topic is None:
            return
        partition = topic.partitions[0]
        floor = self._offsets.get(names.BATCHES_GROUP, names.BATCHES_TOPIC, 0)
        at = first_above(partition, floor)
        open_batches: dict[int, Decided] = {}
        async for chunk in chunks_from(partition, at):
            for one in records_in(chunk):
                self._learn(open_batches, *records.read_entry(one))
        for offset, batch in open_batches.items():
            if offset not in self._publishing:
                self._publish(offset, batch)

    def _learn(self, open_batches: dict[int, Decided], at: int, entry: Entry) -> None:
        match entry:
            case Decided():
                last = self._last.get(entry.producer_id)
                if last is None or last.batch_id < entry.batch_id:
                    self._last[entry.producer_id] = entry
                    open_batches[at] = entry
            case Published():
                open_batches.pop(entry.decided_at, None)
            case Known():
                for batch in entry.last:
                    last = self._last.get(batch.producer_id)
                    if last is None or last.batch_id < batch.batch_id:
                        self._last[batch.producer_id] = batch

    async def _tell(self) -> None:
        """Tell producers' last batches again, and let older records go."""
        topic = self._topics.get(names.BATCHES_TOPIC)
        if topic is None:
            return
        oldest_ms = self._now_ms() - _FORGET_MS
        async with self._deciding:
            last = [one for one in self._last.values() if one.store_ms > oldest_ms]
            self._last = {one.producer_id: one for one in last}
            open_at = min(self._publishing, default=None)
            offset = await self._write(topic, Known(last))
        floor = offset if open_at is None else min(offset, open_at)
        self._offsets.commit(names.BATCHES_GROUP, names.BATCHES_TOPIC, 0, floor)

    async def _write(self, topic: ServedTopic, entry: Entry) -> int:
        store_ms = self._now_ms()
        record = records.entry_record(topic, store_ms, entry, self._host())
        return await appended(topic.partitions[0], [record], store_ms)

    # What requests do.

    async def stage(
        self,
        producer_id: str,
        topic: str,
        queue_id: int,
        body: bytes,
        born_host: bytes,
        owner: str = "",
    ) -> int:
        """Keep messages until a commit names them.

        Args:
            producer_id: Whose.
            topic: Where they are for.
            queue_id: Which queue of it.
            body: The messages, as `decode_batch` reads them.
            born_host: The producer's packed address.
            owner: The principal who alone may commit them; empty: anybody.

        Returns:
            What a commit names them by.

        Raises:
            LogError: They cannot be kept.
            RouteError: Likewise.
        """
        kept = await self._topics.ensure_derived(names.STAGED_TOPIC, 1)
        store_ms = self._now_ms()
        record = records.staged_record(
            kept,
            store_ms,
            producer_id=producer_id,
            owner=owner,
            for_topic=topic,
            for_queue_id=queue_id,
            body=body,
            born_host=born_host,
            store_host=self._host(),
        )
        return await appended(kept.partitions[0], [record], store_ms)

    async def commit(
        self,
        producer_id: str,
        batch_id: int,
        staged: Mapping[str, Sequence[int]],
        owner: str = "",
        allow: Allow = _everybody_may,
    ) -> Mapping[str, Sequence[int]]:
        """Commit a batch, once, and return when this broker's part is delivered.

        Args:
            producer_id: Whose.
            batch_id: Its number.
            staged: Broker to what it named staged messages by.
            owner: Who commits; empty where access is not controlled.
            allow: Raises what refuses a batch with messages for a topic.

        Returns:
            What was committed first under this number; nothing where the producer has
            committed later batches since.

        Raises:
            BatchError: It names what is not staged by this producer, or names it twice.
            ForeignBatchError: Somebody else staged it, or commits as this producer.
            LogError: It may be committed or not: the same commit again tells.
            RouteError: Likewise.
        """
        await self._until_known()
        topic = await self._topics.ensure_derived(names.BATCHES_TOPIC, 1)
        async with self._deciding:
            last = self._last.get(producer_id)
            if last is not None:
                _check_owner(f"producer {producer_id}", last.owner, owner)
            if last is None or last.batch_id < batch_id:
                last = await self._decide(
                    topic, producer_id, batch_id, staged, owner, allow
                )
        running = [
            task for task in self._publishing.values() if task.get_name() == producer_id
        ]
        if running:
            await asyncio.wait(running)
        return last.staged if last.batch_id == batch_id else {}

    @property
    def is_busy(self) -> bool:
        """Whether a batch is being decided, or one that is decided is not delivered."""
        return self._deciding.locked() or bool(self._publishing)

    async def last(self, producer_id: str, owner: str = "") -> int:
        """The number of a producer's last batch.

        Raises:
            ForeignBatchError: It is somebody else's.
            NotReadyError: It takes too long to find out.
        """
        await self._until_known()
        last = self._last.get(producer_id)
        if last is None:
            return NO_BATCH
        _check_owner(f"producer {producer_id}", last.owner, owner)
        return last.batch_id

    async def _until_known(self) -> None:
        try:
            await asyncio.wait_for(self._known.wait(), _KNOWN_S)
        except TimeoutError as error:
            raise NotReadyError(names.BATCHES_TOPIC) from error

    async def _decide(
        self,
        topic: ServedTopic,
        producer_id: str,
        batch_id: int,
        staged: Mapping[str, Sequence[int]],
        owner: str,
        allow: Allow,
    ) -> Decided:
        known = len(self._last)
        if producer_id not in self._last and known >= self._most_producers:
            raise BatchError(
                f"{known} producers have committed batches within seven days; allowed: "
                f"{self._most_producers}, limits.batch_producers"
            )
        batch = Decided(
            producer_id,
            batch_id,
            self._now_ms(),
            {broker: list(offsets) for broker, offsets in staged.items()},
            await self._ends(producer_id, staged.get(self._broker, ()), owner, allow),
            owner,
        )
        try:
            offset = await self._write(topic, batch)
        except LogError:
            # It may be in the log all the same, and only reading tells.
            self._known.clear()
            self._lost.set()
            raise
        self._last[producer_id] = batch
        self._publish(offset, batch)
        return batch

    async def _ends(
        self, producer_id: str, offsets: Sequence[int], owner: str, allow: Allow
    ) -> dict[str, dict[int, int]]:
        """Where the queues of staged messages end."""
        if len(set(offsets)) < len(offsets):
            raise BatchError("an offset is named twice; allowed: each once")
        partitions: dict[tuple[str, int], Partition] = {}
        async for staged in self._publisher.staged(offsets):
            if staged.producer_id != producer_id:
                raise BatchError(
                    f"offset {staged.original.queue_offset} was staged by producer "
                    f"{staged.producer_id:.200}, not by {producer_id:.200}"
                )
            at = f"what is staged at offset {staged.original.queue_offset}"
            _check_owner(at, staged.owner, owner)
            served = self._topics.get(staged.topic)
            if served is None or staged.queue_id >= len(served.partitions):
                raise BatchError(f"topic {staged.topic} of staged messages was deleted")
            queue = (staged.topic, staged.queue_id)
            partitions[queue] = served.partitions[staged.queue_id]
        for name in dict.fromkeys(topic for topic, _ in partitions):
            await allow(name)
        ends: dict[str, dict[int, int]] = {}
        for (topic, queue_id), partition in partitions.items():
            ends.setdefault(topic, {})[queue_id] = partition.end
        return ends

    def _publish(self, offset: int, batch: Decided) -> None:
        self._publishing[offset] = asyncio.get_running_loop().create_task(
            self._deliver(offset, batch), name=batch.producer_id
        )

    async def _deliver(self, offset: int, batch: Decided) -> None:
        await self._publisher.publish(offset, batch)
        topic = self._topics.get(names.BATCHES_TOPIC)
        if topic is not None:
            try:
                await self._write(topic, Published(offset))
            except LogError as error:
                log.warning("a start looks at this batch again", reason=str(error))
        del self._publishing[offset]


def _check_owner(what: str, owner: str, asking: str) -> None:
    if owner and asking and owner != asking:
        raise ForeignBatchError(f"{what:.300} is not of {asking:.200}")
