"""Aggregates, value by value, and over what is kept between batches."""

from __future__ import annotations

import pickle

import pytest

from ropeway.streams.aggregates import KINDS

VALUES = [3, None, 1, 2]


@pytest.mark.parametrize(
    ("kind", "results"),
    [
        ("count", [1, 1, 2, 3]),
        ("min", [3, 3, 1, 1]),
        ("max", [3, 3, 3, 3]),
        ("sum", [3, 3, 4, 6]),
        ("avg", [3.0, 3.0, 2.0, 2.0]),
    ],
)
def test_an_aggregate_goes_on_from_its_state(kind: str, results: list) -> None:
    found = []
    state = None
    for value in VALUES:
        # The selection is a lambda, which cannot be pickled, and need not be.
        accumulator = KINDS[kind](lambda given: given["n"])
        if state is not None:
            vars(accumulator).update(pickle.loads(state))
        accumulator.add({"n": value})
        found.append(accumulator.result())
        state = pickle.dumps(accumulator.__getstate__())
    assert found == results


def test_nothing_comes_of_nothing() -> None:
    assert {kind: make(None).result() for kind, make in KINDS.items()} == {
        "count": 0,
        "min": None,
        "max": None,
        "sum": None,
        "avg": None,
    }
