"""Popping: hands messages out, takes receipts, and brings back what lacks one.

Progress of a group is committed up to the first message that is neither done nor in the
ledger. So whoever takes the broker over hands out again what was in hand and young, and
finds all else in the ledger: nothing is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING

import structlog

from ropeway.common.tasks import Tasks
from ropeway.gateway.node.backoff import Backoff, Rest, keep_doing
from ropeway.gateway.node.derived_store import keep
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.node.names import ORDER_SIGN, POP_TOPIC
from ropeway.gateway.pop.acks import Acks
from ropeway.gateway.pop.in_flight import SLOT_MS
from ropeway.gateway.pop.pop_dispatch import PopDispatch
from ropeway.gateway.pop.revive import Revive
from ropeway.gateway.pop.upkeep import DUE_COUNT, Upkeep
from ropeway.gateway.wire import receipt
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from ropeway.gateway.node.groups import Groups
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.pop.context import PopContext
    from ropeway.gateway.pop.in_flight import PopQueue
    from ropeway.gateway.pop.order import Place

log = structlog.get_logger(__name__)

_TURN_S = SLOT_MS / 1000
_CLOCK_S = 1.0
"""How often the clock is looked at while something waits for a time: it is set."""
_WRITE_DOWN_S = 5.0
_LOOK_EVERY_MS = 10_000
"""How long the ledger is not looked at that has nothing due, at most."""
_CLEAN_EVERY_MS = 3_600_000
MAX_POLLING = 1024
"""Pops of one group that wait at one queue: popPollingSize's default."""


