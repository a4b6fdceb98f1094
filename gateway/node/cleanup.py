"""What has to be forgotten where topics are deleted, and where queues come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node.names import ORDER_SIGN

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.gateway.node.long_polling import LongPolling
    from ropeway.gateway.node.moves import InHand
    from ropeway.gateway.node.resets import Resets
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.shared_partitions import SharedLog
    from ropeway.gateway.node.topics import Topics
    from ropeway.gateway.node.traffic import PulledOffsets
    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Partition
    from ropeway.storage.offsets import Offsets


class Cleanup(NamedTuple):
    """What knows of topics and queues."""

    offsets: Offsets
    log: SharedLog | None
    pull_hold: LongPolling[Partition]
    resets: Resets
    pulled: PulledOffsets
    topics: Topics

    def topic(self, topic: ServedTopic) -> None:
        """It is deleted."""
        for partition in topic.partitions:
            self.pull_hold.release(partition)
        self.pulled.forget(topic=topic.name)
        if not self.topics.follows:
            self.offsets.forget(topic=topic.name)
            self.resets.forget(topic=topic.name)
        if self.log is not None:
            self.log.forget(topic.name)

    def left(self, topic: str, partition: Partition) -> None:
        """Another broker has a queue, or is about to get it from this node."""
        self.pull_hold.release(partition)
        if self.log is not None and topic not in self.topics.moving.withdrawn:
            self.topics.moving.do(self.log.let_go(topic, partition.number))

    def queue(self, pop: InHand, topic: str, queue_id: int) -> None:
        """Nobody has read a queue of that id here."""
        pop.leave(topic, queue_id)
        self.resets.leave(topic, queue_id)
        for name in (topic, ORDER_SIGN + topic):
            self.offsets.forget(topic=name, queue_id=queue_id)


async def keep_forgotten(
    offsets: Offsets, log: SharedLog | None, topic: str, generations: Collection[int]
) -> None:
    """Have it kept that a deleted topic was forgotten, and where it ended as well."""
    if log is not None:
        for generation in generations:
            log.forget_ends(topic, generation)
    await offsets.flush()


def forget_ends(log: SharedLog, routes: RouteStore, topic: str) -> None:
    """Forget where the last broker deleted a topic that had queues here before.

    While others have queues of it, one of them may have those that were here. Made
    again it is another generation, but for a topic that is shared with native clients:
    that has the name of the first, and a queue of it that is not open yet ends where
    this broker's state says.
    """
    if topic not in routes.topics:
        log.forget_ends(topic)
