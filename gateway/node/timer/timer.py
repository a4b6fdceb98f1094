"""The timer: takes messages in that are to wait, and delivers them when they are due.

How far it has come is kept as two consumer offsets of the system topic, which the nodes
of a broker share: of all messages before an offset (queue 0), those that were to be
visited until a time (queue 1, in milliseconds since 1970) have been. Each alone may be
older than it could be: then messages come again. None is ever lost. Queue 2 has an
offset before which nothing waits, whatever its time: it has left a drained broker.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names
from ropeway.gateway.node.backoff import Backoff
from ropeway.gateway.node.derived_store import keep, status_of
from ropeway.gateway.node.fold import LOST_MS, last_ms
from ropeway.gateway.node.index_thread import IndexLostError, IndexThread
from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.node.timer.index import Entry, Index
from ropeway.gateway.node.timer.intake import Intake
from ropeway.gateway.node.timer.record_reader import read_scattered
from ropeway.gateway.wire import record_rewrite
from ropeway.storage.api import LogBusyError

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.timer.delivery import Delivery, Due
    from ropeway.gateway.wire.commands.nodes import DerivedStoreStatus
    from ropeway.storage.api import Partition

log = structlog.get_logger(__name__)

_BATCH = 1024
_BATCH_BYTES = 8 * 1024 * 1024
_LOOK_EVERY_S = 1.0
"""Longest sleep while anything waits: clocks are set, and timers stand still while a
machine sleeps."""
_PAUSE_S = 0.02
"""Between two rounds: what comes meanwhile is taken together."""
_TRUSTED_MS = 10_000
"""How long an index is not looked at that has nothing due, at most: it may be lost."""
_BUSY_S = 0.05
_COUNTED = 1000
_CATCH_UP_S = 2.0
"""How long those wait who ask what waits, while that is being read."""
_BACK_MS = 1000
"""A clock that is set back by less has been corrected, and nobody need know."""

_QUEUE_OF_OFFSET = 0
_QUEUE_OF_TIME = 1
_QUEUE_OF_NOTHING = 2
_WHENEVER_MS = 10**18
"""Later than any time that a message can wait for."""


class Timer:
    """Messages with a delivery time of their own: a duty of the leader.

    Args:
        broker: Whose they are; its offsets note how far it has come.
        delivery: How they leave.
        directory: The index's.
        window_ms: Messages that wait longer are stored anew after so long.
        max_delay_ms: As the member.
    """

    def __init__(
        self,
        broker: BrokerContext,
        delivery: Delivery,
        directory: Path,
        window_ms: int,
        max_delay_ms: int,
    ) -> None:
        self.max_delay_ms = max_delay_ms
        """The longest that a message may wait."""
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._log = broker.log
        self._backoff = Backoff("timers wait", broker.log)
        self._delivery = delivery
        self._window_ms = window_ms
        self._clock = broker.clock
        self._index = IndexThread("timers", Index, directory)
        self._wake = asyncio.Event()
        self._done_ms = 0
        """All messages that were to be visited until then have been."""
        self._taken_to = 0
        """The offset up to which the index has messages."""
        self._noted_all = False
        """Whether the offsets say so, but for time in which nothing was to be done."""
        self._next_ms = 0
        """Until then nothing is to be done of what was taken in."""
        self._waits = False
        """Whether anything was there that waits, at the last look."""
        self.idle_rounds = 0
        """How often it has looked and found nothing to do."""
        self._task: asyncio.Task[None] | None = None
        self._caught_up = asyncio.Event()

    @property
    def topic(self) -> ServedTopic:
        """The system topic."""
        served = self._topics.get(names.TIMER_TOPIC)
        assert served is not None, "made at start"
        return served

    @property
    def read_to(self) -> int:
        """The offset in the system topic up to which messages were taken in."""
        return self._noted()[1]

    def wake(self) -> None:
        """Look at the clock, and into the index, again now."""
        self._next_ms = 0
        self._wake.set()

    # A duty.

    async def take_over(self) -> None:
        """Begin to deliver.

        Raises:
            LogError: What waits cannot be read now.
        """
        await self._log.ready(names.TIMER_TOPIC)
        partition = self.topic.partitions[0]
        self._task = asyncio.get_running_loop().create_task(self._run(partition))

    async def give_up(self) -> None:
        """Stop delivering; what is due comes after the next take-over."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._caught_up.clear()
        await self._index.close()

    def status(self) -> DerivedStoreStatus:
        """How the index stands."""
        topic = self._topics.get(names.TIMER_TOPIC)
        end = topic.partitions[0].end if topic is not None else 0
        return status_of(self._index, max(end - self._taken_to, 0))

    # What waits.

    async def page(
        self, after: bytes, topic: str | None, max_count: int, max_looks: int
    ) -> tuple[list[Entry], bytes | None]:
        """As `Index.page`.

        Raises:
            IndexLostError: The index cannot be used now.
        """
        name = topic.encode() if topic is not None else None
        try:
            await asyncio.wait_for(self._caught_up.wait(), _CATCH_UP_S)
        except TimeoutError as error:
            raise IndexLostError("the index of timers is being made") from error
        return await self._index.run(Index.page, after, name, max_count, max_looks)

    async def count_waiting(self) -> int:
        """How many messages wait; where there are more than 1,000, about so many.

        Raises:
            IndexLostError: The index cannot be used now.
        """
        await self._log.ready(names.TIMER_TOPIC)
        entries, _ = await self.page(b"", None, _COUNTED, _COUNTED)
        return len(entries) + self.topic.partitions[0].end - self._taken_to

    # The work.

    async def _run(self, partition: Partition) -> None:
        partition.watch(self._wake.set)
        try:
            await keep("timers", partial(self._work, partition), self._backoff)
        finally:
            partition.unwatch(self._wake.set)

    async def _work(self, partition: Partition, anew: bool) -> None:
        """Deliver until something fails."""
        await self._index.open(anew=anew)
        self._done_ms, done_offset = self._noted()
        if done_offset > partition.end:
            log.warning("timed messages come again: the log has lost its end")
            since_ms = max(await last_ms(partition) - LOST_MS, 0)
            self._done_ms = min(self._done_ms, since_ms)
            done_offset = partition.end
        intake = Intake(partition, self._index, self._window_ms)
        self._done_ms = await intake.begin(
            self._done_ms, done_offset, self._nothing_before()
        )
        self._next_ms = 0
        while True:
            self._wake.clear()
            self._look_at_clock(intake.next_offset)
            if intake.next_offset != partition.end:
                self._next_ms = 0
                self._done_ms = await intake.catch_up(self._done_ms)
            self._taken_to = intake.next_offset
            self._index.rebuild.end()
            self._caught_up.set()
            await self._sleep(await self._round(partition, intake))

    async def _sleep(self, sleep_s: float) -> None:
        """Sleep, at least for a moment; but no longer than until something comes."""
        loop = asyncio.get_running_loop()
        moment_s = min(sleep_s, _PAUSE_S)
        began_s = loop.time()
        if sleep_s > _PAUSE_S:
            # Python 3.11's `wait_for` forgets that it was cancelled, where what it
            # waits for comes at the same time.
            with contextlib.suppress(TimeoutError):
                longest_s = _LOOK_EVERY_S if self._waits else sleep_s
                async with asyncio.timeout(min(sleep_s, longest_s)):
                    await self._wake.wait()
        await asyncio.sleep(moment_s - (loop.time() - began_s))

    async def _round(self, partition: Partition, intake: Intake) -> float:
        """Visit what is due; return after how many seconds to do so again."""
        now_ms = self._clock()
        leaves = self._delivery.leaves_early
        if self._done_ms <= now_ms < self._next_ms and not leaves:
            self._done_ms = now_ms
            self.idle_rounds += 1
            return (self._next_ms - now_ms) / 1000
        until_ms = _WHENEVER_MS if leaves else now_ms
        entries, gone, next_ms = await self._index.run(
            _due_or_next, self._done_ms, until_ms, now_ms
        )
        if not entries:
            self._done_ms = now_ms
            if not self._noted_all:
                self._commit(intake.next_offset)
                self._noted_all = True
            if leaves and self._nothing_before() < intake.next_offset:
                self._commit_one(_QUEUE_OF_NOTHING, intake.next_offset)
            self.idle_rounds += 1
            self._waits = next_ms is not None
            self._next_ms = min(next_ms or _WHENEVER_MS, now_ms + _TRUSTED_MS)
            return max(self._next_ms - self._clock(), 0) / 1000
        self._next_ms = 0
        visiting = asyncio.get_running_loop().create_task(
            self._visit(partition, entries, gone, intake.next_offset)
        )
        try:
            return await asyncio.shield(visiting)
        except asyncio.CancelledError:
            # What is delivered and not noted comes again.
            await asyncio.gather(visiting, return_exceptions=True)
            raise

    async def _visit(
        self,
        partition: Partition,
        entries: Sequence[Entry],
        gone: Container[int],
        read_to: int,
    ) -> float:
        """Deliver messages or store them anew, and note how far that has come."""
        wanted = [one for one in entries if one.offset not in gone] if gone else entries
        records = await read_scattered(partition, [one.offset for one in wanted])
        now_ms = self._clock()
        visited = [one for one in wanted if one.offset in records]
        if lost := len(wanted) - len(visited):
            log.error("retention has taken messages that waited", messages=lost)
        due = [_due(one, records[one.offset], now_ms) for one in visited]
        outcomes = await self._delivery.deliver(due, from_timer=True)
        if not any(outcomes):
            await self._note(entries, set(), read_to)
            # Where that was all, what is due next is gathered first.
            return 0.0 if len(entries) == _BATCH else _PAUSE_S
        stay = {
            one.offset
            for one, outcome in zip(visited, outcomes, strict=True)
            if outcome is not None
        }
        await self._note(entries, stay, read_to)
        error = next(filter(None, outcomes))
        if isinstance(error, LogBusyError):
            return _BUSY_S
        raise error

    async def _note(
        self, entries: Sequence[Entry], stay: set[int], read_to: int
    ) -> None:
        """Note that all these were visited but for those that stay."""
        # There may be more of the last one's time; and what left early is no clock.
        done_ms = min(entries[-1].visit_ms - 1, self._clock())
        if stay:
            kept_ms = min(one.visit_ms for one in entries if one.offset in stay)
            done_ms = min(done_ms, kept_ms - 1)
            entries = [one for one in entries if one.offset not in stay]
        self._done_ms = max(self._done_ms, done_ms)
        await self._index.run(Index.remove, entries, self._done_ms)
        self._commit(read_to)
        self._noted_all = False

    # How far it has come.

    def _noted(self) -> tuple[int, int]:
        queues = self._offsets.queues(names.TIMER_GROUP, names.TIMER_TOPIC)
        now_ms = self._clock()
        # The clock may have been set back.
        done_ms = min(queues.get(_QUEUE_OF_TIME, now_ms - 1), now_ms)
        return done_ms, queues.get(_QUEUE_OF_OFFSET, 0)

    def _nothing_before(self) -> int:
        return (
            self._offsets.get(names.TIMER_GROUP, names.TIMER_TOPIC, _QUEUE_OF_NOTHING)
            or 0
        )

    def _commit(self, read_to: int) -> None:
        # Where only the first of them is kept, and it went back, nothing is missed.
        self._commit_one(_QUEUE_OF_TIME, self._done_ms)
        self._commit_one(_QUEUE_OF_OFFSET, read_to)

    def _commit_one(self, queue: int, value: int) -> None:
        self._offsets.commit(names.TIMER_GROUP, names.TIMER_TOPIC, queue, value)

    def _look_at_clock(self, read_to: int) -> None:
        """Go back with a clock that was set back."""
        now_ms = self._clock()
        if now_ms >= self._done_ms:
            return
        if self._done_ms - now_ms > _BACK_MS:
            log.warning("the clock was set back", by_ms=self._done_ms - now_ms)
        self._done_ms = now_ms
        self._commit(read_to)


def _due_or_next(
    index: Index, done_ms: int, until_ms: int, now_ms: int
) -> tuple[list[Entry], Container[int], int | None]:
    """What is to be visited until a time; or else when something is next."""
    entries, gone = index.due(done_ms, until_ms, _BATCH, _BATCH_BYTES)
    return entries, gone, None if entries else index.next_ms(now_ms)


def _due(entry: Entry, record: bytes, now_ms: int) -> Due:
    topic = entry.topic
    if entry.due_ms <= now_ms:
        return record, topic, entry.queue_id, None
    text = record_rewrite.properties_of(record)
    again = pending_timers.put_off(text, topic, entry.queue_id, entry.due_ms)
    return record, names.TIMER_TOPIC, 0, again
