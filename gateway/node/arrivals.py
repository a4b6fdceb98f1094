"""What other brokers handed over with their queues: where groups are in them.

It is kept before the routes say that a queue is this broker's, under the number of its
partition, and counts from when they do. A hand-over that was cut off leaves rows that
nobody uses: the next one of that partition replaces them, and those of a topic that was
deleted since name another generation.

Rows are offsets, under names that no group and no topic can have: group `moved:GROUP`,
topic `moved:GENERATION:TOPIC`, and as queue id the partition. One of the group `moved:`
itself says that there was a hand-over, whoever reads the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node.names import MOVED_SIGN, topic_of_progress
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ropeway.storage.offsets import Offsets

_log = structlog.get_logger()

ClearQueue = Callable[[str, int], None]
"""Called with a topic and a queue id; has nothing known of whoever read that queue."""


def _kept_as(topic: str, generation: int) -> str:
    return f"{MOVED_SIGN}{generation}:{topic}"


class Arrivals:
    """Queues that were handed over, and that no route had as this broker's so far.

    Args:
        offsets: Where groups are, and where this is kept.
    """

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._waiting: dict[str, set[int]] = {}
        """Partitions, by what their topic is kept as."""

    def load(self) -> None:
        """Find what was handed over to this broker, by whichever node it was led."""
        self._waiting = {
            kept: set(self._offsets.queues(MOVED_SIGN, kept))
            for kept in self._offsets.topics(MOVED_SIGN)
        }

    async def put(
        self, topic: str, generation: int, number: int, groups: Mapping[str, int]
    ) -> None:
        """Keep where groups are in a queue that is about to be this broker's.

        Args:
            topic: The queue's.
            generation: Of the queues that this broker has of it, or gets.
            number: The queue's partition.
            groups: The next offset of each.

        Raises:
            LogUnavailableError: It is not known to be kept.
        """
        kept = _kept_as(topic, generation)
        self._offsets.forget(topic=kept, queue_id=number)
        for group, offset in groups.items():
            self._offsets.commit(MOVED_SIGN + group, kept, number, offset)
        self._offsets.commit(MOVED_SIGN, kept, number, 0)
        self._waiting.setdefault(kept, set()).add(number)
        await self._offsets.flush()

    def settle(
        self, topic: str, generation: int, numbers: Sequence[int], clear: ClearQueue
    ) -> list[int]:
        """Have groups where they were, in those queues that are this broker's by now.

        Args:
            topic: The topic.
            generation: Of this broker's queues of it.
            numbers: Their partitions, by queue id.
            clear: Called first with each such queue.

        Returns:
            The partitions that have come; `forget` them when the offsets are kept.
        """
        kept = _kept_as(topic, generation)
        come = [one for one in numbers if one in self._waiting.get(kept, ())]
        for number in come:
            self._waiting[kept].discard(number)
            queue_id = numbers.index(number)
            clear(topic, queue_id)
            for name in list(self._offsets.groups()):
                group = name.removeprefix(MOVED_SIGN)
                offset = self._offsets.get(name, kept, number)
                if group not in (name, "") and offset is not None:
                    self._offsets.commit(group, topic, queue_id, offset)
        return come

    async def forget(self, topic: str, generation: int, come: Sequence[int]) -> None:
        """Keep nothing more of queues that have come.

        Not before it is kept where groups are: what is lost of that in a crash is
        found here again.
        Where that cannot be kept now, groups may get messages again after a crash.
        """
        try:
            await self._offsets.flush()
            for number in come:
                self._offsets.forget(topic=_kept_as(topic, generation), queue_id=number)
        except LogError as error:
            _log.warning("arrived queues are kept", topic=topic, reason=str(error))

    async def forget_but(self, topics: Collection[str]) -> None:
        """Keep nothing of other topics than these, whoever read them.

        Raises:
            LogUnavailableError: It is not known to be forgotten.
        """
        for group in list(self._offsets.groups()):
            for name in list(self._offsets.topics(group)):
                if topic_of_progress(name) not in topics:
                    self._offsets.forget(group=group, topic=name)
        self._waiting.clear()
        await self._offsets.flush()

    async def flush(self) -> None:
        """Return when all that is known of queues is kept.

        Raises:
            LogUnavailableError: It is not known to be.
        """
        await self._offsets.flush()
