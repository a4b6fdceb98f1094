"""Delivery: messages whose time has come are stored again, where they belong.

Laws:

* A message counts as handled once it is stored in its real queue; or once it is put
  off, stored in the system topic of timers with a later time; or once another broker
  has stored it, where that has the topic's queues now; or where nobody can ever have
  it, because its topic was deleted. What is none of these stays where it is.
* A broker that is drained puts off in the system topic of another broker, and what
  waits leaves it so before its time.
* A topic that cannot be opened or written now holds up no other: its messages are put
  off, together, so that they keep their order.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from ropeway.gateway.node import names
from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.wire import message, properties, record_rewrite
from ropeway.gateway.wire.commands.moves import DueMessages
from ropeway.gateway.wire.errors import MessageError
from ropeway.storage.api import (
    LogBusyError,
    LogError,
    LogLimitError,
    LogUnavailableError,
    NoSuchPartitionError,
    NotReadyError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.moved_messages import MovedMessages
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.storage.api import RecordParts

log = structlog.get_logger(__name__)

_APPEND_COUNT = 256
_APPEND_BYTES = 1024 * 1024
"""What goes to a queue in one append: all of it becomes visible together."""
_OPEN_S = 2.0
"""How long a topic may take to be opened before its messages are put off."""
_FIRST_PAUSE_MS = 1000
_LONGEST_PAUSE_MS = 60_000
"""How long the messages of a topic are put off that cannot be written: at first, and
after it has failed again and again."""


Due = tuple[bytes, str, int, bytes | None]
"""A stored message that is to be stored again: itself as it was, the topic and queue
that it is for, and the properties that it will have, in wire form; None for those that
it has. A tuple without names, for there are many."""
_TOPIC: Final = 1


class _Group(NamedTuple):
    """What goes to one queue in one append."""

    topic: str
    queue_id: int
    numbers: list[int]
    """Which of the messages,"""
    messages: list[tuple[bytes, bytes | None]]
    """and these."""


class _Pause(NamedTuple):
    """Until when a topic's messages are put off."""

    until_ms: int
    length_ms: int

    def holds(self, now_ms: int) -> bool:
        """Whether it goes on; not where the clock was set back to before it began."""
        return 0 < self.until_ms - now_ms <= self.length_ms


