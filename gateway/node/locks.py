"""Queue locks: one client of a group at a time may consume a queue in order.

Where a broker has several nodes they share its locks, so that who takes over keeps to
those that were given.

Source: RebalanceLockManager.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.storage.state import State

LOCK_MS = 60_000
"""How long a lock holds without being taken again, as rocketmq.broker.rebalance has
it; clients take theirs again each 20 seconds."""

QueueName = tuple[str, int]
"""A topic and a queue id."""


_PREFIX = "lock/"


class _Lock(NamedTuple):
    client_id: str
    until_ms: int


class QueueLocks:
    """Which client holds which queue of which group.

    Args:
        now_ms: Milliseconds since 1970.
        state: What the broker's nodes share; None where there is one node.
    """

    def __init__(self, now_ms: Callable[[], int], state: State | None = None) -> None:
        self._now_ms = now_ms
        self._groups: dict[str, dict[QueueName, _Lock]] = {}
        self._state = state
        if state is not None:
            for key, value in state.items(_PREFIX):
                self._learn(key, value)
            state.watch(_PREFIX, self._learn)

    @property
    def shared(self) -> bool:
        """Whether a lock must be kept before its client may hear of it."""
        return self._state is not None

    async def kept(self) -> None:
        """Return when a node that takes over would know of every lock.

        Raises:
            LogUnavailableError: That is not certain.
        """
        if self._state is not None:
            await self._state.flush()

    def lock(
        self, group: str, client_id: str, queues: Iterable[QueueName]
    ) -> list[QueueName]:
        """Take queues, or keep them; gives those that the client holds now."""
        now = self._now_ms()
        locks = self._groups.setdefault(group, {})
        held = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None or lock.client_id == client_id or lock.until_ms <= now:
                locks[queue] = lock = _Lock(client_id, now + LOCK_MS)
                self._note(group, queue, lock)
                held.append(queue)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> None:
        """Give queues back; those of others are left alone."""
        locks = self._groups.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
                self._note(group, queue, None)
        if not locks:
            self._groups.pop(group, None)

    def of_queue(self, topic: str, queue_id: int) -> dict[str, tuple[str, int]]:
        """Who holds a queue: by group, the client and for how many milliseconds yet."""
        now = self._now_ms()
        return {
            group: (lock.client_id, lock.until_ms - now)
            for group, locks in self._groups.items()
            if (lock := locks.get((topic, queue_id))) and lock.until_ms > now
        }

    def adopt(self, group: str, queue: QueueName, client_id: str, ms: int) -> None:
        """Keep to a lock that another broker gave, for so many milliseconds yet."""
        lock = _Lock(client_id, self._now_ms() + min(ms, LOCK_MS))
        self._groups.setdefault(group, {})[queue] = lock
        self._note(group, queue, lock)

    def expire(self) -> None:
        """Forget locks that hold no more."""
        now = self._now_ms()
        for group, locks in list(self._groups.items()):
            for queue in [one for one, lock in locks.items() if lock.until_ms <= now]:
                del locks[queue]
                self._note(group, queue, None)
            if not locks:
                del self._groups[group]

    def is_ordered(self, group: str) -> bool:
        """Whether somebody holds a lock, so the group consumes in order."""
        now = self._now_ms()
        return any(lock.until_ms > now for lock in self._groups.get(group, {}).values())

    def _note(self, group: str, queue: QueueName, lock: _Lock | None) -> None:
        """Let the other nodes know."""
        # Those that only follow forget what is over by themselves.
        if self._state is None or not self._state.leading:
            return
        topic, queue_id = queue
        key = f"{_PREFIX}{quote(group, '')}/{quote(topic, '')}/{queue_id}"
        self._state.put(key, f"{lock.until_ms} {lock.client_id}" if lock else None)

    def _learn(self, key: str, value: str | None) -> None:
        """Take over what the leading node has given or taken back."""
        group, topic, queue_id = map(unquote, key.removeprefix(_PREFIX).split("/"))
        queue = topic, int(queue_id)
        if value is not None:
            until_ms, _, client_id = value.partition(" ")
            locks = self._groups.setdefault(group, {})
            locks[queue] = _Lock(client_id, int(until_ms))
            return
        locks = self._groups.get(group, {})
        locks.pop(queue, None)
        if not locks:
            self._groups.pop(group, None)
