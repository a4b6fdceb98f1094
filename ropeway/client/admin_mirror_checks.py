"""Comparing mirrors with their sources: each message, and where groups go on.

Both sides are read at the same time, a pull of each queue at once, so that memory does
not grow with what there is to compare.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ropeway.client import admin_offsets
from ropeway.client.admin_mirrors import pull
from ropeway.client.errors import AdminError, BadResponseError
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.client.admin import Admin
    from ropeway.client.admin_mirrors import Pair
    from ropeway.client.message import MessageQueue
    from ropeway.common.throttle import Throttle
    from ropeway.gateway.wire.message import Message

_LOOK_S = 0.2
"""How soon is looked again whether a mirror has come further."""
_PROPERTIES = {
    properties.UNIQ_KEY: "unique_key",
    properties.KEYS: "keys",
    properties.TAGS: "tags",
}
"""Told first, in this order: another message differs by its unique key."""
_FIELDS = ("body", "flag", "born_ms", "born_host", "store_ms", "reconsume_times")


class Verified(NamedTuple):
    """How a queue of the target is beside the source's."""

    equal: int
    missing: int
    """Messages that the source had when it was asked, and the target lacks."""
    extra: int
    """Messages behind the source's last one."""
    differing: int
    offset: int | None
    """Of the first message that differs; None where none does."""
    field: str | None
    """What differs in it; the first of what does."""


class Followed(NamedTuple):
    """Where a group goes on in a queue at both."""

    source: int
    target: int
    """-1 where it has committed nothing."""


class Verifier:
    """Compares what a mirror made with its source; nothing is changed at either.

    Args:
        source: Reads there, as `Mirror` does.
        target: A Ropeway.
        throttle: How many messages a second are read at each.
        wait_s: How long to wait for a mirror that is behind, in seconds; all queues
            and groups together.
    """

    def __init__(
        self, source: Admin, target: Admin, throttle: Throttle, wait_s: float
    ) -> None:
        self._source = source
        self._target = target
        self._throttle = throttle
        self._wait_s = wait_s
        self._deadline: float | None = None

    async def verify(self, pair: Pair, step: Callable[[int], None]) -> Verified:
        """Compare two queues, message by message.

        Args:
            pair: The queues.
            step: Told how many more messages were compared.

        Raises:
            AdminError: A server does not give messages that it says it has.
            RemotingError: A server cannot be reached, or refused.
        """
        # The mirror comes behind its source: asked in this order, what it has beyond
        # that was never there.
        ours = await self._target.span(pair.target)
        theirs = await self._source.span(pair.source)
        extra = max(0, ours.end - max(ours.begin, theirs.end))

        async def end() -> int:
            return (await self._target.span(pair.target)).end

        ours_end = await self._until(end, theirs.end)
        begin = max(ours.begin, theirs.begin)
        end_of_both = max(begin, min(ours_end, theirs.end))
        found = _Comparison(
            _Reader(self._source, pair.source, begin, end_of_both),
            _Reader(self._target, pair.target, begin, end_of_both),
        )
        found.missing = theirs.end - theirs.begin - (end_of_both - begin)
        while (compared := await found.next()) is not None:
            step(compared)
            await self._throttle.take(compared)
        return Verified(
            found.equal,
            found.missing,
            extra,
            found.differing,
            *(found.first or (None, None)),
        )

    async def follows(self, group: str, pair: Pair) -> Followed | None:
        """Compare where a group goes on; None where the source's broker has no offset.

        Groups that broadcast have none: their consumers keep them.

        Raises:
            RemotingError: A server cannot be reached, or refused.
        """
        # As of messages: first the one that comes behind.
        ours = await self._committed(group, pair)
        theirs = await admin_offsets.committed(self._source, group, pair.source)
        if theirs is None:
            return None
        # Where the source has deleted more than the group had read.
        goal = max(theirs, (await self._target.span(pair.target)).begin)
        if ours < goal:
            ours = await self._until(lambda: self._committed(group, pair), goal)
            # It may have come further at both.
            ours = min(ours, goal)
        return Followed(goal, ours)

    async def _committed(self, group: str, pair: Pair) -> int:
        found = await admin_offsets.committed(self._target, group, pair.target)
        return -1 if found is None else found

    async def _until(self, look: Callable[[], Awaitable[int]], goal: int) -> int:
        """What is seen once it is as far as the goal, or nobody waits any more."""
        clock = asyncio.get_running_loop().time
        if self._deadline is None:
            self._deadline = clock() + self._wait_s
        while True:
            found = await look()
            if found >= goal or clock() >= self._deadline:
                return found
            await asyncio.sleep(_LOOK_S)


