"""Waiting pops: a line for each topic and group, woken queue by queue, in order.

Who came first is woken first, and the next one only while there is more: a message
costs one look, however many wait. What does not match a pop's filter wakes it for that
look, in which the whole group passes the message over, and its client hears nothing.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.node.served_topic import ServedTopic
    from ropeway.common.eager import Eventual
    from storage.api import Partition

ANY_QUEUE = -1
MAX_LINE = 1024
"""Pops of one group that wait at one queue: popPollingSize's default."""


class Waiter:
    """A waiting pop.

    Args:
        owner: Whose it is: the connection that it came on.
        queue_id: Which queue it waits for; below 0 any.
        look: Look again; True when it is answered now. It must not raise.
        expire: The time is up: answer. It must not raise.
        judge: Rules of access have changed: see whether this one may wait on.
        watches_only: Whether it takes nothing: who comes behind it is woken, too.
    """

    __slots__ = (
        "__weakref__",
        "_judge",
        "expire",
        "line",
        "look",
        "owner",
        "queue_id",
        "timer",
        "watches_only",
    )

    def __init__(
        self,
        owner: object,
        queue_id: int,
        look: Callable[[], bool],
        expire: Callable[[], None],
        judge: Callable[[Waiter], Eventual[None]] = lambda _: None,
        *,
        watches_only: bool = False,
    ) -> None:
        self.owner = owner
        self.queue_id = max(queue_id, ANY_QUEUE)
        self.look = look
        self.expire = expire
        self.watches_only = watches_only
        self.timer: asyncio.TimerHandle | None = None
        self.line: _Line | None = None
        self._judge = judge

    def judge(self) -> Eventual[None]:
        """See whether it may wait on."""
        return self._judge(self)


class _Line:
    """Who waits for a topic in a group."""

    __slots__ = ("counts", "key", "topic", "waiters", "watches")

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        self.topic: ServedTopic | None = None
        self.waiters: dict[Waiter, None] = {}
        self.counts: dict[int, int] = {}
        self.watches: list[tuple[Partition, Callable[[], None]]] = []

    def unwatch(self) -> None:
        for partition, grown in self.watches:
            partition.unwatch(grown)
        self.watches.clear()


class Lines:
    """Every waiting pop of a node.

    Args:
        limit: Pops that may wait at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: dict[tuple[str, str], _Line] = {}
        self._owned: dict[object, dict[Waiter, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, group: str, topic: str, queue_id: int) -> int:
        """How many wait at a queue, or, below 0, for any."""
        line = self._lines.get((group, topic))
        return line.counts.get(max(queue_id, ANY_QUEUE), 0) if line else 0

    def add(
        self, group: str, topic: ServedTopic, waiter: Waiter, timeout_ms: int
    ) -> bool:
        """Let a pop wait; False where too many do already."""
        key = (group, topic.name)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(key)
        waiting = line.counts.get(waiter.queue_id, 0)
        if self._count >= self._limit or waiting >= MAX_LINE:
            self._drop_if_empty(line)
            return False
        if line.topic is not topic:
            self._watch(line, topic)
        waiter.line = line
        waiter.timer = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._timed_out, waiter
        )
        line.waiters[waiter] = None
        line.counts[waiter.queue_id] = waiting + 1
        self._owned.setdefault(waiter.owner, {})[waiter] = None
        self._count += 1
        return True

    def _watch(self, line: _Line, topic: ServedTopic) -> None:
        line.unwatch()
        line.topic = topic
        for queue_id, partition in enumerate(topic.partitions):
            grown = partial(self._wake, line, queue_id)
            partition.watch(grown)
            line.watches.append((partition, grown))

    def wake(self, group: str, topic: str, queue_id: int = ANY_QUEUE) -> None:
        """There may be something in a queue, or, below 0, in any or to be retried."""
        if line := self._lines.get((group, topic)):
            self._wake(line, queue_id)

    def wake_all(self) -> None:
        """Messages are handed out again."""
        for line in list(self._lines.values()):
            self._wake(line, ANY_QUEUE)

    def _wake(self, line: _Line, queue_id: int) -> None:
        for waiter in list(line.waiters):
            if waiter.line is not line or not (
                queue_id < 0 or waiter.queue_id in (ANY_QUEUE, queue_id)
            ):
                continue
            if waiter.look():
                self._remove(waiter)
            elif not waiter.watches_only and queue_id >= 0:
                # What it does not find, nobody behind it does.
                return

    def _timed_out(self, waiter: Waiter) -> None:
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
        self._count -= 1
        if not owned:
            del self._owned[waiter.owner]
        self._drop_if_empty(line)

    def _drop_if_empty(self, line: _Line) -> None:
        if not line.waiters and self._lines.get(line.key) is line:
            line.unwatch()
            del self._lines[line.key]

    def forget(self, owner: object) -> None:
        """Drop the pops of a connection that has ended; nobody waits for answers."""
        for waiter in list(self._owned.get(owner, ())):
            self._remove(waiter)

    def leave(self, waiter: Waiter) -> bool:
        """Drop a pop that is answered now; False where it does not wait any more."""
        is_waiting = waiter.line is not None
        self._remove(waiter)
        return is_waiting

    def release(self, *, group: str | None = None, topic: str | None = None) -> None:
        """Answer pops of a group or a topic as if their time were up."""
        for key, line in list(self._lines.items()):
            if group in (None, key[0]) and topic in (None, key[1]):
                for waiter in list(line.waiters):
                    self._timed_out(waiter)

    def close(self) -> None:
        """Answer every waiting pop as if its time were up, and let none wait again."""
        self._limit = 0
        self.release()
