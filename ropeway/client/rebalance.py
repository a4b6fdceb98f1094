"""Rebalancing: finds out which queues this consumer has to read, again and again.

Source: RebalanceImpl.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Protocol

from ropeway.client.allocation import allocate_averagely
from ropeway.client.errors import RemotingError, TopicNotFoundError
from ropeway.client.tasks import wait_for
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.clients import GetConsumerListByGroup

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.client.config import ConsumerConfig
    from ropeway.client.instance import Instance
    from ropeway.client.message import MessageQueue
    from ropeway.client.routes import Route

_log = logging.getLogger(__name__)


class QueueHolder(Protocol):
    """Whoever reads the queues."""

    def topics(self) -> Collection[str]:
        """The topics that are subscribed to."""

    def chosen(self, topic: str) -> set[MessageQueue] | None:
        """The queues of a topic to read, where rebalancing does not decide that."""

    def held(self) -> Collection[MessageQueue]:
        """The queues that are read now, or are being given up."""

    def is_healthy(self, queue: MessageQueue) -> bool:
        """Whether a held queue is really being read."""

    async def take(self, queue: MessageQueue) -> bool:
        """Start to read a queue; False where somebody still has it.

        Raises:
            RemotingError: It cannot be read now.
        """

    def give_up(self, queue: MessageQueue) -> None:
        """Begin to let go of a queue; may be called again meanwhile."""


class Rebalancer:
    """Keeps a holder's queues as they should be.

    Args:
        instance: The client.
        group: The consumer group.
        holder: Who reads the queues.
        config: The intervals.
        is_broadcasting: Every consumer reads all queues.
    """

    def __init__(
        self,
        instance: Instance,
        group: str,
        holder: QueueHolder,
        config: ConsumerConfig,
        *,
        is_broadcasting: bool,
    ) -> None:
        self._instance = instance
        self._group = group
        self._holder = holder
        self._config = config
        self._is_broadcasting = is_broadcasting
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()

    def wake(self) -> None:
        """Rebalance now."""
        self._wake.set()

    async def run(self) -> None:
        """Rebalance until cancelled."""
        while True:
            self._wake.clear()
            is_balanced = await self.rebalance()
            await wait_for(
                self._wake,
                self._config.rebalance_interval_s
                if is_balanced
                else self._config.rebalance_retry_s,
            )

    async def rebalance(self) -> bool:
        """Share the queues out once; False where something is left to be done."""
        async with self._lock:
            topics = self._holder.topics()
            for queue in tuple(self._holder.held()):
                if queue.topic not in topics:
                    self._holder.give_up(queue)
            outcomes = [await self._rebalance_topic(topic) for topic in sorted(topics)]
            return all(outcomes)

    async def _rebalance_topic(self, topic: str) -> bool:
        try:
            route = await self._instance.routes.get(topic)
            share = await self._share(topic, route)
            if share is None:
                # The broker does not know us, because it or we have just started.
                await self._instance.heartbeat()
                share = await self._share(topic, route)
        except TopicNotFoundError:
            return True
        except RemotingError as error:
            _log.warning("cannot rebalance topic=%s error=%s", topic, error)
            return False
        return share is not None and await self._apply(topic, share)

    async def _share(self, topic: str, route: Route) -> set[MessageQueue] | None:
        """The queues to read; None where the broker does not know us yet."""
        chosen = self._holder.chosen(topic)
        if chosen is not None:
            return chosen
        if self._is_broadcasting:
            return set(route.read_queues)
        _, address = self._instance.routes.reader(random.choice(list(route.brokers)))  # noqa: S311 - no secret
        response = await self._instance.connections.request(
            address,
            GetConsumerListByGroup(consumer_group=self._group),
            expect=(ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR),
        )
        if response.code == ResponseCode.SYSTEM_ERROR:
            # What a broker answers that knows nobody in the group.
            return None
        clients = response.json(bodies.ConsumerIdList).consumer_id_list
        me = self._instance.client_id
        if me not in clients:
            return None
        return set(allocate_averagely(me, route.read_queues, clients))

    async def _apply(self, topic: str, share: set[MessageQueue]) -> bool:
        held = {queue for queue in self._holder.held() if queue.topic == topic}
        lost = {
            queue
            for queue in held
            if queue not in share or not self._holder.is_healthy(queue)
        }
        for queue in sorted(lost):
            self._holder.give_up(queue)
        taken = await asyncio.gather(*(self._take(q) for q in sorted(share - held)))
        return all(taken) and not lost & share

    async def _take(self, queue: MessageQueue) -> bool:
        try:
            return await self._holder.take(queue)
        except RemotingError as error:
            _log.warning("cannot take queue=%s error=%s", queue, error)
            return False
