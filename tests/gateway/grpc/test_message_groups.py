"""Message groups have the queues that RocketMQ's proxy gives them."""

from __future__ import annotations

import pytest

from ropeway.gateway.grpc.message_groups import queue_of


@pytest.mark.parametrize(
    ("group", "in_2", "in_8", "in_1024"),
    [
        ("", 0, 0, 0),
        ("a", 0, 0, 346),
        ("order-17", 1, 3, 380),
        ("größe", 0, 4, 528),
        ("漢字", 1, 1, 1011),
        ("account/4711/eur", 0, 5, 639),
    ],
)
def test_a_group_has_the_queue_that_guava_computes(group, in_2, in_8, in_1024):
    """Hashing.consistentHash(group.hashCode(), queues) of Guava 31.0.1 said these."""
    found = [queue_of(group, queues) for queues in (1, 2, 8, 1024)]
    assert found == [0, in_2, in_8, in_1024]
