"""Concurrent consumption: messages of all queues go to whichever worker is free.

Source: ConsumeMessageConcurrentlyService.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from ropeway.client.errors import RemotingError
from ropeway.client.message import RETRY
from ropeway.client.queue_reader import Held, QueueReader, Setup
from ropeway.client.send_back import send_back
from ropeway.client.send_request import RETRY_PREFIX
from ropeway.client.tasks import OwnedTasks

if TYPE_CHECKING:
    from ropeway.client.handlers import Handling
    from ropeway.client.message import ReceivedMessage

_log = logging.getLogger(__name__)


class ConcurrentReader(QueueReader):
    """Handles messages in no order, as many at a time as there are workers."""

    def __init__(self, setup: Setup, handling: Handling) -> None:
        super().__init__(setup)
        self._handlers, self._concurrency, self._max_reconsume_times = handling
        # What flow control lets be cached bounds it.
        self._todo: asyncio.Queue[tuple[Held, list[ReceivedMessage]] | None]
        self._todo = asyncio.Queue()
        self._workers = OwnedTasks()
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start the workers, and then to read."""
        self._running = [
            self._workers.spawn(self._work(), f"worker {number}")
            for number in range(self._concurrency)
        ]
        await super().start()

    def arrived(self, held: Held) -> None:
        """Line everything up."""
        super().arrived(held)
        waiting = held.messages.take(len(held.messages))
        for batch in self._handlers.batches(waiting):
            self._todo.put_nowait((held, batch))

    async def finish(self, timeout_s: float) -> None:
        """Start no more handlers, wait for those that run, and then cancel them."""
        while not self._todo.empty():
            self._todo.get_nowait()
        for _ in self._running:
            self._todo.put_nowait(None)
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
        await self._workers.close()

    async def _work(self) -> None:
        while (item := await self._todo.get()) is not None:
            held, batch = item
            if not held.messages.dropped:
                await self._handle(held, batch)

    async def _handle(self, held: Held, batch: list[ReceivedMessage]) -> None:
        result = await self.handled(batch, self._handlers)
        if held.messages.dropped:
            return
        done = batch
        if result is RETRY and not self.is_broadcasting:
            done = [
                message for message in batch if await self._sent_back(held, message)
            ]
        held.messages.finish(done)
        self.offsets.update(held.messages.queue, held.messages.safe_offset)

    async def _sent_back(self, held: Held, message: ReceivedMessage) -> bool:
        try:
            await send_back(
                self.instance, self.group, message, self._max_reconsume_times
            )
        except RemotingError as error:
            _log.warning("not sent back msg_id=%s error=%s", message.msg_id, error)
            again = msgspec.structs.replace(
                message, reconsume_times=message.reconsume_times + 1
            )
            self._workers.spawn(self._line_up_later(held, again), "handle again")
            return False
        if not any(q.topic.startswith(RETRY_PREFIX) for q in self.queues):
            # The first message sent back creates the retry topic.
            self.rebalancer.wake()
        return True

    async def _line_up_later(self, held: Held, message: ReceivedMessage) -> None:
        await asyncio.sleep(self.config.retry_delay_s)
        self._todo.put_nowait((held, [message]))
