"""Delay levels: messages that wait in the log until their time has come.

A message with a delay level goes to the queue of that level in `SCHEDULE_TOPIC_XXXX`,
its real topic and queue in its properties. All messages of a level wait equally long,
so each queue is in order of delivery and one reader a level is enough. How far it has
come is a consumer offset: a kill makes the last messages come again, never go missing.
A message whose topic cannot be written now goes on to the timer, and holds nobody up.

Source: ScheduleMessageService.java and HookUtils.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names
from ropeway.gateway.node.backoff import Backoff
from ropeway.gateway.node.fold import LOST_MS, last_ms
from ropeway.gateway.node.timer.pending_timers import ASKED, put_off
from ropeway.gateway.wire import properties, record_rewrite

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.timer.delivery import Delivery, Due
    from ropeway.storage.api import Partition
    from ropeway.storage.offsets import Offsets

log = structlog.get_logger(__name__)

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BATCH = 64
_BATCH_BYTES = 1024 * 1024
_LOOK_EVERY_S = 10.0
"""Longest sleep: timers stand still while a machine sleeps, and clocks are set."""
_SET_BACK_MS = 10_000
"""A clock that goes back by less is waited for: it was corrected, or another node's."""


def parse_levels(text: str) -> list[int]:
    """Read delay levels like `1s 5s 1m 2h` into milliseconds; level 1 comes first.

    Raises:
        ValueError: A level is not a positive number with a unit of s, m, h or d.
    """
    levels = []
    for word in text.split():
        number, unit = word[:-1], _UNIT_MS.get(word[-1])
        if unit is None or not number.isdecimal() or int(number) == 0:
            raise ValueError(f"delay level {word!r}; allowed: like 10s, 5m, 2h, 1d")
        levels.append(int(number) * unit)
    if not levels:
        raise ValueError("no delay level; allowed: like '1s 5s 10s'")
    return levels


