"""Waiting pulls: answered when their queue grows by something they want, or in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.common.eager import Eventual
    from storage.api import Partition


class Hold:
    """One waiting pull.

    Args:
        owner: Whose it is: the connection that it came on.
        wake: Look again; True when the pull is answered now. It must not raise.
        expire: The time is up: answer. It must not raise.
        judge: Rules of access have changed: see whether this one may wait on.
    """

    __slots__ = ("__weakref__", "_judge", "expire", "owner", "queue", "timer", "wake")

    def __init__(
        self,
        owner: object,
        wake: Callable[[], bool],
        expire: Callable[[], None],
        judge: Callable[[Hold], Eventual[None]] = lambda _: None,
    ) -> None:
        self.owner = owner
        self.wake = wake
        self.expire = expire
        self.timer: asyncio.TimerHandle | None = None
        self.queue: _Queue | None = None
        # Given itself: whoever waits does not know its hold, so no cycle outlives it.
        self._judge = judge

    def judge(self) -> Eventual[None]:
        """See whether it may wait on."""
        return self._judge(self)


class _Queue:
    """The pulls that wait for one partition, in the order in which they came."""

    __slots__ = ("grown", "holds", "partition")

    def __init__(self, partition: Partition, grown: Callable[[_Queue], None]) -> None:
        self.partition = partition
        self.holds: dict[Hold, None] = {}
        self.grown = lambda: grown(self)


class Holds:
    """Every waiting pull of a node.

    Args:
        limit: Pulls that may wait at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queues: dict[Partition, _Queue] = {}
        self._owned: dict[object, dict[Hold, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, partition: Partition, hold: Hold, timeout_ms: int) -> bool:
        """Let a pull wait; False where too many do already."""
        if self._count >= self._limit:
            return False
        queue = self._queues.get(partition)
        if queue is None:
            queue = _Queue(partition, self._grown)
            partition.watch(queue.grown)
            self._queues[partition] = queue
        hold.timer = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._timed_out, hold
        )
        hold.queue = queue
        queue.holds[hold] = None
        self._owned.setdefault(hold.owner, {})[hold] = None
        self._count += 1
        return True

    def _grown(self, queue: _Queue) -> None:
        for hold in list(queue.holds):
            if hold.queue is queue and hold.wake():
                self._remove(hold)

    def _timed_out(self, hold: Hold) -> None:
        self._remove(hold)
        hold.expire()

    def _remove(self, hold: Hold) -> None:
        queue = hold.queue
        if queue is None:
            return
        hold.queue = None
        if hold.timer is not None:
            hold.timer.cancel()
        owned = self._owned[hold.owner]
        del queue.holds[hold], owned[hold]
        self._count -= 1
        if not owned:
            del self._owned[hold.owner]
        if not queue.holds:
            del self._queues[queue.partition]
            queue.partition.unwatch(queue.grown)
            # It knows its queue: without this, each would wait to be collected.
            del queue.grown

    def forget(self, owner: object) -> None:
        """Drop the pulls of a connection that has ended; nobody waits for answers."""
        for hold in list(self._owned.get(owner, ())):
            self._remove(hold)

    def leave(self, hold: Hold) -> bool:
        """Drop a pull that is answered now; False where it does not wait any more."""
        is_waiting = hold.queue is not None
        self._remove(hold)
        return is_waiting

    def release(self, partition: Partition) -> None:
        """Answer the pulls that wait for a partition as if their time were up."""
        if queue := self._queues.get(partition):
            for hold in list(queue.holds):
                self._timed_out(hold)

    async def take_over(self) -> None:
        """Nothing: pulls may wait as soon as they are begun."""

    async def give_up(self) -> None:
        """Answer every waiting pull as if its time were up."""
        for partition in list(self._queues):
            self.release(partition)

    def close(self) -> None:
        """Answer every waiting pull as if its time were up, and let none wait again."""
        self._limit = 0
        for partition in list(self._queues):
            self.release(partition)
