"""What is in hand, as data: who may close it, how far that is, and when it is due."""

from __future__ import annotations

import random

from ropeway.gateway.pop.in_flight import Batch, InFlight, PopQueue
from ropeway.gateway.wire.receipt import Receipt

STAY_MS = 10_000


def queue_of(*batches: Batch) -> tuple[InFlight, PopQueue]:
    in_flight = InFlight(STAY_MS)
    queue = in_flight.queue("g", "t", 0)
    for batch in batches:
        in_flight.add(queue, batch)
        queue.next_offset = batch.offsets[-1] + 1
    return in_flight, queue


def bit(batch: Batch, offset: int) -> int:
    """The bit of a message that is out by its batch's receipt."""
    times = batch.pop_ms, batch.invisible_ms
    return batch.out_by(Receipt(batch.start, *times, 0, 0, "b", 0), offset)


def test_progress_is_the_lowest_message_that_is_open():
    """Min 100, then 102: as in RocketMQ's test of its cache."""
    batch = Batch(100, 1, 20, range(100, 104))
    in_flight, queue = queue_of(batch)
    assert (queue.done_to, queue.buffered) == (100, 4)
    in_flight.close(queue, batch, bit(batch, 101))
    assert queue.done_to == 100
    in_flight.close(queue, batch, bit(batch, 100))
    assert (queue.done_to, queue.buffered) == (102, 2)
    in_flight.close(queue, batch, batch.open)
    assert (queue.done_to, queue.buffered) == (104, 0)
    assert not queue.batches


def test_what_was_never_popped_has_no_progress():
    assert PopQueue("g", "t", 0).done_to is None


def test_a_bit_is_that_of_an_open_message_alone():
    batch = Batch(5, 1, 20, (5, 7, 9))
    queue_of(batch)
    assert [bit(batch, offset) for offset in (4, 5, 6, 7, 9, 10)] == [0, 1, 0, 2, 4, 0]
    batch.open = 0b100
    assert [bit(batch, offset) for offset in (5, 7, 9)] == [0, 0, 4]
    assert (batch.lowest, batch.open_offsets()) == (9, [9])


def test_closing_twice_counts_once():
    batch = Batch(0, 1, 20, range(2))
    in_flight, queue = queue_of(batch)
    in_flight.close(queue, batch, 1)
    in_flight.close(queue, batch, 1)
    assert queue.buffered == 1


def test_a_message_that_is_kept_longer_holds_progress():
    first, second = Batch(0, 1, 20, range(3)), Batch(3, 2, 20, range(3, 6))
    in_flight, queue = queue_of(first, second)
    in_flight.close(queue, first, first.open)
    in_flight.add(queue, Batch(1, 3, 90, (1,)))
    assert queue.done_to == 1
    in_flight.close(queue, second, second.open)
    assert queue.done_to == 1
    in_flight.close(queue, queue.batches[1, 3], 1)
    assert queue.done_to == 6


def test_progress_and_counts_are_right_whatever_is_closed_when():
    chance = random.Random(73)
    in_flight, queue = queue_of()
    queue.next_offset = 0
    open_now: dict[int, Batch] = {}
    for time_ms in range(2000):
        if chance.random() < 0.3:
            start = queue.next_offset
            offsets = range(start, start + chance.randint(1, 4))
            batch = Batch(start, time_ms, 20, offsets)
            in_flight.add(queue, batch)
            queue.next_offset = offsets[-1] + 1
            open_now.update(dict.fromkeys(offsets, batch))
        elif open_now:
            offset = chance.choice(list(open_now))
            batch = open_now.pop(offset)
            in_flight.close(queue, batch, bit(batch, offset))
        assert queue.buffered == len(open_now)
        assert queue.done_to == min(open_now, default=queue.next_offset)