class _Reader:
    """The messages of a queue in a range, a pull's at a time."""

    def __init__(
        self, admin: Admin, queue: MessageQueue, offset: int, end: int
    ) -> None:
        self._admin = admin
        self._queue = queue
        self._offset = offset
        self._end = end
        self.messages: deque[Message] = deque()

    async def fill(self) -> None:
        """Have a message, unless all have been read."""
        while not self.messages and self._offset < self._end:
            data = (await pull(self._admin, self._queue, self._offset)).data
            if not data:
                self._offset = await self._begin()
                continue
            try:
                found = [stored.decode(one) for one in stored.split(data)]
            except MessageError as error:
                raise BadResponseError(self._said(str(error))) from error
            if found[0].queue_offset < self._offset:
                raise BadResponseError(self._said("messages of lower offsets"))
            self._offset = found[-1].queue_offset + 1
            self.messages.extend(one for one in found if one.queue_offset < self._end)

    async def _begin(self) -> int:
        """Where the queue begins by now, since it has nothing where it was read."""
        begin = (await self._admin.span(self._queue)).begin
        if begin <= self._offset:
            raise AdminError(self._said("nothing, and has messages there; try again"))
        return begin

    def _said(self, what: str) -> str:
        queue = self._queue
        return (
            f"broker {queue.broker_name} sent for offset {self._offset} of queue "
            f"{queue.queue_id} of topic {queue.topic}: {what}"
        )


class _Comparison:
    """Messages of two readers, side by side."""

    def __init__(self, theirs: _Reader, ours: _Reader) -> None:
        self._theirs = theirs
        self._ours = ours
        self.equal = self.differing = self.missing = 0
        self.first: tuple[int, str] | None = None

    async def next(self) -> int | None:
        """Compare what both have; how many messages that were, None at the end."""
        await asyncio.gather(self._theirs.fill(), self._ours.fill())
        theirs, ours = self._theirs.messages, self._ours.messages
        if not theirs:
            # What only the target has, the source has deleted.
            return None
        before = len(theirs)
        if not ours:
            self.missing += before
            theirs.clear()
        while theirs and ours:
            if ours[0].queue_offset < theirs[0].queue_offset:
                ours.popleft()
            elif ours[0].queue_offset > theirs[0].queue_offset:
                theirs.popleft()
                self.missing += 1
            else:
                self._compare(theirs.popleft(), ours.popleft())
        return before - len(theirs)

    def _compare(self, theirs: Message, ours: Message) -> None:
        field = difference(theirs, ours)
        if field is None:
            self.equal += 1
            return
        self.differing += 1
        if self.first is None:
            self.first = theirs.queue_offset, field


def difference(one: Message, other: Message) -> str | None:
    """What differs first in two messages that should be the same; None where nothing.

    Their places may differ: which broker has them, and where.
    """
    if one.properties != other.properties:
        theirs, ours = map(properties.parse, (one.properties, other.properties))
        for name in (*_PROPERTIES, *sorted(theirs.keys() | ours.keys())):
            if theirs.get(name) != ours.get(name):
                return _PROPERTIES.get(name, f"property {name}")
    for name in _FIELDS:
        if getattr(one, name) != getattr(other, name):
            return name
    if (one.sys_flag ^ other.sys_flag) & ~stored.STORE_HOST_V6_FLAG:
        return "sys_flag"
    return None