class Delivery:
    """Stores messages again.

    Args:
        topics: Where they are for.
        message_log: What opens these.
        clock: Milliseconds since 1970.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._topics = broker.topics
        self._log = broker.log
        self._clock = broker.clock
        self._pauses: dict[str, _Pause] = {}
        self.elsewhere: MovedMessages | None = None
        """Topics of other brokers; None where there are none."""

    @property
    def leaves_early(self) -> bool:
        """Whether what waits here is to wait at another broker from now on."""
        return self.elsewhere is not None and self.elsewhere.keeps_what_waits

    async def deliver(
        self, due: Sequence[Due], *, from_timer: bool = False
    ) -> list[LogError | None]:
        """Store messages; those of one queue in the order that they are given in.

        Args:
            due: The messages.
            from_timer: As `moving.moved_all` takes it.

        Returns:
            For each, None where it is handled, or why it stays where it is.
        """
        outcomes: list[LogError | None] = [None] * len(due)
        later: list[int] = []
        await self._store(due, range(len(due)), outcomes, later, from_timer)
        if not later and not any(outcomes):
            return outcomes
        again = {
            number: outcome
            for number, outcome in enumerate(outcomes)
            if isinstance(outcome, NotReadyError)
        }
        if again:
            shut = {(one.topic, one.numbers) for one in again.values()}
            await asyncio.gather(*(self._open(*one) for one in shut))
            await self._store(due, again, outcomes, later, from_timer)
        await self._put_off(due, outcomes, later)
        return outcomes

    async def _open(self, topic: str, numbers: tuple[int] | None) -> None:
        try:
            async with asyncio.timeout(_OPEN_S):
                await self._log.ready(topic, numbers)
        except (TimeoutError, LogError) as error:
            log.warning("topic of due messages is not open", topic=topic, reason=error)

    async def _store(
        self,
        due: Sequence[Due],
        numbers: Iterable[int],
        outcomes: list[LogError | None],
        later: list[int],
        from_timer: bool,
    ) -> None:
        """Store some of the messages; note what came of it."""
        now_ms = self._clock()
        groups: list[tuple[_Group, asyncio.Future[LogError | None]]] = []
        for group in _grouped(due, numbers):
            pause = self._pauses.get(group.topic)
            if pause is not None and pause.holds(now_ms):
                later += group.numbers
            elif self._is_elsewhere(group.topic):
                stored = self._store_elsewhere(group, from_timer)
                groups.append((group, asyncio.ensure_future(stored)))
            else:
                groups.append((group, self._append(due, group, now_ms, from_timer)))
        for group, appended in groups:
            error = await appended
            for number in group.numbers:
                outcomes[number] = error
        for group, _ in groups:
            if outcomes[group.numbers[0]] is None:
                self._pauses.pop(group.topic, None)

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a topic has queues, and none here that can be used now."""
        if name == names.TIMER_TOPIC:
            return self.leaves_early
        topic = self._topics.get(name)
        is_here = topic is not None and topic.partitions
        return not is_here and self.elsewhere is not None and self.elsewhere.has(name)

    async def _store_elsewhere(
        self, group: _Group, from_timer: bool
    ) -> LogError | None:
        assert self.elsewhere is not None, "it has the topic"
        return await self.elsewhere.store(
            DueMessages(
                topic=group.topic,
                queue_id=group.queue_id,
                messages=group.messages,
                from_timer=from_timer,
            )
        )

    def _append(
        self, due: Sequence[Due], group: _Group, now_ms: int, from_timer: bool
    ) -> asyncio.Future[LogError | None]:
        """Append a group; the future tells what came of it."""
        done = asyncio.get_running_loop().create_future()
        topic = self._topics.get(group.topic)
        if topic is None or not topic.partitions:
            _drop(due, group, "its topic was deleted")
            done.set_result(None)
            return done

        def tell(_offset: int, error: LogError | None) -> None:
            if not done.done():
                done.set_result(error)

        try:
            records = _records(group, topic, now_ms, from_timer)
            topic.partitions[topic.queue_at(group.queue_id)].append(
                records, now_ms, tell
            )
        except MessageError as error:
            # What is put off gets longer by a few bytes. It stays where it is.
            done.set_result(LogUnavailableError(str(error)))
        except (NoSuchPartitionError, LogLimitError) as error:
            _drop(due, group, str(error))
            done.set_result(None)
        except LogError as error:
            done.set_result(error)
        return done

    async def _put_off(
        self, due: Sequence[Due], outcomes: list[LogError | None], later: list[int]
    ) -> None:
        """Store in the system topic what could not be stored where it belongs."""
        for number, error in enumerate(outcomes):
            topic = due[number][_TOPIC]
            if (
                error is None
                or isinstance(error, LogBusyError)
                or topic == names.TIMER_TOPIC
            ):
                continue
            later.append(number)
            self._pause(topic, error)
        if not later:
            return
        later.sort()
        moved: list[Due] = []
        for number in later:
            record, topic, queue_id, _ = due[number]
            until_ms = self._pauses[topic].until_ms
            text = pending_timers.put_off(_text(due[number]), topic, queue_id, until_ms)
            moved.append((record, names.TIMER_TOPIC, 0, text))
        results: list[LogError | None] = [None] * len(moved)
        await self._store(moved, range(len(moved)), results, [], False)
        for number, result in zip(later, results, strict=True):
            outcomes[number] = result

    def _pause(self, topic: str, error: LogError) -> None:
        now_ms = self._clock()
        pause = self._pauses.get(topic)
        if pause is not None and pause.holds(now_ms):
            return
        length_ms = _FIRST_PAUSE_MS
        if pause is not None:
            length_ms = min(2 * pause.length_ms, _LONGEST_PAUSE_MS)
        self._pauses[topic] = _Pause(now_ms + length_ms, length_ms)
        log.warning(
            "due messages of a topic are put off",
            topic=topic,
            for_ms=length_ms,
            reason=str(error),
        )


def _text(one: Due) -> bytes:
    """The properties that a message will have."""
    record, _, _, text = one
    return record_rewrite.properties_of(record) if text is None else text


def _grouped(due: Sequence[Due], numbers: Iterable[int]) -> list[_Group]:
    """Messages by queue, no more together than go into one append."""
    groups = []
    open_groups: dict[tuple[str, int], tuple[_Group, int]] = {}
    for number in numbers:
        record, topic, queue_id, text = due[number]
        place = (topic, queue_id)
        group, size = open_groups.get(place, (None, 0))
        size += len(record)
        if group is None or size > _APPEND_BYTES or len(group.numbers) == _APPEND_COUNT:
            group = _Group(topic, queue_id, [], [])
            groups.append(group)
            size = len(record)
        group.numbers.append(number)
        group.messages.append((record, text))
        open_groups[place] = (group, size)
    return groups


def _records(
    group: _Group, topic: ServedTopic, now_ms: int, from_timer: bool
) -> Sequence[RecordParts]:
    """The records of a group, as they will be in their queue."""
    queue_id = topic.queue_at(group.queue_id)
    records = record_rewrite.moved_all(
        group.messages,
        topic.magic,
        topic.name_field,
        queue_id,
        topic.partitions[queue_id].next_offset,
        topic.id_bases[queue_id],
        now_ms,
        from_timer,
    )
    if records is None:
        raise MessageError(
            "the properties of a message are too long; "
            f"allowed: {message.MAX_PROPERTIES_BYTES} bytes"
        )
    return records


def _drop(due: Sequence[Due], group: _Group, reason: str) -> None:
    for number in group.numbers:
        pairs = properties.parse(_text(due[number]).decode())
        log.warning(
            "delayed message dropped",
            topic=group.topic,
            queue_id=group.queue_id,
            unique_key=pairs.get(properties.UNIQ_KEY),
            reason=reason,
        )
