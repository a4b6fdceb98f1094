"""What administrators are told of lite topics: how many messages, and who is behind.

Messages are counted as RocketMQ's queues of lite topics count them: each lite topic for
itself, from the first message that is there.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ropeway.gateway.lite import names
from ropeway.gateway.lite.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ropeway.gateway.lite.catalogue import LiteTopic
    from ropeway.gateway.lite.dispatch import LiteState
    from ropeway.gateway.lite.follower import Parent

_COUNT_AT_ONCE = 1000
"""Messages: pops wait for the index meanwhile."""
_LOOK_AT_ONCE = 1000
"""Lite topics: everybody waits meanwhile."""


class Lag(NamedTuple):
    """How far behind a group is in a lite topic."""

    lite: str
    messages: int
    """That it has not done."""
    earliest_ms: int
    """When the first of them was stored; -1 for none."""


class Lags(NamedTuple):
    """How far behind a group is."""

    total: int
    """Messages that it has not done."""
    largest: list[Lag]
    oldest: list[Lag]


class Position(NamedTuple):
    """Where a group is in a lite topic."""

    messages: int
    """Of the lite topic."""
    done: int
    """Those that the group has done."""
    earliest_ms: int
    """When the first of the others was stored; -1 for none."""
    done_ms: int
    """When the last message was stored that it has done; 0 for none."""


class _Part(msgspec.Struct, gc=False):
    """What is counted: a lite topic's messages in a queue, from an offset on."""

    lite: str
    queue_id: int
    start: int
    first: int = -1
    count: int = 0


class _Ranked(NamedTuple):
    """Lite topics where a group is behind."""

    largest: list[str]
    oldest: list[str]
    parts: dict[str, list[_Part]]
    """Of each of them."""


class Views:
    """Looks at lite topics, and changes nothing.

    Args:
        state: Which there are, and who has what.
    """

    def __init__(self, state: LiteState) -> None:
        self._follower, self._subscribers, self._book, self._progress = state

    def in_hand(self) -> int:
        """In how many lite topics of groups something was handed out lately."""
        return len(self._book)

    def topics_of(self, parent_name: str) -> int:
        """How many lite topics of a parent have messages."""
        parent = self._follower.parents.get(parent_name)
        return len(parent.catalogue) if parent is not None else 0

    async def size(self, parent_name: str, lite: str) -> tuple[int, int]:
        """How many messages a lite topic has, and when the last was stored; or 0, 0.

        Raises:
            IndexLostError: It cannot be found out now.
        """
        parent, topic = self._find(parent_name, lite)
        if parent is None or topic is None:
            return 0, 0
        parts = list(_whole(parent, lite, topic))
        await self._count(parent, parts)
        return sum(one.count for one in parts), topic.last_ms

    async def position(
        self, parent_name: str, lite: str, group: str
    ) -> Position | None:
        """Where a group is in a lite topic; None where it never was there.

        Raises:
            IndexLostError: It cannot be found out now.
            LogError: Likewise.
        """
        parent, topic = self._find(parent_name, lite)
        if (
            parent is None
            or topic is None
            or not self._has_been(parent, lite, topic, group)
        ):
            return None
        whole = list(_whole(parent, lite, topic))
        left = list(self._left(parent, lite, topic, group))
        done_ms = await self._done_ms(parent, left)
        await self._count(parent, whole)
        await self._count(parent, left)
        count = sum(one.count for one in whole)
        lag = await _lag(parent, lite, left)
        # What comes meanwhile is of the latter alone.
        done = max(count - lag.messages, 0)
        return Position(count, done, lag.earliest_ms, done_ms)

    async def lags(self, parent_name: str, group: str, most: int) -> Lags:
        """How far behind a group is, in all lite topics where it has been.

        Args:
            parent_name: The topic.
            group: The group.
            most: How many lite topics it names.

        Raises:
            IndexLostError: It cannot be found out now.
            LogError: Likewise.
        """
        parent = self._follower.parents.get(parent_name)
        if parent is None:
            return Lags(0, [], [])
        parts: list[_Part] = []
        for number, lite in enumerate(parent.catalogue.names(), 1):
            if number % _LOOK_AT_ONCE == 0:
                await asyncio.sleep(0)
            topic = parent.catalogue.get(lite)
            if topic is not None and self._has_been(parent, lite, topic, group):
                parts += self._left(parent, lite, topic, group)
        await self._count(parent, parts)
        # There may be a hundred thousand: nobody waits for that.
        ranked = await asyncio.to_thread(_rank, parts, most)
        lags = {
            lite: await _lag(parent, lite, its) for lite, its in ranked.parts.items()
        }
        oldest = sorted(
            (lags[lite] for lite in ranked.oldest), key=lambda one: one.earliest_ms
        )
        return Lags(
            sum(part.count for part in parts),
            [lags[lite] for lite in ranked.largest],
            oldest[:most],
        )

    def _find(
        self, parent_name: str, lite: str
    ) -> tuple[Parent | None, LiteTopic | None]:
        parent = self._follower.parents.get(parent_name)
        return parent, parent.catalogue.get(lite) if parent is not None else None

    def _has_been(
        self, parent: Parent, lite: str, topic: LiteTopic, group: str
    ) -> bool:
        """Whether a group has taken something there, or wants to."""
        queue = names.queue_name(parent.name, lite)
        return any(
            self._progress.get(place) is not None or self._book.get(place) is not None
            for queue_id in topic.ends
            for place in ((group, queue, queue_id),)
        ) or bool(self._subscribers.of(parent.name, lite, group))

    def _left(
        self, parent: Parent, lite: str, topic: LiteTopic, group: str
    ) -> Iterator[_Part]:
        """What a group has not done."""
        queue = names.queue_name(parent.name, lite)
        for part in _whole(parent, lite, topic):
            offset = self._progress.get((group, queue, part.queue_id)) or 0
            part.start = max(offset, part.start)
            yield part

    async def _count(self, parent: Parent, parts: Iterable[_Part]) -> None:
        left = deque(parts)
        while left:
            await self._follower.store.run(_count_on, parent.name, left)

    async def _done_ms(self, parent: Parent, left: Iterable[_Part]) -> int:
        """When the last message before some parts was stored; 0 for none."""
        latest_ms = 0
        for part in left:
            offset = await self._follower.store.run(
                Store.back_from, parent.name, part.lite, part.queue_id, part.start, 1
            )
            partition = parent.queues[part.queue_id].partition
            if partition.first <= offset < part.start:
                latest_ms = max(latest_ms, await partition.store_time(offset) or 0)
        return latest_ms


