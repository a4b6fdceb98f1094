"""Orderly consumption: one message of a queue after the other, by one client only.

Source: ConsumeMessageOrderlyService.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from ropeway.client.errors import RemotingError
from ropeway.client.locks import QueueLocks, by_broker
from ropeway.client.message import RETRY
from ropeway.client.queue_reader import Held, QueueReader, Setup
from ropeway.client.send_back import send_to_dead_letters
from ropeway.client.tasks import cancel, wait_for

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ropeway.client.handlers import Handling
    from ropeway.client.message import MessageQueue, ReceivedMessage

_log = logging.getLogger(__name__)


class OrderlyReader(QueueReader):
    """Handles the messages of each queue in order, as long as it has its lock."""

    def __init__(self, setup: Setup, handling: Handling) -> None:
        super().__init__(setup)
        self._handlers, concurrency, self._max_reconsume_times = handling
        self._locks = QueueLocks(self.instance, self.group)
        self._slots = asyncio.Semaphore(concurrency)

    async def start(self) -> None:
        """Start to keep locks, and then to read."""
        if not self.is_broadcasting:
            self.tasks.spawn(self._keep_locks(), "locks")
        await super().start()

    async def finish(self, timeout_s: float) -> None:
        """Wait for the handlers that run, and then cancel them."""
        handling = [task for held in self.queues.values() for task in held.tasks[1:]]
        if handling:
            await asyncio.wait(handling, timeout=timeout_s)
            await cancel(*handling)

    async def unlock_all(self) -> None:
        """Give all queues free for others."""
        if not self.is_broadcasting:
            await self._locks.unlock(tuple(self.queues))

    async def acquire(self, held: Held) -> bool:
        """Lock a queue."""
        queue = held.messages.queue
        held.locked_at = asyncio.get_running_loop().time()
        return self.is_broadcasting or queue in await self._locks.lock([queue])

    async def released(self, held: Held) -> None:
        """Unlock a queue, now that its offset is stored."""
        if not self.is_broadcasting:
            await self._locks.unlock([held.messages.queue])

    def work(self, held: Held) -> Coroutine[Any, Any, None]:
        """Handle a queue's messages until it is stopped."""
        return self._handle_all(held)

    async def _keep_locks(self) -> None:
        while True:
            await asyncio.sleep(self.config.lock_interval_s)
            queues = [q for q, held in self.queues.items() if held.release is None]
            await asyncio.gather(*(self._renew(some) for some in by_broker(queues)))

    async def _renew(self, queues: list[MessageQueue]) -> None:
        asked_at = asyncio.get_running_loop().time()
        try:
            granted = await self._locks.lock(queues)
        except RemotingError as error:
            _log.warning("locks not renewed queues=%d error=%s", len(queues), error)
            return
        for queue in queues:
            if queue in granted and queue in self.queues:
                self.queues[queue].locked_at = asked_at
            elif queue in self.queues:
                _log.warning("lock lost queue=%s", queue)
                self.give_up(queue)

    def _is_locked(self, held: Held) -> bool:
        age_s = asyncio.get_running_loop().time() - held.locked_at
        return self.is_broadcasting or age_s < self.config.lock_lifetime_s

    async def _handle_all(self, held: Held) -> None:
        messages = held.messages
        while True:
            await messages.wait_for_messages()
            async with self._slots:
                if messages.stopped.is_set():
                    return
                if not self._is_locked(held):
                    _log.warning("lock too old queue=%s", messages.queue)
                    self.give_up(messages.queue)
                    return
                goes_on = await self._handle_next(held)
            if not goes_on:
                await wait_for(messages.stopped, self.config.suspend_s)

    async def _handle_next(self, held: Held) -> bool:
        """Handle the next batch; False where it has to be handled again."""
        messages = held.messages
        # Which handler takes them, only the first message tells.
        first = messages.take(1)
        more = messages.take(self._handlers.batch_size(first[0].topic) - 1)
        batch, *others = self._handlers.batches(first + more)
        for other in others:
            messages.put_back(other)
        failed: list[ReceivedMessage] = []
        if await self.handled(batch, self._handlers) is RETRY:
            failed = [m for m in batch if not await self._given_up(m)]
        if not messages.dropped:
            messages.finish(m for m in batch if m not in failed)
            self.offsets.update(messages.queue, messages.safe_offset)
            messages.put_back(
                msgspec.structs.replace(m, reconsume_times=m.reconsume_times + 1)
                for m in failed
            )
        return not failed

    async def _given_up(self, message: ReceivedMessage) -> bool:
        limit = self._max_reconsume_times
        if limit is None or message.reconsume_times < limit:
            return False
        if self.is_broadcasting:
            return True
        try:
            await send_to_dead_letters(self.instance, self.group, message, limit)
        except RemotingError as error:
            _log.warning("not given up msg_id=%s error=%s", message.msg_id, error)
            return False
        return True
