"""Waiting requests: woken, timed out, forgotten, and nothing left of them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from ropeway.gateway.node.long_polling import LongPolling, Waiter
from ropeway.storage.api import NoSuchPartitionError
from tests.remoting import looped, until


class Queue:
    """A partition as far as waiting needs one."""

    def __init__(self, *, gone: bool = False) -> None:
        self.watchers = {}
        self.gone = gone

    def watch(self, grown):
        if self.gone:
            raise NoSuchPartitionError("deleted")
        self.watchers[grown] = None

    def unwatch(self, grown):
        self.watchers.pop(grown, None)

    def grow(self):
        for grown in tuple(self.watchers):
            grown()


class Waiting(Waiter):
    """One that notes what becomes of it."""

    def __init__(self, events, name, owner=None, *, wanted=True, **how):
        super().__init__(owner, **how)
        self._events = events
        self._name = name
        self._wanted = wanted

    def wake(self):
        self._events.append(f"wake {self._name}")
        return self._wanted

    def expire(self):
        self._events.append(f"expire {self._name}")


def add(
    pull_hold: LongPolling[Any], queue: Queue, pull: Waiter, timeout_ms: int
) -> bool:
    """Have a pull wait for a partition."""
    return pull_hold.add(queue, (queue,), pull, timeout_ms)


@looped
async def test_pulls_are_woken_in_the_order_in_which_they_came():
    events: list[str] = []
    pull_hold, queue = LongPolling(10), Queue()
    for name in "abc":
        assert add(pull_hold, queue, Waiting(events, name, wanted=name != "b"), 60_000)
    queue.grow()
    assert events == ["wake a", "wake b", "wake c"]
    assert len(pull_hold) == 1
    queue.grow()
    assert events[3:] == ["wake b"]
    pull_hold.close()
    assert events[4:] == ["expire b"]
    assert not queue.watchers


@looped
async def test_time_is_up_once_and_not_after_a_wake():
    events: list[str] = []
    pull_hold, queue = LongPolling(10), Queue()
    add(pull_hold, queue, Waiting(events, "a"), 1)
    add(pull_hold, queue, Waiting(events, "b", wanted=False), 1)
    queue.grow()
    await until(lambda: "expire b" in events)
    await asyncio.sleep(0.01)
    assert events == ["wake a", "wake b", "expire b"]
    assert len(pull_hold) == 0
    assert not queue.watchers


@looped
async def test_an_owner_takes_its_pulls_along_unanswered():
    events: list[str] = []
    pull_hold = LongPolling(10)
    one, two = Queue(), Queue()
    for queue in (one, two):
        add(pull_hold, queue, Waiting(events, "gone", "x"), 60_000)
    add(pull_hold, two, Waiting(events, "stays", "y"), 60_000)
    pull_hold.forget("x")
    pull_hold.forget("x")
    one.grow()
    two.grow()
    assert events == ["wake stays"]
    assert (len(pull_hold), pull_hold._owned, pull_hold._lines) == (0, {}, {})


@looped
async def test_there_is_a_limit_and_none_waits_after_the_end():
    events: list[str] = []
    pull_hold, queue = LongPolling(1), Queue()
    assert add(pull_hold, queue, Waiting(events, "a"), 60_000)
    assert not add(pull_hold, queue, Waiting(events, "b"), 60_000)
    pull_hold.close()
    assert not add(pull_hold, queue, Waiting(events, "c"), 60_000)
    assert events == ["expire a"]


@looped
async def test_a_partition_that_is_gone_is_told_and_leaves_nothing():
    pull_hold = LongPolling(1)
    with pytest.raises(NoSuchPartitionError):
        add(pull_hold, Queue(gone=True), Waiting([], "a"), 60_000)
    assert (len(pull_hold), pull_hold._lines, pull_hold._owned) == (0, {}, {})


@looped
async def test_pulls_of_one_partition_can_be_released():
    events: list[str] = []
    pull_hold = LongPolling(10)
    one, two = Queue(), Queue()
    add(pull_hold, one, Waiting(events, "one"), 60_000)
    add(pull_hold, two, Waiting(events, "two"), 60_000)
    pull_hold.release(one)
    assert events == ["expire one"]
    pull_hold.close()


@looped
async def test_a_queue_goes_with_its_last_pull_and_not_with_a_collection():
    """Thousands of queues were kept until Python next looked for cycles."""
    pull_hold, partition = LongPolling(1), Queue()
    kept, owner = weakref.ref(partition), object()
    gc.disable()
    try:
        assert add(pull_hold, partition, Waiting([], "a", owner), 60_000)
        del partition
        assert kept() is not None
        pull_hold.forget(owner)
        assert kept() is None
    finally:
        gc.enable()


@looped
async def test_of_those_that_take_the_next_is_woken_while_there_is_more():
    events: list[str] = []
    polling, queues = LongPolling(10), [Queue(), Queue()]
    for name, queue_id, takes in (("a", 0, True), ("b", 1, True), ("c", -1, False)):
        one = Waiting(
            events, name, name, wanted=name == "c", queue_id=queue_id, takes=takes
        )
        assert polling.add("readers", queues, one, 60_000)
    queues[1].grow()
    assert events == ["wake b"], "what b does not find, nobody behind it does"
    queues[0].grow()
    assert events[1:] == ["wake a"]
    polling.wake("readers")
    assert events[2:] == ["wake a", "wake b", "wake c"]
    assert [polling.count("readers", queue_id) for queue_id in (-1, 0, 1)] == [0, 1, 1]
    polling.close()


@looped
async def test_so_many_wait_at_one_queue_and_no_more():
    polling, queues = LongPolling(10, at_queue=1), [Queue(), Queue()]
    for queue_id, may in ((0, True), (0, False), (1, True), (-1, True), (-2, False)):
        one = Waiting([], "", queue_id=queue_id)
        assert polling.add("readers", queues, one, 60_000) is may
    assert len(polling) == 3
    polling.close()


@looped
async def test_queues_that_a_topic_has_got_are_watched_when_the_next_waits():
    events: list[str] = []
    polling, queues = LongPolling(10), [Queue()]
    polling.add("readers", queues, Waiting(events, "a", wanted=False), 60_000)
    more = [*queues, Queue()]
    polling.add("readers", more, Waiting(events, "b", wanted=False), 60_000)
    more[1].grow()
    assert events == ["wake a", "wake b"]
    assert [len(one.watchers) for one in more] == [1, 1]
    polling.release_all(lambda key: key == "others")
    assert len(polling) == 2
    polling.release_all()
    assert (len(polling), polling._lines, [one.watchers for one in more]) == (
        *(0, {}),
        [{}, {}],
    )


@looped
async def test_one_queue_that_is_gone_leaves_no_watch_at_the_others():
    polling, queues = LongPolling(10), [Queue(), Queue(gone=True)]
    with pytest.raises(NoSuchPartitionError):
        polling.add("readers", queues, Waiting([], "a"), 60_000)
    assert (len(polling), polling._lines, queues[0].watchers) == (0, {}, {})


@looped
async def test_who_was_answered_does_not_hear_that_the_time_is_up():
    events: list[str] = []
    polling, queues = LongPolling(10), [Queue()]
    assert polling.count("readers", 0) == 0
    for name, wanted in (("a", True), ("b", False)):
        one = Waiting(events, name, name, wanted=wanted, queue_id=0)
        assert polling.add("readers", queues, one, 30)
    assert polling.count("readers", 0) == 2
    polling.wake("readers", 0)
    assert len(polling) == 1
    await until(lambda: not polling)
    await asyncio.sleep(0.05)
    assert events == ["wake a", "wake b", "expire b"]


@looped
async def test_one_user_leaves_places_to_the_others():
    """Before, 100,000 pulls of one had all others' answered at once."""
    holds, queue, events = LongPolling[Any](10), Queue(), []
    mine = [Waiting(events, number, whose="first") for number in range(10)]
    found = [add(holds, queue, one, 60_000) for one in mine]
    assert found == [True] * 6 + [False] * 4
    assert add(holds, queue, Waiting(events, "other", whose="second"), 60_000)
    assert len(holds) == 7
    for one in mine[:6]:
        assert holds.leave(one)
    assert add(holds, queue, mine[6], 60_000)
    holds.close()
