"""What push and pull consumers share: queues taken, pulled from and given up.

Source: DefaultMQPushConsumerImpl.java and RebalancePushImpl.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ropeway.client import queue_bounds, running_info
from ropeway.client.errors import RemotingError, TopicNotFoundError
from ropeway.client.message import (
    RETRY,
    ConsumeFrom,
    ConsumeResult,
    MessageQueue,
    ReceivedMessage,
)
from ropeway.client.process_queue import ProcessQueue
from ropeway.client.pull_request import Puller
from ropeway.client.rebalance import Rebalancer
from ropeway.client.running_info import Rates
from ropeway.client.send_request import RETRY_PREFIX
from ropeway.client.subscription import Subscription, parse
from ropeway.client.subscription_check import check
from ropeway.client.tasks import OwnedTasks, cancel
from ropeway.gateway.wire import bodies

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Sequence

    from ropeway.client.config import ConsumerConfig
    from ropeway.client.handlers import Handlers
    from ropeway.client.instance import Instance
    from ropeway.client.offsets import OffsetStore

_log = logging.getLogger(__name__)


class Held:
    """A queue that is being read."""

    def __init__(self, messages: ProcessQueue, subscription: Subscription) -> None:
        self.messages = messages
        self.subscription = subscription
        self.tasks: list[asyncio.Task[None]] = []
        """Pulling, and for orderly queues handling; ended tasks make it unhealthy."""
        self.release: asyncio.Task[None] | None = None
        """Set while the queue is being given up."""
        self.restarts = False
        """Pulling ends, to begin at another offset: that makes it not unhealthy."""
        self.failure: RemotingError | None = None
        """Why the last pull failed, if it did."""
        self.locked_at = 0.0
        """When its lock was last granted, by the loop's clock; orderly only."""