class Pop:
    """Popping of a broker: a duty of the node that leads it.

    Args:
        context: Whose messages are popped, and what is out.
        groups: Who pops.
        timer: The topic of messages that wait for their time.
    """

    def __init__(
        self, context: PopContext, groups: Groups, timer: Callable[[], ServedTopic]
    ) -> None:
        broker, config = context.broker, context.config
        self.switches = context.switches
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._resets = context.resets
        self._clock = broker.clock
        self.in_flight = context.in_flight
        self.book = context.book
        self.polling = context.polling
        self.ledger = context.ledger
        self.dispatch = PopDispatch(context, self._forget_queue)
        self.acks = Acks(context)
        kind = receipt.RETRY_V2 if config.retry_topic_v2 else receipt.RETRY_V1
        self._upkeep = Upkeep(context, Revive(broker, groups, timer, kind))
        self.roll_back = self._upkeep.roll_back
        self._backoff = Backoff("ledger of pops is not there", broker.log)
        self._tasks = Tasks()
        self._running: list[asyncio.Task[None]] = []
        self._looking = False
        self._clean_ms = 0
        self._rest = Rest(self._next_s)
        for one in (self.in_flight, self.book, self.ledger, self.switches):
            one.wake = self._rest.wake
        broker.topics.watch_deleted(lambda topic: self.forget(topic=topic.name))

    # A duty.

    async def take_over(self) -> None:
        """Hand out, from where groups are."""
        self._block_queues()
        loop = asyncio.get_running_loop()
        self._running = [
            loop.create_task(
                keep_doing("popping", _TURN_S, self.turn, self._rest.pause)
            ),
            loop.create_task(keep("pops", self._have_ledger, self._backoff)),
        ]

    async def give_up(self) -> None:
        """Stop, and write down what is in hand, so that it need not come again."""
        running, self._running = self._running, []
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *self._tasks, return_exceptions=True)
        self.polling.release_all()
        if running:
            in_hand = [
                (queue, batch)
                for queue in self.in_flight
                for batch in queue.batches.values()
            ]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._upkeep.keep(in_hand), _WRITE_DOWN_S)
            self._commit()
        await self.ledger.close()
        self.in_flight.clear()
        self.book.clear()

    def _block_queues(self) -> None:
        """What was in hand in order stays there, for as long as was said."""
        now_ms = self._clock()
        latest_ms = now_ms + self.ledger.longest_ms
        for group in self._offsets.groups():
            for name in self._offsets.topics(group):
                if not name.startswith(ORDER_SIGN):
                    continue
                topic = name.removeprefix(ORDER_SIGN)
                for queue_id, free_ms in self._offsets.queues(group, name).items():
                    offset = self._offsets.get(group, topic, queue_id) or 0
                    if free_ms > now_ms:
                        place = (group, topic, queue_id)
                        until_ms = min(free_ms, latest_ms)
                        self.book.block(place, offset, until_ms)

    def forget(self, *, group: str | None = None, topic: str | None = None) -> None:
        """A group or a topic is gone."""
        self.polling.release_all(
            lambda key: group in (None, key[0]) and topic in (None, key[1])
        )
        self.in_flight.forget(group=group, topic=topic)
        self.book.forget(group=group, topic=topic)
        if topic is not None:
            self._offsets.forget(group=group, topic=ORDER_SIGN + topic)

    async def settle(self, topic: str, queue_id: int) -> None:
        """Turn what the ledger has of a queue into retries that come at their time.

        What is young stays in hand, and what cannot be stored again in the ledger.

        Raises:
            IndexLostError: The ledger's store cannot be used.
        """
        for queue in self.in_flight:
            if (queue.topic, queue.queue_id) == (topic, queue_id) and queue.kept:
                await self._upkeep.settle_queue(queue.place)

    def has_kept(self, topic: str, queue_id: int) -> bool:
        """Whether the ledger has, or may have, messages of a queue."""
        if self._topics.get(POP_TOPIC) is None:
            return False
        return not self.ledger.is_open() or any(
            queue.kept
            for queue in self.in_flight
            if (queue.topic, queue.queue_id) == (topic, queue_id)
        )

    def leave(self, topic: str, queue_id: int) -> None:
        """A queue is not this broker's any more, or only since now.

        Groups are committed as far as they are done; what they have in hand comes
        again, wherever the queue is then.
        """
        self._commit()
        self.in_flight.leave(topic, queue_id)
        self.book.leave(topic, queue_id)
        self.polling.release_all(lambda key: key[1] == topic)

    def _forget_queue(self, queue: PopQueue) -> None:
        """A group was moved in a queue: nothing that it has in hand there counts."""
        place = queue.place
        self.in_flight.empty(queue)
        self.book.drop(place)
        self._offsets.commit(queue.group, ORDER_SIGN + queue.topic, queue.queue_id, 0)
        if queue.kept:
            queue.kept = 0
            self._tasks.start(self._drop(queue))

    async def _drop(self, queue: PopQueue) -> None:
        place = queue.place
        try:
            await self.ledger.drop(place)
        except (LogError, IndexLostError) as error:
            log.warning(
                "messages from before a reset may come again",
                group=queue.group,
                topic=queue.topic,
                queue_id=queue.queue_id,
                reason=str(error),
            )

    # Turns.

    def is_idle(self) -> bool:
        """Whether nothing is being stored again, or written down."""
        return not self._tasks

    def _next_s(self) -> float:
        """In how many seconds something is due; 0 while something is on its way."""
        if self._tasks or self.in_flight.unsaid or not self.ledger.is_open():
            return 0.0
        next_ms = min(self.book.next_ms, self.in_flight.next_ms)
        longest_s = math.inf if math.isinf(next_ms) else _CLOCK_S
        next_ms = min(next_ms, self.ledger.look_ms)
        return min((next_ms - self._clock()) / 1000, longest_s)

    def turn(self) -> None:
        """Do what is due, and say how far groups have come."""
        now_ms = self._clock()
        if self.switches.look():
            self.polling.wake_all()
        if not self.switches.works:
            return
        self._take_due(now_ms)
        if self.in_flight.unsaid:
            self._commit()
        if self.book.waits:
            for group, topic, queue_id in self.book.take_free(now_ms):
                self.polling.wake((group, topic), queue_id)
        is_due = now_ms >= self.ledger.look_ms and self.ledger.is_open()
        if is_due and not self._looking:
            self._looking = True
            self.ledger.look_ms = now_ms + _LOOK_EVERY_MS
            self._tasks.start(self._look(now_ms))
        if now_ms >= self._clean_ms:
            self._clean_ms = now_ms + _CLEAN_EVERY_MS
            self.book.clean(now_ms)

    def _take_due(self, now_ms: int) -> None:
        back, kept = [], []
        for queue, batch in self.in_flight.take_due(now_ms):
            if batch.leaving:
                continue
            if batch.visible_ms <= now_ms:
                batch.leaving = True
                back.append((queue, batch))
            else:
                kept.append((queue, batch))
        for at in range(0, len(back), DUE_COUNT):
            self._tasks.start(self._upkeep.bring(back[at : at + DUE_COUNT]))
        if kept:
            self._tasks.start(self._upkeep.keep(kept))

    def _commit(self) -> None:
        queues, self.in_flight.unsaid = self.in_flight.unsaid, set()
        for queue in queues:
            offset = queue.done_to
            place = queue.place
            if offset is None or offset == queue.committed:
                continue
            if self._resets.pending and self._resets.get(*place):
                continue
            self._offsets.commit(*place, offset)
            queue.committed = offset

    async def _look(self, now_ms: int) -> None:
        try:
            await self._upkeep.look(now_ms)
        finally:
            self._looking = False

    async def _have_ledger(self, anew: bool) -> None:
        await self.ledger.open(self._count, anew=anew)
        await self.ledger.lost.wait()

    def _count(self, counts: Counter[Place]) -> None:
        for queue in self.in_flight:
            queue.kept = 0
        for place, count in counts.items():
            self.in_flight.queue(*place).kept = count
