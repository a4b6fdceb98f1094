"""When requests of a load are due, and how large the last one is."""

import asyncio
import time

import pytest

from ropeway.gateway.cli import loads
from ropeway.gateway.cli.loads import Load, Sends

SENDS = Sends(size=1, batch=10, in_flight=1, rate=None)


@pytest.mark.parametrize(("number", "count"), [(0, 10), (1, 10), (2, 5)])
def test_the_last_batch_has_what_is_left(number, count):
    assert loads._batch(number, Load("t", 25, None, 1), SENDS) == count
    assert loads._batch(number, Load("t", None, 1.0, 1), SENDS) == 10


def test_nothing_is_due_after_the_last():
    now = time.perf_counter()
    found = asyncio.run(loads._due(3, Load("t", 25, None, 1), SENDS, now))
    assert found is None
    over = loads._due(0, Load("t", None, 1.0, 1), SENDS, now - 2)
    assert asyncio.run(over) is None


def test_a_request_that_is_late_counts_from_when_it_was_due():
    began = time.perf_counter() - 5
    slow = SENDS._replace(rate=10.0)
    found = asyncio.run(loads._due(2, Load("t", 100, None, 1), slow, began))
    assert found is not None
    assert found.due == pytest.approx(began + 2)
