"""The messages of one queue on their way from a broker through the handlers.

    pulled ---put---> waiting ---take---> in hand ---finish---> forgotten
                         ^------put_back-----'

The offset to store is the smallest that is not finished, so that no crash can lose
a message: it is delivered again instead.

Source: ProcessQueue.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import bisect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.client.message import MessageQueue, ReceivedMessage


class ProcessQueue:
    """What a consumer holds of one queue.

    Args:
        queue: Which one.
        next_offset: Where pulling begins.
        max_messages: More than so many make `has_room` false.
        max_bytes: More bytes of body than that, too.
    """

    def __init__(
        self, queue: MessageQueue, next_offset: int, max_messages: int, max_bytes: int
    ) -> None:
        self.queue = queue
        self.next_offset = next_offset
        """Where the next pull goes on."""
        self.stopped = asyncio.Event()
        """Set when nothing may be taken any more."""
        self.dropped = False
        """Whether the queue went to another consumer: what is in hand is void."""
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._held: dict[int, int] = {}
        self._bytes = 0
        self._waiting: list[ReceivedMessage] = []
        self._room = asyncio.Event()
        self._room.set()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def held_bytes(self) -> int:
        """Bytes of the bodies that are held."""
        return self._bytes

    @property
    def is_dry(self) -> bool:
        """Whether nothing waits to be taken."""
        return not self._waiting

    @property
    def safe_offset(self) -> int:
        """The offset to store: everything before it is finished."""
        return next(iter(self._held), self.next_offset)

    async def wait_for_room(self) -> None:
        """Wait until another pull's messages may be held."""
        await self._room.wait()

    async def wait_for_messages(self) -> None:
        """Wait until something can be taken, or the queue is stopped."""
        await self._arrived.wait()

    def put(self, messages: Iterable[ReceivedMessage], next_offset: int) -> None:
        """Hold what was pulled, in the order of its offsets."""
        for message in messages:
            self._held[message.queue_offset] = len(message.body)
            self._bytes += len(message.body)
            self._waiting.append(message)
        self.next_offset = next_offset
        self._signal()

    def take(self, limit: int) -> list[ReceivedMessage]:
        """Take the oldest waiting messages in hand; may be none."""
        taken = self._waiting[:limit]
        del self._waiting[:limit]
        self._signal()
        return taken

    def put_back(self, messages: Iterable[ReceivedMessage]) -> None:
        """Let messages in hand wait again, in front of younger ones."""
        if self.stopped.is_set():
            return
        for message in messages:
            bisect.insort(self._waiting, message, key=lambda m: m.queue_offset)
        self._signal()

    def finish(self, messages: Iterable[ReceivedMessage]) -> None:
        """Forget messages that were handled."""
        for message in messages:
            self._bytes -= self._held.pop(message.queue_offset, 0)
        self._signal()

    def stop(self) -> None:
        """Let go of what waits, and wake who waits for it; what is in hand counts."""
        self.stopped.set()
        self._waiting.clear()
        self._arrived.set()

    def drop(self) -> None:
        """Stop, and let what is in hand count no more."""
        self.stop()
        self.dropped = True

    def _signal(self) -> None:
        is_full = len(self._held) > self._max_messages or self._bytes > self._max_bytes
        (self._room.clear if is_full else self._room.set)()
        if self._waiting or self.stopped.is_set():
            self._arrived.set()
        else:
            self._arrived.clear()
