"""The partitions of a log that several nodes share: held by the node that leads.

The others follow: they read what the leader stores, and answer reads of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ropeway.gateway.node.long_polling import LongPolling
    from ropeway.gateway.node.topics import Topics
    from ropeway.storage.api import Partition
    from ropeway.storage.offsets import Furthest, Offsets


class SharedLog(Protocol):
    """A log of whose partitions one node at a time is the writer."""

    async def lead(self) -> None:
        """Be the writer of partitions that are opened from now on."""

    def open_early(self) -> None:
        """Begin to open all partitions that were asked for."""

    async def follow(self) -> None:
        """Give up all partitions, and open them for reading alone from now on."""

    def forget(self, topic: str) -> None:
        """Know nothing more of a topic that another node has deleted."""

    def forget_ends(self, topic: str, generation: int = 0) -> None:
        """Know no more where a deleted topic ended; nothing where this node follows."""

    async def let_go(self, topic: str, number: int) -> None:
        """Give one partition up in good order; another broker gets it."""

    def compare_with(self, furthest: Furthest) -> None:
        """Know what groups have committed, when partitions are opened."""


class Held:
    """Takes a broker's topics when its node begins to lead, and lets go of them.

    Args:
        shared_log: Where their partitions are.
        topics: Those topics.
        pull_hold: Pulls that wait while another node leads; they ask again.
        offsets: What groups have committed.
    """

    def __init__(
        self,
        shared_log: SharedLog,
        topics: Topics,
        pull_hold: LongPolling[Partition],
        offsets: Offsets,
    ) -> None:
        self._log = shared_log
        self._topics = topics
        self._pull_hold = pull_hold
        self._offsets = offsets
        shared_log.compare_with(self._furthest)

    async def take_over(self) -> None:
        """Begin to open partitions, before requests want them.

        It does not wait: a request that comes early opens what it needs by itself.
        """
        await self._pull_hold.give_up()
        await self._log.lead()
        await self._topics.take_over()
        self._log.open_early()

    async def give_up(self) -> None:
        """Let go, so that the next leader is in nobody's way, nor anybody in its."""
        await self._topics.give_up()
        await self._log.follow()
        await self._topics.follow()

    def _furthest(self, name: str, number: int) -> tuple[int, str] | None:
        """What groups have committed in a partition."""
        topic = self._topics.get(name)
        for queue_id, partition in enumerate(topic.partitions if topic else ()):
            if partition.number == number:
                return self._offsets.furthest(name, queue_id)
        return None
