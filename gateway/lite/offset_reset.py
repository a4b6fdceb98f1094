"""Where a group begins in a lite topic, where it is not where the group is.

Source: LiteSubscriptionRegistryImpl.resetOffset, RocketMQ 5.5.0, which silently does
nothing for a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ropeway.gateway.lite import names
from ropeway.gateway.lite.store import Store

if TYPE_CHECKING:
    from ropeway.gateway.lite.follower import Follower, Parent
    from ropeway.gateway.lite.group_offsets import GroupOffsets
    from ropeway.gateway.pop.order import OrderBook

Kind = Literal["first", "end", "offset", "back", "time"]


class Begin(NamedTuple):
    """Where a group is to begin."""

    kind: Kind
    """At the first message, behind the last, at a queue offset, so many messages before
    where the group is, or at the first message stored at a time or later."""
    value: int = 0


class Resetting:
    """Moves groups.

    Args:
        follower: Knows where messages are.
        progress: Where groups are.
        book: What is out: nothing of it counts after a move.
    """

    def __init__(
        self, follower: Follower, progress: GroupOffsets, book: OrderBook
    ) -> None:
        self._follower = follower
        self._progress = progress
        self._book = book

    async def to_first(self, parent_name: str, lite: str, group: str) -> None:
        """Move a group to the first message."""
        await self.move(parent_name, lite, group, Begin("first"))

    async def move(self, parent_name: str, lite: str, group: str, begin: Begin) -> None:
        """Move a group in a lite topic, wherever that has messages.

        Raises:
            LogError: Where that is cannot be found out now.
            IndexLostError: Likewise.
        """
        parent = self._follower.parents.get(parent_name)
        topic = parent.catalogue.get(lite) if parent is not None else None
        if parent is None or topic is None:
            return
        queue = names.queue_name(parent_name, lite)
        for queue_id, end in list(topic.ends.items()):
            place = (group, queue, queue_id)
            now = self._progress.get(place)
            to = await self._target(parent, lite, queue_id, begin, now, end)
            to = min(max(to, parent.queues[queue_id].partition.first), end)
            if to != now:
                self._book.drop(place)
                self._progress.commit(place, to)

    async def _target(
        self,
        parent: Parent,
        lite: str,
        queue_id: int,
        begin: Begin,
        now: int | None,
        end: int,
    ) -> int:
        if begin.kind == "first":
            return 0
        if begin.kind == "offset":
            return begin.value
        if begin.kind == "time":
            return await parent.queues[queue_id].partition.offset_at(begin.value)
        if begin.kind == "back":
            before = end if now is None else now
            return await self._follower.store.run(
                Store.back_from, parent.name, lite, queue_id, before, begin.value
            )
        return end
