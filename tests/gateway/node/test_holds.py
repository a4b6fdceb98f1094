"""Waiting pulls: woken, timed out, forgotten, and nothing left of them."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from gateway.node.holds import Hold, Holds
from storage.api import NoSuchPartitionError
from tests.remoting import looped, until


class Queue:
    """A partition as far as holds need one."""

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


def hold(events: list[str], name: str, owner: object = None, *, wanted: bool = True):
    def wake() -> bool:
        events.append(f"wake {name}")
        return wanted

    return Hold(owner, wake, lambda: events.append(f"expire {name}"))


@looped
async def test_pulls_are_woken_in_the_order_in_which_they_came():
    events: list[str] = []
    holds, queue = Holds(10), Queue()
    for name in "abc":
        assert holds.add(queue, hold(events, name, wanted=name != "b"), 60_000)
    queue.grow()
    assert events == ["wake a", "wake b", "wake c"]
    assert len(holds) == 1
    queue.grow()
    assert events[3:] == ["wake b"]
    holds.close()
    assert events[4:] == ["expire b"]
    assert not queue.watchers


@looped
async def test_time_is_up_once_and_not_after_a_wake():
    events: list[str] = []
    holds, queue = Holds(10), Queue()
    holds.add(queue, hold(events, "a"), 1)
    holds.add(queue, hold(events, "b", wanted=False), 1)
    queue.grow()
    await until(lambda: "expire b" in events)
    await asyncio.sleep(0.01)
    assert events == ["wake a", "wake b", "expire b"]
    assert len(holds) == 0
    assert not queue.watchers


@looped
async def test_an_owner_takes_its_pulls_along_unanswered():
    events: list[str] = []
    holds = Holds(10)
    one, two = Queue(), Queue()
    for queue in (one, two):
        holds.add(queue, hold(events, "gone", "x"), 60_000)
    holds.add(two, hold(events, "stays", "y"), 60_000)
    holds.forget("x")
    holds.forget("x")
    one.grow()
    two.grow()
    assert events == ["wake stays"]
    assert (len(holds), holds._owned, holds._queues) == (0, {}, {})


@looped
async def test_there_is_a_limit_and_none_waits_after_the_end():
    events: list[str] = []
    holds, queue = Holds(1), Queue()
    assert holds.add(queue, hold(events, "a"), 60_000)
    assert not holds.add(queue, hold(events, "b"), 60_000)
    holds.close()
    assert not holds.add(queue, hold(events, "c"), 60_000)
    assert events == ["expire a"]


@looped
async def test_a_partition_that_is_gone_is_told_and_leaves_nothing():
    holds = Holds(1)
    with pytest.raises(NoSuchPartitionError):
        holds.add(Queue(gone=True), hold([], "a"), 60_000)
    assert (len(holds), holds._queues, holds._owned) == (0, {}, {})


@looped
async def test_pulls_of_one_partition_can_be_released():
    events: list[str] = []
    holds = Holds(10)
    one, two = Queue(), Queue()
    holds.add(one, hold(events, "one"), 60_000)
    holds.add(two, hold(events, "two"), 60_000)
    holds.release(one)
    assert events == ["expire one"]
    holds.close()


@looped
async def test_a_queue_goes_with_its_last_pull_and_not_with_a_collection():
    """Thousands of queues were kept until Python next looked for cycles."""
    holds, partition = Holds(1), Queue()
    kept, owner = weakref.ref(partition), object()
    gc.disable()
    try:
        assert holds.add(partition, hold([], "a", owner), 60_000)
        del partition
        assert kept() is not None
        holds.forget(owner)
        assert kept() is None
    finally:
        gc.enable()
