"""Waits before a message comes again, by its group's policy."""

import pytest

from gateway.node.retry_delay import next_delay_ms
from routing.api import RetryPolicy


@pytest.mark.parametrize(
    ("times", "delay_ms"), [(-1, 10_000), (0, 10_000), (1, 30_000), (99, 7_200_000)]
)
def test_the_default_waits_are_those_of_the_delay_levels(times, delay_ms):
    assert next_delay_ms(RetryPolicy(), times) == delay_ms


@pytest.mark.parametrize(("times", "delay_ms"), [(0, 3), (1, 4), (2, 4), (99, 4)])
def test_waits_of_its_own_end_in_the_last(times, delay_ms):
    assert next_delay_ms(RetryPolicy(delays_ms=(1, 2, 3, 4)), times) == delay_ms
    assert next_delay_ms(RetryPolicy(delays_ms=(7,)), times) == 7


@pytest.mark.parametrize(
    ("times", "delay_ms"),
    [(-1, 5_000), (0, 5_000), (1, 10_000), (3, 40_000), (99, 7_200_000)],
)
def test_exponential_waits_grow_up_to_the_longest(times, delay_ms):
    assert next_delay_ms(RetryPolicy(exponential=True), times) == delay_ms
