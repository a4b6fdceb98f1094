"""Handing out messages of lite topics, each lite topic in order.

What a pop took of a lite topic blocks it for the group until all of it is acknowledged
or visible again, as where queues are popped in order. The pages are in memory alone, as
RocketMQ has them: after a failover what was in hand comes again at once.

Source: PopLiteMessageProcessor.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ropeway.gateway.lite import names
from ropeway.gateway.lite.store import Store
from ropeway.gateway.pop.pop_receive import MAX_BYTES
from ropeway.gateway.wire.frame import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.lite.follower import Follower, Parent
    from ropeway.gateway.lite.group_offsets import GroupOffsets
    from ropeway.gateway.lite.subscribers import Subscriber, Subscribers
    from ropeway.gateway.pop.order import OrderBook, Place
    from ropeway.storage.api import Partition


_LOOK_AT_ONCE = 1000
"""Lite topics: everybody waits meanwhile."""


class LiteState(NamedTuple):
    """What is known of lite topics: by who hands them out, and who looks at them."""

    follower: Follower
    """Knows where messages are."""
    subscribers: Subscribers
    """Who wants which."""
    book: OrderBook
    """What is out."""
    progress: GroupOffsets
    """Where groups are."""


class Given(msgspec.Struct, eq=False):
    """What a pop has got so far."""

    pop_ms: int
    """When it is, in milliseconds since 1970."""
    left: int
    """Messages that it still wants."""
    room: int = MAX_BYTES
    data: list[Buffer] = []
    counts: list[int] = []
    """How often each message came before."""
    lites: list[str] = []


class LiteDispatch:
    """Hands messages out.

    Args:
        state: Which there are, and who may have them.
    """

    def __init__(self, state: LiteState) -> None:
        self._follower, self._subscribers, self._book, self._progress = state
        self._reading: set[Place] = set()
        self._looks = 0

    async def pop(
        self,
        subscriber: Subscriber,
        given: Given,
        invisible_ms: int,
        attempt: str | None,
    ) -> None:
        """Hand out what there is.

        Args:
            subscriber: To whom.
            given: Gets it.
            invisible_ms: For how long nobody else gets the messages.
            attempt: Says that it is the same pop again, whose answer was lost.

        Raises:
            LogError: Nothing can be read now, and nothing was taken.
            IndexLostError: Likewise.
        """
        parent = self._follower.parents.get(subscriber.parent)
        if parent is None:
            # The index is not open yet. What it has is announced when it is.
            subscriber.ready.clear()
            return
        ready = subscriber.ready
        if attempt is not None and attempt == subscriber.attempt:
            again = dict.fromkeys(subscriber.given)
            again.update(ready)
            subscriber.ready = ready = again
        looked_at: set[str] = set()
        while ready and given.left > 0 and given.room > 0:
            lite = next(iter(ready))
            if lite in looked_at:
                # It has got more meanwhile. To its own attempt it is not blocked: it
                # would be handed out twice.
                break
            del ready[lite]
            looked_at.add(lite)
            topic = parent.catalogue.get(lite)
            for queue_id in list(topic.ends) if topic is not None else ():
                if given.left <= 0 or given.room <= 0:
                    # It lies in several queues, since there were more or fewer once.
                    ready[lite] = None
                    break
                try:
                    await self._take(
                        parent, lite, queue_id, subscriber, given, invisible_ms, attempt
                    )
                except Exception:
                    self._subscribers.announce(parent.name, [lite], subscriber.group)
                    if not given.data:
                        raise
                    # What was taken is given; who comes next meets the fault.
                    break
        if given.data:
            subscriber.attempt = attempt
            subscriber.given = tuple(given.lites)

    async def _take(
        self,
        parent: Parent,
        lite: str,
        queue_id: int,
        subscriber: Subscriber,
        given: Given,
        invisible_ms: int,
        attempt: str | None,
    ) -> None:
        self._looks += 1
        if self._looks % _LOOK_AT_ONCE == 0:
            await asyncio.sleep(0)
        place = (subscriber.group, names.queue_name(parent.name, lite), queue_id)
        partition = parent.queues[queue_id].partition
        start = max(self._progress.get(place) or 0, partition.first)
        if (
            start >= parent.has(lite, queue_id)
            or place in self._reading
            or self._book.blocks(place, attempt, given.pop_ms)
        ):
            return
        self._reading.add(place)
        try:
            wanted = await self._follower.store.run(
                Store.offsets, parent.name, lite, queue_id, start, given.left
            )
            data, offsets = await _read(partition, wanted, given.room)
        finally:
            self._reading.discard(place)
        if (
            not offsets
            or not subscriber.wants(lite)
            or max(self._progress.get(place) or 0, partition.first) != start
        ):
            if wanted:
                # Unsubscribed, moved or taken by retention meanwhile: look anew.
                self._subscribers.announce(parent.name, [lite], subscriber.group)
            return
        page = self._book.note(place, attempt, given.pop_ms, invisible_ms, offsets)
        given.data += data
        given.counts += [page.counts.get(offset, 0) for offset in offsets]
        given.lites.append(lite)
        given.left -= len(offsets)
        given.room -= sum(map(len, data))


async def _read(
    partition: Partition, wanted: Sequence[int], room: int
) -> tuple[list[Buffer], list[int]]:
    """Records at offsets, as many as there is room for, and at least one.

    Neighbours are read together. One that retention has taken meanwhile is left out.
    """
    data: list[Buffer] = []
    offsets: list[int] = []
    at = 0
    while at < len(wanted) and room > 0:
        start = wanted[at]
        count = 1
        while at + count < len(wanted) and wanted[at + count] == start + count:
            count += 1
        chunk = partition.read_now(start, count, room)
        if chunk is None:
            chunk = await partition.read(start, count, room)
        first = chunk.next_offset - chunk.records
        if first != start:
            at += count
            continue
        data += chunk.data
        offsets += range(first, chunk.next_offset)
        room -= sum(map(len, chunk.data))
        at += max(chunk.records, 1)
        if chunk.records < count:
            break
    return data, offsets
