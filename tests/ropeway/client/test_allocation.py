"""Who gets which queues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.client.allocation import allocate_averagely
from ropeway.client.message import MessageQueue


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("t", "b", number) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "shares"),
    [
        # What AllocateMessageQueueAveragely gives for client ids a, b, c.
        (9, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
        (8, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (7, [[0, 1, 2], [3, 4], [5, 6]]),
        (3, [[0], [1], [2]]),
        (2, [[0], [1], []]),
        (0, [[], [], []]),
    ],
)
def test_shares_are_runs_and_the_first_are_longer(count, shares):
    got = [allocate_averagely(me, queues(count), ["c", "a", "b"]) for me in "abc"]
    assert [[queue.queue_id for queue in share] for share in got] == shares


@given(st.integers(0, 40), st.sets(st.text("abc12@#", min_size=1), min_size=1))
def test_every_queue_has_exactly_one_reader(count, clients):
    shares = [allocate_averagely(me, queues(count), clients) for me in clients]
    assert sorted(queue for share in shares for queue in share) == queues(count)


def test_queues_of_several_brokers_are_shared_in_their_order():
    mixed = [MessageQueue("t", broker, number) for number in (1, 0) for broker in "ba"]
    share = allocate_averagely("x", mixed, ["x", "y"])
    assert share == [MessageQueue("t", "a", 0), MessageQueue("t", "a", 1)]
