"""Lite topics of a broker: a duty of the node that leads it.

Subscriptions are in memory: clients say them again every half minute, and so to a node
that takes over. Progress of groups is with all other progress, under a name of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from ropeway.common.tasks import Tasks
from ropeway.gateway.lite import names
from ropeway.gateway.lite.dispatch import Given, LiteDispatch, LiteState
from ropeway.gateway.lite.follower import Follower
from ropeway.gateway.lite.group_offsets import GroupOffsets
from ropeway.gateway.lite.offset_reset import Resetting
from ropeway.gateway.lite.subscribers import Subscribers
from ropeway.gateway.lite.upkeep import Upkeep
from ropeway.gateway.lite.views import Views
from ropeway.gateway.node.backoff import Rest, keep_doing
from ropeway.gateway.node.client_owners import is_same
from ropeway.gateway.node.fair_share import FairShare, is_within
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.pop.acks import Renewed
from ropeway.gateway.pop.order import OrderBook

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ropeway.acl.api import Principal
    from ropeway.gateway.lite.lite_attributes import LiteGroup
    from ropeway.gateway.lite.offset_reset import Begin
    from ropeway.gateway.lite.subscribers import Subscriber
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.pop.order import Place

log = structlog.get_logger(__name__)

_TURN_S = 0.1
_CLEAN_EVERY_MS = 60_000
_SILENT_MS = 180_000
"""A client that has said nothing for so long is gone: liteSubscriptionCheckTimeout."""


class SubscriptionQuotaError(Exception):
    """A client wants more lite topics than its group allows."""


class Lite:
    """Lite topics.

    Args:
        broker: Whose they are.
        most: Lite topics that there may be.
        most_waiting: Pops that may wait at a time.
        directory: Of the index.
        left_out: Called with group, client id and lite topic when another client of
            the group takes it.
    """

    def __init__(
        self,
        broker: BrokerContext,
        most: int,
        most_waiting: int,
        directory: Path,
        left_out: Callable[[str, str, str], None],
    ) -> None:
        self._most = most
        self._waiting = FairShare(most_waiting)
        self._progress = progress = GroupOffsets(broker.offsets)
        self._left_out = left_out
        self._clock = broker.clock
        self.subscribers = Subscribers()
        self._follower = Follower(
            broker.topics, broker.log, directory, self.subscribers.announce
        )
        self.status = self._follower.status
        self._book = OrderBook()
        state = LiteState(self._follower, self.subscribers, self._book, progress)
        self._dispatch = LiteDispatch(state)
        self._resetting = Resetting(self._follower, progress, self._book)
        self._upkeep = Upkeep(
            broker.topics, self._follower, progress, self._book, self.subscribers.forget
        )
        self.views = Views(state)
        self._running: list[asyncio.Task[None]] = []
        self._tasks = Tasks()
        self._clean_ms = 0
        self._rest = Rest(self._next_s)
        self._book.wake = self._rest.wake
        broker.topics.watch_deleted(self._forget)

    # A duty.

    async def take_over(self) -> None:
        """Follow the queues of topics with lite topics."""
        loop = asyncio.get_running_loop()
        self._running = [
            loop.create_task(self._follower.run()),
            loop.create_task(
                keep_doing("lite topics", _TURN_S, self.turn, self._rest.pause)
            ),
        ]

    async def give_up(self) -> None:
        """Stop; whoever takes over hands out again what is in hand."""
        running, self._running = self._running, []
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *self._tasks, return_exceptions=True)
        await self._follower.close()
        self.subscribers.clear()
        self._book.clear()

    def turn(self) -> None:
        """Do what is due."""
        now_ms = self._clock()
        if self._book.waits:
            for group, queue, _ in self._book.take_free(now_ms):
                parent, lite = names.parts_of(queue)
                self.subscribers.announce(parent, [lite], group)
        if now_ms >= self._clean_ms:
            self._clean_ms = now_ms + _CLEAN_EVERY_MS
            self._book.clean(now_ms)
            for one in self.subscribers:
                if now_ms - one.seen_ms > _SILENT_MS:
                    self.subscribers.remove(one)
            self._tasks.start(self._upkeep.clean(now_ms))

    def _next_s(self) -> float:
        """In how many seconds something is due."""
        return (min(self._book.next_ms, self._clean_ms) - self._clock()) / 1000

    def is_idle(self) -> bool:
        """Whether everything that came is noted, and nothing is being forgotten.

        Nothing is noted before the index is open.
        """
        follower = self._follower
        return (
            follower.is_open
            and not self._tasks
            and not any(map(follower.is_behind, follower.parents.values()))
        )

    # What is forgotten.

    def _forget(self, topic: ServedTopic) -> None:
        """A topic was deleted."""
        parent = self._follower.parents.get(topic.name)
        if parent is None:
            return
        for lite in parent.catalogue.names():
            self._upkeep.forget_progress(topic.name, lite)
        for one in self.subscribers:
            if one.parent == topic.name:
                self.subscribers.remove(one)
        self._tasks.start(self._forget_index(topic.name))

    async def _forget_index(self, name: str) -> None:
        # What cannot be forgotten does not fit a topic of that name that comes later.
        with contextlib.suppress(IndexLostError):
            await self._follower.forget(name)

    def forget_group(self, group: str) -> None:
        """A group is gone, and how far it was."""
        for one in self.subscribers:
            if one.group == group:
                self.subscribers.remove(one)
        self._book.forget(group=group)
        self._progress.forget_group(group)

    # What producers ask.

    def admits(self, topic: ServedTopic, lite: str) -> bool:
        """Whether a message of a lite topic may be stored: there may be too many.

        No topic may have more lite topics than are left for the others.
        """
        parent = self._follower.follow(topic)
        if parent is None or lite in parent.catalogue:
            return True
        return is_within(len(parent.catalogue), self.count(), self._most)

    def count(self) -> int:
        """How many lite topics have messages."""
        return sum(len(one.catalogue) for one in self._follower.parents.values())

    # What consumers ask.

    def subscriber(self, group: str, client_id: str, topic: ServedTopic) -> Subscriber:
        """A client's subscription, perhaps an empty one; it was heard of now."""
        self._follower.follow(topic)
        found = self.subscribers.get(group, client_id, topic.name)
        found.seen_ms = self._clock()
        return found

    async def subscribe(
        self,
        one: Subscriber,
        group: LiteGroup,
        lites: Collection[str],
        begin: Begin | None,
    ) -> None:
        """A client wants more lite topics.

        Args:
            one: The client.
            group: How its group is set up.
            lites: Which.
            begin: Where; None: where the group is, or at the first message.

        Raises:
            SubscriptionQuotaError: They are too many; it has none of them then.
            LogError: Where to begin cannot be found out now.
            IndexLostError: Likewise.
        """
        self._check_quota(group, one.lites.union(lites))
        for lite in lites:
            taken = group.exclusive and self._take_from_others(one, lite)
            if taken and group.resets_when_taken:
                await self._resetting.to_first(one.parent, lite, one.group)
            if begin is not None:
                await self._resetting.move(one.parent, lite, one.group, begin)
            self.subscribers.add(one, lite)
        self.subscribers.announce(one.parent, lites, one.group)

    def _check_quota(self, group: LiteGroup, lites: Collection[str]) -> None:
        if len(lites) > group.quota:
            raise SubscriptionQuotaError(
                f"lite subscription quota exceeded: {len(lites)} lite topics of one "
                f"client; allowed: {group.quota}"
            )

    def _take_from_others(self, one: Subscriber, lite: str) -> bool:
        taken = False
        for other in self.subscribers.of(one.parent, lite, one.group):
            if other is not one and self.subscribers.drop(other, lite):
                self._left_out(other.group, other.client_id, lite)
                taken = True
        return taken

    async def unsubscribe(
        self, one: Subscriber, group: LiteGroup, lites: Collection[str]
    ) -> None:
        """A client wants lite topics no more.

        Raises:
            LogError: The group cannot be moved now.
        """
        for lite in lites:
            if self.subscribers.drop(one, lite) and group.resets_when_left:
                await self._resetting.to_first(one.parent, lite, one.group)

    def replace(
        self, one: Subscriber, group: LiteGroup, lites: Collection[str]
    ) -> None:
        """A client says all that it wants: again, since it was said before.

        Of a group that wants all lite topics it need not name any.

        Raises:
            SubscriptionQuotaError: They are too many, and nothing was changed.
        """
        self._check_quota(group, lites)
        if group.wants_all:
            if not one.wants_all:
                self.subscribers.add_all(one, self._follower.names(one.parent))
            return
        self.subscribers.drop_all(one)
        for lite in one.lites.difference(lites):
            self.subscribers.drop(one, lite)
        added = [
            lite
            for lite in lites
            # What another client took stays there, until this one has heard of it.
            if not (group.exclusive and self._others(one, lite))
            and self.subscribers.add(one, lite)
        ]
        self.subscribers.announce(one.parent, added, one.group)

    def _others(self, one: Subscriber, lite: str) -> bool:
        found = self.subscribers.of(one.parent, lite, one.group)
        return any(other is not one and lite in other.lites for other in found)

    def gone(self, client_id: str, group: str, principal: Principal | None) -> None:
        """A client of a principal has ended; another's goes on."""
        one = self.subscribers.find(group, client_id)
        if one is not None and (one.owner is None or is_same(one.owner, principal)):
            self.subscribers.remove(one)

    def look_again(self, group: str, client_id: str | None) -> None:
        """Have a group's clients, or one, look at all that they subscribe to."""
        for one in self.subscribers:
            if one.group == group and client_id in (None, one.client_id):
                known = self._follower.names(one.parent) if one.wants_all else one.lites
                self.subscribers.announce(one.parent, known, group)

    async def wait(self, one: Subscriber, timeout_s: float) -> bool:
        """Wait until there may be something for a client; False where it took too long.

        Also False at once where too many wait.
        """
        if one.ready:
            return True
        whose = str(one.owner or one.client_id)
        if timeout_s <= 0 or not self._waiting.take(whose):
            return False
        one.news.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await one.news.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting.leave(whose)
        return True

    async def pop(
        self,
        one: Subscriber,
        max_count: int,
        invisible_ms: int,
        attempt: str | None,
    ) -> Given:
        """Hand out what there is for a client.

        Raises:
            LogError: Nothing can be read now.
            IndexLostError: Likewise.
        """
        given = Given(self._clock(), max_count)
        await self._dispatch.pop(one, given, invisible_ms, attempt)
        return given

    def done(self, place: Place, pop_ms: int, offset: int) -> bool:
        """A message is done; False where it is not out by a pop of that time."""
        page = self._book.find(place, pop_ms, offset)
        if page is None:
            return False
        page.open.discard(offset)
        page.used_ms = self._clock()
        self._progress.commit(place, page.next_offset)
        self._book.look_at(place, page.free_ms)
        if not self._book.blocks(place, None, page.used_ms):
            group, queue, _ = place
            parent, lite = names.parts_of(queue)
            self.subscribers.announce(parent, [lite], group)
        return True

    def keep(
        self, place: Place, pop_ms: int, offset: int, invisible_ms: int, *, all_: bool
    ) -> Renewed | None:
        """Keep a message for a time from now; None where it is not out so.

        Args:
            place: Group, `names.queue_name`, queue id.
            pop_ms: The pop that took it.
            offset: The message.
            invisible_ms: For how long.
            all_: Whether all that is out with it is kept as long.
        """
        page = self._book.find(place, pop_ms, offset)
        if page is None:
            return None
        page.used_ms = self._clock()
        visible_ms = page.used_ms + invisible_ms
        for one in page.open if all_ else (offset,):
            page.visible_ms[one] = visible_ms
        self._book.look_at(place, page.free_ms)
        return Renewed(page.pop_ms, visible_ms - page.pop_ms)