def test_batches_are_given_once_when_their_time_has_come():
    in_flight = InFlight(STAY_MS)
    queue = in_flight.queue("g", "t", 0)
    short, long = Batch(0, 1000, 5000, (0,)), Batch(1, 1000, 60_000, (1,))
    done = Batch(2, 1000, 5000, (2,))
    for batch in (short, long, done):
        in_flight.add(queue, batch)
    in_flight.close(queue, done, 1)
    assert in_flight.take_due(5999) == []
    assert in_flight.take_due(6000) == [(queue, short)]
    assert in_flight.take_due(10_999) == []
    # Staged: it has stayed long enough, and is not visible yet.
    assert in_flight.take_due(11_000) == [(queue, long)]
    assert in_flight.take_due(1 << 50) == []
    in_flight.look_again(queue, long, 70_000)
    assert in_flight.take_due(70_000) == [(queue, long)]


def test_beyond_the_limit_batches_leave_at_once():
    in_flight = InFlight(STAY_MS, most=3)
    queue = in_flight.queue("g", "t", 0)
    first, second = Batch(0, 1000, 60_000, range(3)), Batch(3, 1000, 60_000, (3,))
    in_flight.add(queue, first)
    in_flight.add(queue, second)
    assert in_flight.take_due(1000) == [(queue, second)]
    assert in_flight.buffered == 4
    in_flight.close(queue, first, 0b111)
    in_flight.close(queue, second, 1)
    third = Batch(4, 2000, 60_000, (4,))
    in_flight.add(queue, third)
    assert in_flight.take_due(2000) == []
    assert in_flight.buffered == 1


def test_forgetting_a_group_or_a_topic_leaves_the_others():
    in_flight = InFlight(STAY_MS)
    for group, topic in (("a", "x"), ("a", "y"), ("b", "x")):
        queue = in_flight.queue(group, topic, 0)
        in_flight.add(queue, Batch(0, 1000, 5000, (0,)))
        in_flight.unsaid.add(queue)
    in_flight.forget(group="a", topic="x")
    assert [one.place for one in in_flight] == [("a", "y", 0), ("b", "x", 0)]
    in_flight.forget(topic="x")
    in_flight.forget(group="a")
    assert list(in_flight) == []
    assert in_flight.buffered == 0
    assert not in_flight.unsaid
    assert in_flight.take_due(1 << 50) == []


def test_a_queue_that_was_moved_has_nothing_in_hand():
    in_flight = InFlight(STAY_MS)
    queue = in_flight.queue("g", "t", 0)
    old = Batch(5, 1000, 5000, (5,))
    in_flight.add(queue, old)
    queue.next_offset = 6
    in_flight.empty(queue)
    assert (queue.buffered, queue.done_to, in_flight.buffered) == (0, 6, 0)
    # The same start in the same millisecond: what is left of the old is not the new.
    new = Batch(5, 1000, 5000, (5,))
    in_flight.add(queue, new)
    in_flight.close(queue, old, 1)
    assert queue.batches == {(5, 1000): new}
    assert queue.buffered == 1


def test_what_another_node_leads_now_is_due_here_no_more():
    in_flight = InFlight(STAY_MS)
    in_flight.add(in_flight.queue("g", "t", 0), Batch(0, 1000, 20, range(3)))
    in_flight.clear()
    assert in_flight.take_due(1 << 50) == []
    assert (in_flight.buffered, list(in_flight)) == (0, [])
    assert not in_flight.unsaid


def test_what_leaves_takes_nothing_of_other_queues_with_it():
    in_flight = InFlight(STAY_MS)
    for group, topic, queue_id in (("a", "x", 0), ("a", "x", 1), ("b", "y", 0)):
        queue = in_flight.queue(group, topic, queue_id)
        in_flight.add(queue, Batch(0, 1000, 5000, (0,)))
    in_flight.leave("x", 0)
    assert [one.place for one in in_flight] == [("a", "x", 1), ("b", "y", 0)]
    assert {one.place for one in in_flight.unsaid} == {("a", "x", 1), ("b", "y", 0)}
