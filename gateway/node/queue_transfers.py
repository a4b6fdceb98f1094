"""Queues that come from other brokers and go to them, as the topics here are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.common.tasks import Tasks
from ropeway.gateway.node import floors, names
from ropeway.gateway.node.placement import used
from ropeway.gateway.node.renumbered import Renumbered
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from ropeway.gateway.node.arrivals import Arrivals, ClearQueue
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.routing.api import RouteStore, Topic
    from ropeway.storage.api import Log, Partition

_log = structlog.get_logger()

REMOVED = "removed"
"""What the setting of a broker says that was removed from its cluster."""


class MovingQueues:
    """What there is to do when the routes give a broker a queue, or take it.

    Args:
        broker: This node's.
        arrivals: What was handed over to it; None where no queue can come.
    """

    def __init__(self, broker: str, arrivals: Arrivals | None) -> None:
        self._broker = broker
        self._arrivals = arrivals
        self._tasks = Tasks()
        self._renumbered: dict[tuple[str, int], Renumbered] = {}
        self.withdrawn: dict[str, int] = {}
        """Partitions that other brokers are about to get, by topic."""
        self.left: Callable[[str, Partition], None] = _nothing_more
        """Called with a topic and a partition of it that this broker does not serve
        any more, though the topic is not deleted."""
        self.clear_queue: ClearQueue = _nothing_more
        """Has nothing known of whoever read a queue before."""

    async def keep(
        self, topic: str, generation: int, partition: int, offsets: Mapping[str, int]
    ) -> None:
        """Keep what is handed over with a queue; see `Arrivals.put`."""
        assert self._arrivals is not None, "no other broker has queues to give"
        await self._arrivals.put(topic, generation, partition, offsets)

    def load(self) -> None:
        """Find what was handed over, as the leader."""
        if self._arrivals is not None:
            self._arrivals.load()

    async def come_back(self, routes: RouteStore) -> None:
        """Forget all, as the leader, where this broker was removed before it came.

        Nobody told it which topics were deleted since, so what it kept counts only of
        topics whose queues it has.

        Raises:
            LogError: It is not known to be kept; do it again.
            RouteError: It is not noted; likewise.
        """
        key = names.DRAINS, self._broker
        if routes.settings.get(key) == REMOVED and self._arrivals is not None:
            ours = {
                name
                for name, topic in routes.topics.items()
                if self._broker in topic.route
            }
            await self._arrivals.forget_but(ours)
            await routes.put_setting(*key, None)

    def numbers(self, setup: Topic | None) -> list[int] | None:
        """The partitions of this broker's queues, by queue id; None without any."""
        numbers = setup.route.get(self._broker) if setup else None
        withdrawn = self.withdrawn.get(setup.name) if setup else None
        if numbers is None or withdrawn not in numbers:
            return numbers
        return numbers[: numbers.index(withdrawn)] or None

    def partitions(self, setup: Topic, numbers: list[int], log: Log) -> list[Partition]:
        """The partitions of this broker's queues, as they are served.

        Raises:
            LogError: As of `Log.partition`.
        """
        floors.tell(log, setup)
        found: list[Partition] = []
        for queue_id, number in enumerate(numbers):
            partition = log.partition(setup.name, number)
            if number in setup.moved:
                found.append(self._renumbered_one(partition, queue_id))
            else:
                found.append(partition)
        return found

    def _renumbered_one(self, partition: Partition, queue_id: int) -> Renumbered:
        """Always the same one: who waits for a queue knows it by its partition."""
        key = (partition.topic, partition.number)
        known = self._renumbered.get(key)
        if known is None or (known.inner, known.queue_id) != (partition, queue_id):
            known = self._renumbered[key] = Renumbered(partition, queue_id)
        return known

    def is_gone(self, served: ServedTopic, setup: Topic | None) -> bool:
        """Whether what was served of a topic was deleted, and perhaps made again.

        Queues that other brokers have by now were not.
        """
        if setup is None:
            return True
        if self._broker not in setup.route:
            numbers = {partition.number for partition in served.partitions}
            return not numbers <= used(setup.route)
        known = served.setup.generations.get(self._broker, 0)
        return known != setup.generations.get(self._broker, 0)

    def leave(self, served: ServedTopic | None, numbers: Collection[int]) -> None:
        """Say which partitions of a topic that was served are not any more."""
        if served is not None:
            for partition in served.partitions:
                if partition.number not in numbers:
                    self._renumbered.pop((partition.topic, partition.number), None)
                    self.left(served.name, partition)

    def settle(self, setup: Topic, numbers: list[int]) -> bool:
        """Let queues come that were handed over, as the leader.

        Returns:
            Whether that could be done; else who leads next does it.
        """
        if self._arrivals is None:
            return True
        place = setup.name, setup.generations.get(self._broker, 0)
        try:
            come = self._arrivals.settle(*place, numbers, self.clear_queue)
        except LogError as error:
            _log.error("queues cannot come", topic=setup.name, reason=str(error))
            return False
        if come:
            self.do(self._arrivals.forget(*place, come))
        return True

    def do(self, work: Coroutine[None, None, None]) -> None:
        """Have something done that nobody waits for."""
        self._tasks.start(work)

    async def cleared(self, name: str, queue_ids: Collection[int]) -> None:
        """Have it kept that nobody has read queues that are about to be made.

        Raises:
            LogUnavailableError: It is not known to be.
        """
        for queue_id in queue_ids:
            self.clear_queue(name, queue_id)
        if self._arrivals is not None:
            await self._arrivals.flush()


def _nothing_more(_topic: str, _what: object) -> None:
    """Nothing more of queues is known."""
