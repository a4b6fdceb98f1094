"""Queue locks: one client of a group at a time."""

from __future__ import annotations

from gateway.node.locks import LOCK_MS, QueueLocks

A, B = ("orders", 0), ("orders", 1)


def test_a_lock_that_is_not_renewed_passes_to_another():
    now = 0
    locks = QueueLocks(lambda: now)
    assert locks.lock("g", "one", [A, B]) == [A, B]
    now = LOCK_MS - 1
    assert locks.lock("g", "two", [A, B]) == []
    assert locks.lock("g", "one", [A]) == [A]
    now = LOCK_MS
    assert locks.lock("g", "two", [A, B]) == [B]
    assert locks.is_ordered("g")


def test_groups_do_not_share_locks():
    locks = QueueLocks(lambda: 0)
    assert locks.lock("g", "one", [A]) == [A]
    assert locks.lock("h", "two", [A]) == [A]
    locks.unlock("g", "two", [A])
    assert locks.lock("g", "two", [A]) == []


def test_expired_locks_are_forgotten():
    now = 0
    locks = QueueLocks(lambda: now)
    for number in range(100):
        locks.lock(f"g{number}", "one", [A])
    now = LOCK_MS // 2
    locks.lock("g0", "one", [A])
    now = LOCK_MS
    locks.expire()
    assert list(locks._groups) == ["g0"]
    assert not locks.is_ordered("g1")
    locks.unlock("g0", "one", [A])
    assert not locks._groups
