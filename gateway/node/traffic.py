"""Counts messages that are written and read, for administrators' questions.

`PulledOffsets` says how far groups have pulled: what they were given, and may not have
done yet.

Writes are not counted one by one: what was written is how far queues have grown since
they were looked at last. Reads are counted once a pull. Everything starts anew where
another node takes over, as it does when a broker of RocketMQ starts.

Source: BrokerStatsManager.java, StatsItem.java and BrokerStats.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node.backoff import keep_doing
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.topics import Topics

Key = tuple[str, str]
"""What is counted, and of whom: TOPIC_PUT_NUMS and a topic's name."""

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
COUNTED = (
    *(TOPIC_PUT_NUMS, TOPIC_PUT_SIZE, GROUP_GET_NUMS),
    *(BROKER_PUT_NUMS, BROKER_GET_NUMS),
)

LOOK_EVERY_S = 10.0
"""How old a rate may be: StatsItem's sampling period."""
_TOPICS_AT_ONCE = 256
"""Topics that are looked at before others get a turn of the loop."""


class Period:
    """Sums of the last minute, hour or day, kept for what has moved in it.

    Args:
        slice_ms: The period is kept in slices of this length.
        slices: How many; the newest is not over yet.
        started_ms: Nothing was counted before.
    """

    def __init__(self, slice_ms: int, slices: int, started_ms: int) -> None:
        self._slice_ms = slice_ms
        self._most = slices
        self._started_ms = started_ms
        self._slices: deque[tuple[int, dict[Key, int]]] = deque()

    def add(self, key: Key, count: int, now_ms: int) -> None:
        """Count something now."""
        number = now_ms // self._slice_ms
        if not self._slices or self._slices[-1][0] != number:
            self._slices.append((number, {}))
            while self._slices[0][0] <= number - self._most:
                self._slices.popleft()
        sums = self._slices[-1][1]
        sums[key] = sums.get(key, 0) + count

    def sum(self, key: Key, now_ms: int, slices: int | None = None) -> int:
        """What was counted in the last slices; in all of them by default."""
        begin = self._begin(now_ms, slices)
        return sum(sums.get(key, 0) for one, sums in self._slices if one >= begin)

    def rate(self, key: Key, now_ms: int, slices: int | None = None) -> float:
        """The same by the second."""
        begin_ms = self._begin(now_ms, slices) * self._slice_ms
        passed_ms = max(now_ms - max(begin_ms, self._started_ms), 1)
        return self.sum(key, now_ms, slices) * 1000 / passed_ms

    def _begin(self, now_ms: int, slices: int | None) -> int:
        return now_ms // self._slice_ms + 1 - (slices or self._most)


class Totals(NamedTuple):
    """Messages since the node took over, and what they were when days began."""

    now: int = 0
    this_morning: int = 0
    yesterday_morning: int = 0