class Schedule:
    """Takes messages with a delay level in, and delivers them when they are due."""

    def __init__(
        self, broker: BrokerContext, levels_ms: list[int], delivery: Delivery
    ) -> None:
        self.levels_ms = levels_ms
        self._log = broker.log
        self._delivery = delivery
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._readers: list[asyncio.Task[None]] = []
        self._waiting: list[_LevelReader] = []

    def divert(
        self, topic: ServedTopic, queue_id: int, pairs: dict[str, str], text: str
    ) -> tuple[ServedTopic, int, str]:
        """Where a message with a DELAY property goes first.

        Args:
            topic: Where it is for.
            queue_id: Which queue of it.
            pairs: Its properties; they get its real topic and queue.
            text: The same in wire form.

        Returns:
            The topic, the queue id and the properties to store it with: those given,
            where the level is none.
        """
        try:
            level = min(int(pairs[properties.DELAY]), len(self.levels_ms))
        except ValueError:
            return topic, queue_id, text
        if level <= 0:
            return topic, queue_id, text
        for name in ASKED:
            # A level comes before a time, as with RocketMQ.
            pairs.pop(name, None)
        pairs[properties.REAL_TOPIC] = topic.name
        pairs[properties.REAL_QUEUE_ID] = str(queue_id)
        schedule = self._topics.get(names.SCHEDULE_TOPIC)
        assert schedule is not None, "made at start"
        return schedule, level - 1, properties.dump(pairs)

    async def count_waiting(self) -> int:
        """How many messages wait for their level's time.

        Raises:
            LogError: They cannot be counted now.
        """
        await self._log.ready(names.SCHEDULE_TOPIC)
        return sum(reader.count_waiting() for reader in self._waiting)

    async def take_over(self) -> None:
        """Begin to deliver.

        Raises:
            LogError: What waits cannot be read now.
        """
        await self._log.ready(names.SCHEDULE_TOPIC)
        schedule = self._topics.get(names.SCHEDULE_TOPIC)
        assert schedule is not None, "taken over before"
        loop = asyncio.get_running_loop()
        for index, partition in enumerate(schedule.partitions):
            # There may have been more levels before: what waits there must come out.
            delay_ms = self.levels_ms[min(index, len(self.levels_ms) - 1)]
            reader = _LevelReader(
                index,
                delay_ms,
                partition,
                self._offsets,
                Backoff("delayed delivery waits", self._log),
                self._delivery,
            )
            self._waiting.append(reader)
            self._readers.append(loop.create_task(reader.run()))

    async def give_up(self) -> None:
        """Stop delivering; what is due comes after the next take-over."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._readers.clear()
        self._waiting.clear()


class _LevelReader:
    """Delivers the messages of one level, in order."""

    def __init__(
        self,
        queue_id: int,
        delay_ms: int,
        partition: Partition,
        offsets: Offsets,
        backoff: Backoff,
        delivery: Delivery,
    ) -> None:
        self._backoff = backoff
        self._queue_id = queue_id
        self._delay_ms = delay_ms
        self._partition = partition
        self._offsets = offsets
        self._delivery = delivery
        self._grown = asyncio.Event()
        self._clock = _Clock(partition)

    async def run(self) -> None:
        self._partition.watch(self._grown.set)
        try:
            while True:
                try:
                    await self._deliver_due()
                except Exception as error:  # noqa: BLE001 - nobody would begin it again
                    await self._backoff.wait(error, level=self._queue_id + 1)
        finally:
            self._partition.unwatch(self._grown.set)

    async def _deliver_due(self) -> None:
        """Deliver what is due; then wait for the next message, or for its time."""
        self._grown.clear()
        offset = self._offset()
        if offset > self._partition.end:
            offset = await self._begin_again()
        chunk = await self._partition.read(offset, _BATCH, _BATCH_BYTES)
        if chunk.records == 0:
            if chunk.next_offset > offset:
                self._advance(chunk.next_offset)
            elif offset >= self._partition.end:
                await self._grown.wait()
            return
        offsets = []
        due = []
        wait_ms = 0
        leaves = self._delivery.leaves_early
        for piece in chunk.data:
            for offset, store_ms, record in record_rewrite.records_in(piece):
                left_ms = self._clock.left_ms(offset, store_ms, self._delay_ms)
                wait_ms = 0 if leaves else left_ms
                if wait_ms > 0:
                    break
                offsets.append(offset)
                due.append(_due(record, left_ms))
            if wait_ms > 0:
                break
        await _to_its_end(self._deliver(offsets, due))
        if wait_ms > 0:
            await asyncio.sleep(min(wait_ms / 1000, _LOOK_EVERY_S))

    async def _begin_again(self) -> int:
        """Go on in a log that has lost its end; some of what is left comes again.

        It was restored from a backup without the offsets, or lost power.
        """
        partition = self._partition
        since_ms = await last_ms(partition) - self._delay_ms - LOST_MS
        offset = await partition.offset_at(max(since_ms, 0))
        log.warning(
            "delayed messages come again: the log has lost its end",
            level=self._queue_id + 1,
            delivered_to=self._offset(),
            log_ends_at=partition.end,
            messages=partition.end - offset,
        )
        self._clock = _Clock(partition)
        self._advance(offset)
        return offset

    async def _deliver(self, offsets: list[int], due: list[Due]) -> None:
        """Deliver messages, and move on to the first that has to stay."""
        outcomes = await self._delivery.deliver(due)
        for offset, error in zip(offsets, outcomes, strict=True):
            if error is not None:
                raise error
            self._advance(offset + 1)

    def count_waiting(self) -> int:
        """How many messages there are that are not delivered."""
        return max(self._partition.end - self._offset(), 0)

    def _offset(self) -> int:
        known = self._offsets.get(
            names.SCHEDULE_GROUP, names.SCHEDULE_TOPIC, self._queue_id
        )
        return max(known or 0, self._partition.first)

    def _advance(self, offset: int) -> None:
        self._offsets.commit(
            names.SCHEDULE_GROUP, names.SCHEDULE_TOPIC, self._queue_id, offset
        )


class _Clock:
    """Tells how long messages wait, also where the time of day is set back.

    A message that was stored before would wait as much longer, and all others behind
    it. How long it has waited nobody knows, but not for how long the clock is back: so
    it waits from then on for all of its delay, which is never too short.

    Args:
        partition: Has the messages of a level.
    """

    def __init__(self, partition: Partition) -> None:
        self._loop = asyncio.get_running_loop()
        self._partition = partition
        self._back_ms = self._loop.time() * 1000
        """When it was last set back, or this began, by a clock that nobody sets."""
        self._end = partition.end
        """What has a lower offset was stored before that."""
        self._ahead_ms = now_ms() - self._back_ms

    def left_ms(self, offset: int, store_ms: int, delay_ms: int) -> int:
        """How much longer a message waits that was stored at a time of day."""
        day_ms, steady_ms = now_ms(), self._loop.time() * 1000
        left_ms = store_ms + delay_ms - day_ms
        is_back = day_ms - steady_ms < self._ahead_ms - _SET_BACK_MS
        # It was set ahead and back, with nobody looking while it was ahead.
        is_back |= offset >= self._end and left_ms > delay_ms + _SET_BACK_MS
        if is_back:
            self._back_ms, self._end = steady_ms, self._partition.end
        self._ahead_ms = day_ms - steady_ms
        if offset >= self._end:
            return left_ms
        return min(left_ms, int(self._back_ms + delay_ms - steady_ms))


def _due(record: bytes, left_ms: int) -> Due:
    text = record_rewrite.properties_of(record)
    pairs = properties.parse(text.decode())
    topic = pairs.get(properties.REAL_TOPIC, "")
    queue_id = int(pairs.get(properties.REAL_QUEUE_ID, "0"))
    if left_ms <= 0:
        return record, topic, queue_id, None
    # It waits on in the timer of another broker.
    again = put_off(text, topic, queue_id, now_ms() + left_ms)
    return record, names.TIMER_TOPIC, 0, again


async def _to_its_end(noting: Coroutine[None, None, None]) -> None:
    """Wait for it, also when cancelled: what is delivered and not noted comes again."""
    task = asyncio.get_running_loop().create_task(noting)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # Whoever delivers next sees what was not noted.
        raise
