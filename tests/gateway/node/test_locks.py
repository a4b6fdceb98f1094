"""Queue locks: one client of a group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.locks import LOCK_MS, QueueLocks
from tests.remoting import looped

if TYPE_CHECKING:
    from collections.abc import Callable

A, B = ("orders", 0), ("orders", 1)


@pytest.mark.rule(
    "node.md",
    "One client of a group at a time holds a queue's lock, for 60 s from the last time",
)
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


def test_a_group_is_ordered_for_as_long_as_a_lock_holds():
    now = 0
    locks = QueueLocks(lambda: now)
    locks.lock("g", "one", [A])
    now = LOCK_MS - 1
    assert locks.is_ordered("g")
    now = LOCK_MS
    assert not locks.is_ordered("g")


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


class State:
    """What two nodes share: what one puts, the other hears of at once."""

    def __init__(self, *, leading: bool) -> None:
        self.leading = leading
        self.facts: dict[str, str] = {}
        self.others: list[Callable[[str, str | None], None]] = []
        self.flushed = 0

    def items(self, prefix):
        return [(key, value) for key, value in self.facts.items() if prefix in key]

    def watch(self, prefix, changed):
        assert prefix == "lock/"
        self._changed = changed

    def put(self, key, value):
        assert self.leading
        if value is None:
            del self.facts[key]
        else:
            self.facts[key] = value
        for changed in self.others:
            changed(key, value)

    async def flush(self):
        self.flushed += 1


def test_who_takes_over_keeps_to_the_locks_that_were_given():
    now = 0
    ours, theirs = State(leading=True), State(leading=False)
    locks = QueueLocks(lambda: now, ours)
    others = QueueLocks(lambda: now, theirs)
    ours.others.append(theirs._changed)
    odd = ("%RETRY%g/h", 3)
    locks.lock("a/b c", "10.0.0.1@1", [A, odd])
    locks.lock("g", "one", [A, B])
    locks.unlock("g", "one", [B])
    late = State(leading=True)
    late.facts = dict(ours.facts)
    for taken_over in (others, QueueLocks(lambda: now, late)):
        assert taken_over.lock("a/b c", "two", [A, odd, B]) == [B]
        assert taken_over.lock("g", "two", [A, B]) == [B]
    now = LOCK_MS
    others.expire()
    locks.expire()
    assert ours.facts == {}
    assert not others.is_ordered("g")


def test_who_follows_forgets_what_was_given_back():
    ours, theirs = State(leading=True), State(leading=False)
    locks = QueueLocks(lambda: 0, ours)
    others = QueueLocks(lambda: 0, theirs)
    ours.others.append(theirs._changed)
    locks.lock("g", "one", [A, B])
    locks.unlock("g", "one", [A])
    assert others.is_ordered("g")
    locks.unlock("g", "one", [B])
    assert not others._groups


@looped
async def test_a_shared_lock_is_kept_before_its_client_hears_of_it():
    state = State(leading=True)
    locks = QueueLocks(lambda: 0, state)
    assert locks.shared
    await locks.kept()
    assert state.flushed == 1
    alone = QueueLocks(lambda: 0)
    assert not alone.shared
    await alone.kept()
