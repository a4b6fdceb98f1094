"""Locks of orderly queues: a broker grants each to one client of a group.

Source: RebalanceImpl.lock, lockAll, unlock and unlockAll, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING

from ropeway.client.errors import RemotingError
from ropeway.client.message import MessageQueue
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.clients import LockBatchMq, UnlockBatchMq

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ropeway.client.instance import Instance

_log = logging.getLogger(__name__)


class QueueLocks:
    """Locks and unlocks queues for one client of a group."""

    def __init__(self, instance: Instance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def lock(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        """Lock queues of one broker; those that this client holds now.

        Raises:
            RemotingError: The broker did not say.
        """
        broker = next(iter(queues)).broker_name
        response = await self._instance.connections.request(
            self._instance.routes.master(broker), LockBatchMq(), self._body(queues)
        )
        granted = response.json(bodies.LockedQueues).lock_ok_mq_set
        return {MessageQueue(q.topic, q.broker_name, q.queue_id) for q in granted}

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Give queues free; failures are logged, since locks end by themselves."""
        await asyncio.gather(*(self._unlock(some) for some in by_broker(queues)))

    async def _unlock(self, queues: Collection[MessageQueue]) -> None:
        broker = next(iter(queues)).broker_name
        try:
            await self._instance.connections.request(
                self._instance.routes.master(broker),
                UnlockBatchMq(),
                self._body(queues),
            )
        except RemotingError as error:
            _log.warning("not unlocked broker=%s error=%s", broker, error)

    def _body(self, queues: Collection[MessageQueue]) -> bytes:
        return bodies.encode(
            bodies.LockBatchBody(
                consumer_group=self._group,
                client_id=self._instance.client_id,
                mq_set=[
                    bodies.MessageQueue(
                        broker_name=q.broker_name, queue_id=q.queue_id, topic=q.topic
                    )
                    for q in queues
                ],
            )
        )


def by_broker(queues: Collection[MessageQueue]) -> Iterator[list[MessageQueue]]:
    """Sort queues into one list for each broker."""

    def broker(queue: MessageQueue) -> str:
        return queue.broker_name

    for _, group in itertools.groupby(sorted(queues, key=broker), broker):
        yield list(group)