def _whole(parent: Parent, lite: str, topic: LiteTopic) -> Iterator[_Part]:
    """All that there is of a lite topic."""
    for queue_id, end in list(topic.ends.items()):
        first = parent.queues[queue_id].partition.first
        if first < end:
            yield _Part(lite, queue_id, first)


def _rank(parts: Sequence[_Part], most: int) -> _Ranked:
    """The lite topics with most messages, and those that have the oldest ones.

    The latter are so many of each queue, which is in the order of time.
    """
    counts: defaultdict[str, int] = defaultdict(int)
    queues: defaultdict[int, list[_Part]] = defaultdict(list)
    for part in parts:
        if part.count:
            counts[part.lite] += part.count
            queues[part.queue_id].append(part)
    largest = heapq.nlargest(most, counts, key=counts.__getitem__)
    oldest = dict.fromkeys(
        part.lite
        for queue in queues.values()
        for part in heapq.nsmallest(most, queue, key=lambda part: part.first)
    )
    named: dict[str, list[_Part]] = {lite: [] for lite in (*largest, *oldest)}
    for part in parts:
        if part.count and part.lite in named:
            named[part.lite].append(part)
    return _Ranked(largest, list(oldest), named)


def _count_on(store: Store, parent: str, left: deque[_Part]) -> None:
    """Count a number of messages; what is done is left no more."""
    most = _COUNT_AT_ONCE
    while left and most > 0:
        part = left[0]
        found = store.offsets(parent, part.lite, part.queue_id, part.start, most)
        if found:
            part.first = part.first if part.count else found[0]
            part.count += len(found)
            part.start = found[-1] + 1
        if len(found) < most:
            left.popleft()
        most -= max(len(found), 1)


async def _lag(parent: Parent, lite: str, parts: Iterable[_Part]) -> Lag:
    times = [
        await parent.queues[part.queue_id].partition.store_time(part.first)
        for part in parts
        if part.count
    ]
    known = [one for one in times if one is not None]
    return Lag(lite, sum(one.count for one in parts), min(known, default=-1))
