"""Percentiles of a histogram are those of the numbers, to two per cent."""

import random

import pytest

from ropeway.gateway.cli.latencies import Latencies


def test_percentiles_are_exact_to_two_per_cent():
    chance = random.Random(7)
    numbers = sorted(chance.lognormvariate(1, 2) for _ in range(5000))
    found = Latencies()
    for number in numbers:
        found.add(number)
    assert found.count == 5000
    assert found.least_ms == numbers[0]
    assert found.most_ms == numbers[-1]
    assert found.mean_ms == pytest.approx(sum(numbers) / 5000)
    for share in (0.5, 0.99, 0.999):
        exact = numbers[int(share * 5000) - 1]
        assert exact <= found.percentile_ms(share) * 1.0001
        assert found.percentile_ms(share) <= exact * 1.0201
    assert sum(count for _, count in found.bars()) == 5000


def test_one_latency_is_all_percentiles():
    found = Latencies()
    found.add(3.0)
    assert [found.percentile_ms(share) for share in (0, 0.5, 1)] == [3.0] * 3
    assert found.bars() == [(4.0, 1)]


def test_without_any_all_is_zero():
    found = Latencies()
    assert (found.mean_ms, found.percentile_ms(0.5), found.bars()) == (0, 0, [])


def test_what_took_no_time_is_counted():
    found = Latencies()
    found.add(0.0)
    assert found.percentile_ms(0.5) == 0.0