class Setup(NamedTuple):
    """What a reader is made of."""

    instance: Instance
    group: str
    config: ConsumerConfig
    offsets: OffsetStore
    """Where the group goes on."""
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where it starts on a queue that it never read."""
    is_broadcasting: bool = False
    """Every consumer reads all queues."""
    is_push: bool = True
    """Tell brokers that handlers are called, and not that somebody asks."""


class QueueReader:
    """Reads the queues that rebalancing gives, into process queues.

    Subclasses say what to do with messages: `arrived`, and perhaps how a queue is
    locked (`acquire`), worked on (`work`) and let go of (`released`).
    """

    def __init__(self, setup: Setup) -> None:
        self.instance = setup.instance
        self.group = setup.group
        self.config = setup.config
        self.offsets = setup.offsets
        self.is_broadcasting = setup.is_broadcasting
        self.queues: dict[MessageQueue, Held] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.tasks = OwnedTasks()
        self.rates = Rates()
        self._setup = setup
        self._puller = Puller(setup.instance, setup.group, setup.config)
        self.rebalancer = Rebalancer(
            setup.instance,
            setup.group,
            self,
            setup.config,
            is_broadcasting=setup.is_broadcasting,
        )
        setup.instance.on_consumers_changed(self.rebalancer.wake)
        setup.instance.describe = self._describe
        setup.instance.on_running_info(self._running_info)

    async def handled(
        self, batch: Sequence[ReceivedMessage], handlers: Handlers
    ) -> ConsumeResult:
        """Call the handler of a batch, and count what came of it."""
        began_s = time.monotonic()
        result = await handlers.run(batch)
        self.rates.handled(
            batch[0].topic,
            len(batch),
            time.monotonic() - began_s,
            failed=result is RETRY,
        )
        return result

    # What subclasses say.

    def arrived(self, held: Held) -> None:
        """A pull was answered: messages may have been put into a process queue."""
        if not held.messages:
            # Nothing is in hand: what the filter left out is done with.
            self.offsets.update(held.messages.queue, held.messages.safe_offset)

    def chosen(self, topic: str) -> set[MessageQueue] | None:
        """The queues of a topic to read, where rebalancing does not decide that."""
        del topic
        return None

    async def acquire(self, held: Held) -> bool:
        """Get the right to read a queue; False where somebody else has it."""
        del held
        return True

    def work(self, held: Held) -> Coroutine[Any, Any, None] | None:
        """What runs as long as a queue is held, besides pulling."""
        del held
        return None

    async def released(self, held: Held) -> None:
        """A queue is let go of and its offset stored."""

    async def unlock_all(self) -> None:
        """Give all queues free for others; here they need no lock."""

    # Subscribing and starting.

    def subscribe(self, topic: str, expression: str) -> None:
        """Read a topic: `*`, tags joined by `||`, or an `Sql` condition."""
        version = time.time_ns() // 1_000_000
        self.subscriptions[topic] = parse(topic, expression, version)

    async def start(self) -> None:
        """Find the topics, announce the consumer, take the first queues.

        Raises:
            RemotingError: No name server can be reached, or a condition is malformed.
        """
        self.instance.start()
        for topic, wanted in self.subscriptions.items():
            try:
                route = await self.instance.routes.get(topic)
            except TopicNotFoundError:
                if not topic.startswith(RETRY_PREFIX):
                    _log.warning("topic=%s does not exist yet", topic)
            else:
                await check(self.instance, self.group, wanted, route)
        await self.instance.heartbeat()
        self.tasks.spawn(self.rebalancer.run(), "rebalance")
        self.tasks.spawn(self._store_offsets(), "offsets")

    async def stop_reading(self) -> None:
        """Take and pull nothing more; what is in hand still counts."""
        await self.tasks.close()
        for held in self.queues.values():
            held.messages.stop()
            await cancel(held.tasks[0])

    # What the rebalancer asks.

    def topics(self) -> Collection[str]:
        """The topics that are subscribed to."""
        return self.subscriptions

    def held(self) -> Collection[MessageQueue]:
        """The queues that are read now, or are being given up."""
        return self.queues

    def is_healthy(self, queue: MessageQueue) -> bool:
        """Whether a held queue is really being read."""
        held = self.queues[queue]
        is_read = held.restarts or not any(task.done() for task in held.tasks)
        return held.release is None and is_read

    async def take(self, queue: MessageQueue, offset: int | None = None) -> bool:
        """Start to read a queue, by default where the group goes on.

        Raises:
            RemotingError: It cannot be read now.
        """
        config = self.config
        messages = ProcessQueue(
            queue, 0, config.max_cached_messages, config.max_cached_bytes
        )
        held = Held(messages, self.subscriptions[queue.topic])
        if not await self.acquire(held):
            return False
        if offset is None:
            offset = await self._start_offset(queue)
        messages.next_offset = offset
        self.queues[queue] = held
        self._spawn(held, self._pull_all(held), "pull")
        if work := self.work(held):
            self._spawn(held, work, "handle")
        return True

    async def restart(self, queue: MessageQueue, offset: int) -> None:
        """Read a held queue from another offset on; it stays held, and healthy."""
        held = self.queues[queue]
        held.messages.drop()
        held.restarts = True
        try:
            await cancel(held.tasks[0])
            # It may just have been lost to another consumer.
            if held.release is None:
                await self.take(queue, offset)
        finally:
            held.restarts = False

    def _spawn(self, held: Held, work: Coroutine[Any, Any, None], what: str) -> None:
        name = f"{what} {held.messages.queue}"
        held.tasks.append(self.instance.tasks.spawn(work, name))

    def give_up(self, queue: MessageQueue) -> None:
        """Begin to let go of a queue; rebalancing goes on when that is done."""
        held = self.queues[queue]
        if held.release is None or held.release.done():
            held.release = self.tasks.spawn(self._release(held), f"release {queue}")

    async def _release(self, held: Held) -> None:
        pulling, *handling = held.tasks
        held.messages.stop()
        await cancel(pulling)
        if handling:
            # The next owner must not handle a message while this one still does.
            await asyncio.wait(handling, timeout=self.config.lock_lifetime_s)
            await cancel(*handling)
        held.messages.drop()
        queue = held.messages.queue
        try:
            await self.offsets.store(queue)
            await self.released(held)
        except RemotingError as error:
            _log.warning("not given up cleanly queue=%s error=%s", queue, error)
        self.offsets.forget(queue)
        self._puller.forget(queue)
        del self.queues[queue]
        self.rebalancer.wake()

    async def _start_offset(self, queue: MessageQueue) -> int:
        stored = await self.offsets.read(queue)
        if stored is not None:
            return stored
        if queue.topic.startswith(RETRY_PREFIX):
            return 0
        return await queue_bounds.start_offset(
            self.instance,
            queue,
            self._setup.consume_from,
            self.config.consume_from_ms,
        )

    # Pulling and storing.

    async def _pull_all(self, held: Held) -> None:
        messages = held.messages
        while not messages.stopped.is_set():
            await messages.wait_for_room()
            try:
                await self._pull_once(held)
                held.failure = None
            except RemotingError as error:
                held.failure = error
                _log.warning("pull failed queue=%s error=%s", messages.queue, error)
                await asyncio.sleep(self.config.retry_delay_s)

    async def _pull_once(self, held: Held) -> None:
        messages = held.messages
        queue = messages.queue
        commit = None if self.is_broadcasting else self.offsets.known(queue)
        pulled = await self._puller.pull(
            queue, messages.next_offset, held.subscription, commit
        )
        if pulled.moved:
            _log.warning(
                "offset moved queue=%s from=%d to=%d",
                queue,
                messages.next_offset,
                pulled.next_offset,
            )
            messages.drop()
            self.offsets.update(queue, pulled.next_offset)
            self.give_up(queue)
            return
        self.rates.pulled(queue.topic, len(pulled.messages))
        messages.put(pulled.messages, pulled.next_offset)
        self.arrived(held)

    async def _store_offsets(self) -> None:
        while True:
            await asyncio.sleep(self.config.commit_interval_s)
            await self.offsets.store_all()

    def _running_info(self, stack: bool) -> bytes:
        return running_info.encode(
            self._consumer(),
            {
                queue: running_info.process_queue(
                    held.messages, is_locked=bool(held.locked_at)
                )
                for queue, held in self.queues.items()
            },
            self.rates,
            stack=stack,
        )

    def _describe(self) -> bodies.HeartbeatData:
        return bodies.HeartbeatData(
            client_id=self.instance.client_id,
            producer_data_set=[],
            consumer_data_set=[self._consumer()],
        )

    def _consumer(self) -> bodies.ConsumerData:
        kind, model = bodies.CONSUME_ACTIVELY, bodies.CLUSTERING
        if self._setup.is_push:
            kind = bodies.CONSUME_PASSIVELY
        if self.is_broadcasting:
            model = bodies.BROADCASTING
        return bodies.ConsumerData(
            group_name=self.group,
            consume_type=kind,
            message_model=model,
            consume_from_where=self._setup.consume_from.value,
            subscription_data_set=[
                wanted.data() for wanted in self.subscriptions.values()
            ],
        )
