"""What clients that read queues can ask about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client import queue_bounds
from ropeway.client.base import Client
from ropeway.client.offsets import BrokerOffsets

if TYPE_CHECKING:
    from ropeway.client.instance import Instance
    from ropeway.client.message import MessageQueue


class QueueClient(Client):
    """A client that reads queues for a group.

    Args:
        instance: Its connections.
        group: Whose offsets are meant.
    """

    def __init__(self, instance: Instance, group: str) -> None:
        super().__init__(instance)
        self._offsets = BrokerOffsets(instance, group)

    async def begin_offset(self, queue: MessageQueue) -> int:
        """The offset of a queue's oldest message.

        Raises:
            RemotingError: The broker did not say.
        """
        return await queue_bounds.begin_offset(self._instance, queue)

    async def end_offset(self, queue: MessageQueue) -> int:
        """The offset that a queue's next message will get.

        Raises:
            RemotingError: The broker did not say.
        """
        return await queue_bounds.end_offset(self._instance, queue)

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time.

        Args:
            queue: Where to look.
            timestamp_ms: Milliseconds since 1970, by the broker's clock.

        Raises:
            RemotingError: The broker did not say.
        """
        return await queue_bounds.offset_for_timestamp(
            self._instance, queue, timestamp_ms
        )

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's stored offset; None where it never read the queue.

        Raises:
            RemotingError: The broker did not say.
        """
        await self._instance.routes.get(queue.topic)
        return await self._offsets.read(queue)
