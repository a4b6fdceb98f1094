"""Queue locks: one client of a group at a time may consume a queue in order.

Source: RebalanceLockManager.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOCK_MS = 60_000
"""How long a lock holds without being taken again, as rocketmq.broker.rebalance has
it; clients take theirs again each 20 seconds."""

QueueName = tuple[str, int]
"""A topic and a queue id."""


class _Lock(NamedTuple):
    client_id: str
    until_ms: int


class QueueLocks:
    """Which client holds which queue of which group."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._groups: dict[str, dict[QueueName, _Lock]] = {}

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
                locks[queue] = _Lock(client_id, now + LOCK_MS)
                held.append(queue)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> None:
        """Give queues back; those of others are left alone."""
        locks = self._groups.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
        if not locks:
            self._groups.pop(group, None)

    def expire(self) -> None:
        """Forget locks that hold no more."""
        now = self._now_ms()
        for group, locks in list(self._groups.items()):
            for queue in [one for one, lock in locks.items() if lock.until_ms <= now]:
                del locks[queue]
            if not locks:
                del self._groups[group]

    def is_ordered(self, group: str) -> bool:
        """Whether somebody holds a lock, so the group consumes in order."""
        now = self._now_ms()
        return any(lock.until_ms > now for lock in self._groups.get(group, {}).values())