class Traffic:
    """What this node's broker writes and reads.

    Args:
        cluster: The key of what is counted of the whole broker.
        topics: Those that it serves.
        now_ms: The clock.
    """

    def __init__(self, cluster: str, topics: Topics, now_ms: Callable[[], int]) -> None:
        self._topics = topics
        self._now_ms = now_ms
        self._put_key = (BROKER_PUT_NUMS, cluster)
        self._get_key = (BROKER_GET_NUMS, cluster)
        self._looking: asyncio.Task[None] | None = None
        self._start()
        topics.watch_deleted(self._forget)

    def _start(self) -> None:
        now_ms = self._now_ms()
        self.minute = Period(10_000, 7, now_ms)
        self.hour = Period(600_000, 7, now_ms)
        self.day = Period(3_600_000, 25, now_ms)
        self._day = _date(now_ms)
        self._mornings = {self._put_key: (0, 0), self._get_key: (0, 0)}
        self._sums = {self._put_key: 0, self._get_key: 0}
        self._ends: dict[str, int | None] = {}
        self._bytes: dict[str, int] = {}
        self.pulled: defaultdict[str, defaultdict[str, int]]
        """Messages that were given since the last look, by topic and by group; whoever
        gives them adds them here."""
        self.pulled = defaultdict(partial(defaultdict, int))
        self._given: dict[str, dict[str, int]] = {}
        """As `pulled`, of what has been looked at."""

    def _forget(self, topic: ServedTopic) -> None:
        self._ends.pop(topic.name, None)
        self._bytes.pop(topic.name, None)
        self.pulled.pop(topic.name, None)
        self._given.pop(topic.name, None)

    async def take_over(self) -> None:
        """Count from now on; what is there already is not news."""
        self._start()
        async for topic in self._every():
            self._ends[topic.name] = _end(topic)
            if size := _bytes(topic):
                self._bytes[topic.name] = size
        looking = keep_doing("statistics", LOOK_EVERY_S, self.look)
        self._looking = asyncio.get_running_loop().create_task(looking)

    async def give_up(self) -> None:
        """Count no longer."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def given(self) -> list[tuple[str, str, int]]:
        """What groups were given of topics, since the node took over."""
        found = {
            (topic, group): records
            for topic, groups in self._given.items()
            for group, records in groups.items()
        }
        for topic, groups in self.pulled.items():
            for group, records in groups.items():
                found[topic, group] = found.get((topic, group), 0) + records
        return [(*key, records) for key, records in found.items()]

    def look_at(self, topic: ServedTopic) -> None:
        """Take in what was written to a topic, and read of it, since the last time."""
        now_ms = self._now_ms()
        self._turn(now_ms)
        self._take_in(topic, now_ms)

    def _take_in(self, topic: ServedTopic, now_ms: int) -> None:
        name = topic.name
        end, known = _end(topic), self._ends.get(name, 0)
        if end == known and name not in self.pulled:
            return
        self._ends[name] = end if end is not None else known
        if end is None or known is None:
            grown = 0
        else:
            # Made anew since, where it is shorter.
            grown = end - known if end >= known else end
        self._count((TOPIC_PUT_NUMS, name), self._put_key, grown, now_ms)
        if size := _bytes(topic):
            self._add((TOPIC_PUT_SIZE, name), size - self._bytes.get(name, 0), now_ms)
            self._bytes[name] = size
        for group, records in self.pulled.pop(name, {}).items():
            given = self._given.setdefault(name, {})
            given[group] = given.get(group, 0) + records
            key = (GROUP_GET_NUMS, f"{name}@{group}")
            self._count(key, self._get_key, records, now_ms)

    def _count(self, key: Key, broker: Key, count: int, now_ms: int) -> None:
        if not count:
            return
        self._sums[broker] += count
        self._add(key, count, now_ms)
        self._add(broker, count, now_ms)

    def _add(self, key: Key, count: int, now_ms: int) -> None:
        if count:
            for period in (self.minute, self.hour, self.day):
                period.add(key, count, now_ms)

    def _turn(self, now_ms: int) -> None:
        today = _date(now_ms)
        if today != self._day:
            self._day = today
            for key, (morning, _) in self._mornings.items():
                self._mornings[key] = (self._sums[key], morning)

    @property
    def written(self) -> Totals:
        """What was written to the broker."""
        return Totals(self._sums[self._put_key], *self._mornings[self._put_key])

    @property
    def read(self) -> Totals:
        """What consumers were given."""
        return Totals(self._sums[self._get_key], *self._mornings[self._get_key])

    def rates(self, name: str) -> tuple[float, float, float]:
        """The broker's messages by the second: of late, in a minute, in ten.

        Args:
            name: BROKER_PUT_NUMS or BROKER_GET_NUMS.
        """
        key = self._put_key if name == BROKER_PUT_NUMS else self._get_key
        now_ms = self._now_ms()
        return (
            self.minute.rate(key, now_ms, 2),
            self.minute.rate(key, now_ms),
            self.hour.rate(key, now_ms, 2),
        )

    async def look(self) -> None:
        """Take in what was written and read of all topics since the last time."""
        now_ms = self._now_ms()
        self._turn(now_ms)
        async for topic in self._every():
            self._take_in(topic, now_ms)

    async def _every(self) -> AsyncIterator[ServedTopic]:
        """Every topic; others get turns of the loop in between."""
        for number, topic in enumerate(self._topics, 1):
            yield topic
            if number % _TOPICS_AT_ONCE == 0:
                await asyncio.sleep(0)


def _end(topic: ServedTopic) -> int | None:
    """How many messages its queues ever had; None where that is not known."""
    try:
        return sum(partition.last_end for partition in topic.partitions)
    except LogError:
        return None


def _bytes(topic: ServedTopic) -> int:
    """Bytes of all messages that this process was given to append to it."""
    return sum(partition.appended_bytes for partition in topic.partitions)


def _date(now_ms: int) -> tuple[int, int]:
    day = time.localtime(now_ms / 1000)
    return day.tm_year, day.tm_yday


class PulledOffsets:
    """The next offset to pull of every group, topic and queue, in memory alone.

    Consumers of a broker that has started pull within seconds, and until then what they
    have committed stands for it.

    Source: ConsumerOffsetManager.commitPullOffset, RocketMQ 5.3.4.
    """

    def __init__(self) -> None:
        self.of_topics: defaultdict[str, dict[tuple[str, int], int]]
        """For each topic the offset before which a group was given a queue's messages,
        by group and queue id; whoever gives them sets it."""
        self.of_topics = defaultdict(dict)

    def get(self, group: str, topic: str, queue_id: int) -> int:
        """The next offset to pull; 0 where nothing was pulled."""
        return self.of_topics.get(topic, {}).get((group, queue_id), 0)

    def forget(self, *, group: str | None = None, topic: str | None = None) -> None:
        """A group or a topic is gone, or a group has been moved in a topic."""
        for name in list(self.of_topics) if topic is None else [topic]:
            if group is None:
                self.of_topics.pop(name, None)
            else:
                queues = self.of_topics.get(name, {})
                for key in [key for key in queues if key[0] == group]:
                    del queues[key]
