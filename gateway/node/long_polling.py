"""Long polling: requests that wait until there are messages, or their time is up.

A pull waits for one partition, and takes nothing from others: all that wait for it are
woken in the order in which they came. A pop waits for the queues of a topic in a group.
Who came first is woken first, and the next one only while there is more: a message
costs one look, however many wait. What does not match a pop's filter wakes it for that
look, in which the whole group passes the message over, and its client hears nothing.

Source: PullRequestHoldService.java and PopLongPollingService.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from ropeway.gateway.node.fair_share import FairShare
from ropeway.storage.api import NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.api import Partition

Key = TypeVar("Key")

ANY_QUEUE = -1


class Waiter:
    """One waiting request; each kind says what waking it does.

    Args:
        owner: The connection that it came on.
        whose: The user, or the address where nobody has a name.
        queue_id: Which queue it waits for; below 0 any.
        takes: Whether nobody behind it finds what it does not.
    """

    __slots__ = ("__weakref__", "line", "owner", "queue_id", "takes", "timer", "whose")

    def __init__(
        self,
        owner: object,
        whose: str = "",
        queue_id: int = ANY_QUEUE,
        *,
        takes: bool = False,
    ) -> None:
        self.owner = owner
        self.whose = whose
        self.queue_id = max(queue_id, ANY_QUEUE)
        self.takes = takes
        self.timer: asyncio.TimerHandle | None = None
        self.line: _Line | None = None

    def wake(self) -> bool:
        """Look again; True when it is answered now. It must not raise."""
        raise NotImplementedError

    def expire(self) -> None:
        """Answer, as the time is up. It must not raise."""
        raise NotImplementedError


class _Line:
    """Who waits for the same, in the order in which they came."""

    __slots__ = ("counts", "key", "partitions", "waiters", "watches")

    def __init__(self, key: object) -> None:
        self.key = key
        self.partitions: Sequence[Partition] = ()
        self.waiters: dict[Waiter, None] = {}
        self.counts: dict[int, int] = {}
        self.watches: list[tuple[Partition, Callable[[], None]]] = []

    def unwatch(self) -> None:
        for partition, grown in self.watches:
            partition.unwatch(grown)
        # They know their line: without this, each would wait to be collected.
        self.watches.clear()
        self.partitions = ()


class LongPolling(Generic[Key]):
    """Every waiting request of a kind, by what it waits for.

    Args:
        limit: Requests that may wait at a time, of everybody.
        at_queue: Those of one key that may wait at one queue; None: as many.
    """

    def __init__(self, limit: int, at_queue: int | None = None) -> None:
        self._places = FairShare(limit)
        self._at_queue = limit if at_queue is None else at_queue
        self._lines: dict[Key, _Line] = {}
        self._owned: dict[object, dict[Waiter, None]] = {}

    def __len__(self) -> int:
        return self._places.taken

    def count(self, key: Key, queue_id: int) -> int:
        """How many wait at a queue, or, below 0, for any."""
        line = self._lines.get(key)
        return line.counts.get(max(queue_id, ANY_QUEUE), 0) if line else 0

    def add(
        self,
        key: Key,
        partitions: Sequence[Partition],
        waiter: Waiter,
        timeout_ms: int,
    ) -> bool:
        """Let a request wait; False where too many do already.

        Args:
            key: What it waits for.
            partitions: Where that comes; a queue's id is its place among them.
            waiter: The request.
            timeout_ms: How long it waits at most.
        """
        line = self._lines.get(key) or _Line(key)
        waiting = line.counts.get(waiter.queue_id, 0)
        if waiting >= self._at_queue or not self._places.take(waiter.whose):
            return False
        if line.partitions is not partitions and line.partitions != partitions:
            try:
                self._watch(line, partitions)
            except NoSuchPartitionError:
                self._places.leave(waiter.whose)
                raise
        self._lines[key] = line
        waiter.line = line
        waiter.timer = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._time_out, waiter
        )
        line.waiters[waiter] = None
        line.counts[waiter.queue_id] = waiting + 1
        self._owned.setdefault(waiter.owner, {})[waiter] = None
        return True

    def _watch(self, line: _Line, partitions: Sequence[Partition]) -> None:
        line.unwatch()
        try:
            for queue_id, partition in enumerate(partitions):
                grown = partial(self._wake, line, queue_id)
                partition.watch(grown)
                line.watches.append((partition, grown))
        except NoSuchPartitionError:
            line.unwatch()
            raise
        line.partitions = partitions

    def wake(self, key: Key, queue_id: int = ANY_QUEUE) -> None:
        """There may be something in a queue, or, below 0, in any or to be retried."""
        if line := self._lines.get(key):
            self._wake(line, queue_id)

    def wake_all(self) -> None:
        """There may be something for everybody."""
        for line in list(self._lines.values()):
            self._wake(line, ANY_QUEUE)

    def _wake(self, line: _Line, queue_id: int) -> None:
        for waiter in list(line.waiters):
            if waiter.line is not line or not (
                queue_id < 0 or waiter.queue_id in (ANY_QUEUE, queue_id)
            ):
                continue
            if waiter.wake():
                self._remove(waiter)
            elif waiter.takes and queue_id >= 0:
                return

    def _time_out(self, waiter: Waiter) -> None:
        self._remove(waiter)
        waiter.expire()

    def _remove(self, waiter: Waiter) -> None:
        line, waiter.line = waiter.line, None
        if line is None:
            return
        if waiter.timer is not None:
            waiter.timer.cancel()
        owned = self._owned[waiter.owner]
        del line.waiters[waiter], owned[waiter]
        line.counts[waiter.queue_id] -= 1
        self._places.leave(waiter.whose)
        if not owned:
            del self._owned[waiter.owner]
        if not line.waiters:
            line.unwatch()
            del self._lines[line.key]  # type: ignore[arg-type]

    def forget(self, owner: object) -> None:
        """Drop what came on a connection that has ended; nobody waits for answers."""
        for waiter in list(self._owned.get(owner, ())):
            self._remove(waiter)

    def leave(self, waiter: Waiter) -> bool:
        """Drop a request that is answered now; False where it waits no more."""
        is_waiting = waiter.line is not None
        self._remove(waiter)
        return is_waiting

    def release(self, key: Key) -> None:
        """Answer those that wait for something as if their time were up."""
        if line := self._lines.get(key):
            for waiter in list(line.waiters):
                self._time_out(waiter)

    def release_all(self, of: Callable[[Key], bool] = lambda _: True) -> None:
        """Likewise, those that wait for whatever is of a kind; by default all."""
        for key in list(self._lines):
            if of(key):
                self.release(key)

    async def take_over(self) -> None:
        """Nothing: requests may wait as soon as they are begun."""

    async def give_up(self) -> None:
        """Answer every waiting request as if its time were up."""
        self.release_all()

    def close(self) -> None:
        """Likewise, and let none wait again."""
        self._places.most = 0
        self.release_all()
