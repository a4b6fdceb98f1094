"""Groups that an administrator has moved, and whose consumers do not know it yet.

A reset holds until a consumer pulls from where it leads. Until then what consumers
commit is passed over, since they speak of messages before the move, and what they pull
elsewhere is answered by where to go on. A real broker says that once, to whoever asks
first; if that client then dies, or commits once more, its reset is lost.

A reset is kept like an offset, under the group's name with a sign before it that no
name of a group can have. So it outlives a restart, and another node that takes over
keeps to it.

Source: ConsumerOffsetManager.assignResetOffset and its users, RocketMQ 5.3.4.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from ropeway.gateway.node.link import Link
    from ropeway.storage.offsets import Offsets

TOLD_S = 5.0
"""How long a client that was told of a reset may take to drop what it is doing."""

_SIGN = names.RESET_SIGN
_NONE = -1


def is_reset(group: str) -> bool:
    """Whether a name among groups with offsets is that of resets."""
    return group.startswith(_SIGN)


class Step(Enum):
    """What a pull does where a reset is not done."""

    GO = 0
    """Go on: it is where the reset leads."""
    MOVE = 1
    """Say where the group goes on."""
    WAIT = 2
    """Wait: the client has been told otherwise, and is about to act on that."""


class Reset:
    """Where a group goes on in a queue, whatever its consumers think.

    Args:
        offset: Where that is.
        told: Consumers that have been told, and will drop what they hold of the queue.
        untold: The others. They drop it when a pull is answered so, at the latest then.
        until_s: How long those that were told are given time to.
    """

    __slots__ = ("_moved", "_told", "_until_s", "_untold", "offset")

    def __init__(
        self,
        offset: int,
        told: AbstractSet[Link] = frozenset(),
        untold: AbstractSet[Link] = frozenset(),
        until_s: float = 0.0,
    ) -> None:
        self.offset = offset
        self._told = told
        self._untold = untold
        self._until_s = until_s
        self._moved: set[Link] = set()

    def step(self, link: Link, offset: int, now_s: float) -> Step:
        """What a pull from an offset does.

        One from where the reset leads may come from a client that was there before,
        with messages in its hands that the group is to leave out.
        """
        if link in self._untold and link not in self._moved:
            self._moved.add(link)
            return Step.MOVE
        if offset == self.offset:
            return Step.GO
        if link in self._told and now_s < self._until_s:
            return Step.WAIT
        return Step.MOVE


class Resets:
    """Every reset that is not done: a duty of who leads the broker.

    Args:
        offsets: Where groups are, and where resets are kept.
        now_s: A clock that only goes forward.
    """

    def __init__(self, offsets: Offsets, now_s: Callable[[], float]) -> None:
        self._offsets = offsets
        self._now_s = now_s
        self.pending: dict[tuple[str, str], dict[int, Reset]] = {}
        """By group and topic, then by queue id. Each pull looks whether it is empty."""

    async def take_over(self) -> None:
        """Find what is not done."""
        for name in self._offsets.groups():
            if is_reset(name):
                self._find(name)

    def _find(self, name: str) -> None:
        group = name.removeprefix(_SIGN)
        for topic in self._offsets.topics(name):
            found = {
                queue_id: Reset(offset)
                for queue_id, offset in self._offsets.queues(name, topic).items()
                if offset != _NONE
            }
            if found:
                self.pending[group, topic] = found

    async def give_up(self) -> None:
        """Who leads next finds them."""
        self.pending.clear()

    def put(
        self,
        group: str,
        topic: str,
        offsets: Mapping[int, int],
        told: AbstractSet[Link] = frozenset(),
        untold: AbstractSet[Link] = frozenset(),
    ) -> None:
        """Move a group, and hold it to that until its consumers have followed.

        Args:
            group: The group.
            topic: The queues' topic.
            offsets: Queue by queue, where to go on.
            told: Consumers that have been told.
            untold: Connected consumers that have not.
        """
        until_s = self._now_s() + TOLD_S
        queues = self.pending.setdefault((group, topic), {})
        for queue_id, offset in offsets.items():
            self._offsets.commit(group, topic, queue_id, offset)
            self._offsets.commit(_SIGN + group, topic, queue_id, offset)
            queues[queue_id] = Reset(offset, told, untold, until_s)

    def get(self, group: str, topic: str, queue_id: int) -> Reset | None:
        """The reset of a queue; None where there is none, or it is done."""
        queues = self.pending.get((group, topic))
        return queues.get(queue_id) if queues else None

    def take(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group goes on that pops: it has no say in it, so that is done now."""
        reset = self.get(group, topic, queue_id)
        if reset is None:
            return None
        self._done(group, topic, queue_id)
        return reset.offset

    def step(
        self, group: str, topic: str, queue_id: int, link: Link, offset: int
    ) -> tuple[Step, int]:
        """What a pull does, and where the group goes on."""
        reset = self.get(group, topic, queue_id)
        if reset is None:
            return Step.GO, offset
        step = reset.step(link, offset, self._now_s())
        if step is Step.GO:
            self._done(group, topic, queue_id)
        return step, reset.offset

    def _done(self, group: str, topic: str, queue_id: int) -> None:
        queues = self.pending[group, topic]
        del queues[queue_id]
        if queues:
            self._offsets.commit(_SIGN + group, topic, queue_id, _NONE)
        else:
            del self.pending[group, topic]
            self._offsets.forget(group=_SIGN + group, topic=topic)

    def leave(self, topic: str, queue_id: int) -> None:
        """A queue is not this broker's any more, or only since now."""
        for (group, name), queues in list(self.pending.items()):
            if name == topic and queue_id in queues:
                self._done(group, topic, queue_id)

    def forget(self, *, group: str | None = None, topic: str | None = None) -> None:
        """A group or a topic is gone, or both are done with each other."""
        for pair in list(self.pending):
            if group in (None, pair[0]) and topic in (None, pair[1]):
                del self.pending[pair]
                self._offsets.forget(group=_SIGN + pair[0], topic=pair[1])
