"""Waiting pulls: answered when their queue grows by something they want, or in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.api import Partition


class Hold:
    """One waiting pull.

    Args:
        wake: Look again; True when the pull is answered now.
        expire: The time is up: answer.
    """

    __slots__ = ("expire", "queue", "timer", "wake")

    def __init__(self, wake: Callable[[], bool], expire: Callable[[], None]) -> None:
        self.wake = wake
        self.expire = expire
        self.timer: asyncio.TimerHandle | None = None
        self.queue: _Queue | None = None


class _Queue:
    """The pulls that wait for one partition."""

    __slots__ = ("holds", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.holds: set[Hold] = set()


class Holds:
    """Every waiting pull of a node.

    Args:
        limit: Pulls that may wait at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queues: dict[Partition, tuple[_Queue, Callable[[], None]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, partition: Partition, hold: Hold, timeout_ms: int) -> bool:
        """Let a pull wait; False where too many do already."""
        if self._count >= self._limit:
            return False
        entry = self._queues.get(partition)
        if entry is None:
            queue = _Queue(partition)
            entry = queue, lambda: self._grown(queue)
            self._queues[partition] = entry
            partition.watch(entry[1])
        queue = entry[0]
        queue.holds.add(hold)
        hold.queue = queue
        hold.timer = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._timed_out, hold
        )
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
        queue.holds.discard(hold)
        self._count -= 1
        if not queue.holds:
            _, grown = self._queues.pop(queue.partition)
            queue.partition.unwatch(grown)

    def release(self, partition: Partition) -> None:
        """Answer the pulls that wait for a partition as if their time were up."""
        if entry := self._queues.get(partition):
            for hold in list(entry[0].holds):
                self._timed_out(hold)

    def release_all(self) -> None:
        """Answer every waiting pull as if its time were up."""
        for partition in list(self._queues):
            self.release(partition)
