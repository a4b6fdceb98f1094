"""An accumulator survives values that it fails at."""

from __future__ import annotations

import pytest

from ropeway.streams.accumulator import Folding
from ropeway.streams.aggregates import Avg, Sum


class Careless:
    """Takes a value in before it looks at it."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int) -> None:
        self.values.append(value)
        if value < 0:
            raise ValueError("below zero")

    def result(self) -> int:
        if sum(self.values) > 99:
            raise ValueError("too much")
        return sum(self.values)


def test_what_fails_is_as_if_it_had_never_come() -> None:
    folding = Folding(Careless, Folding(Careless).dump())
    assert folding.added(1) == 1
    with pytest.raises(ValueError, match="below zero"):
        folding.added(-1)
    assert folding.added(2) == 3
    with pytest.raises(ValueError, match="too much"):
        folding.added(97)
    assert folding.added(3) == 6
    assert folding.state == {"values": [1, 2, 3]}
    assert Folding(Careless, folding.dump()).result() == 6


def test_what_was_added_last_is_taken_back() -> None:
    folding = Folding(Careless)
    folding.add(1)
    folding.add(2)
    folding.undo()
    assert folding.result() == 1


def test_two_become_one() -> None:
    first, second, empty = (Folding(lambda: Avg(None)) for _ in range(3))
    for value in (1, 2):
        first.add(value)
    second.add(9)
    first.merge(second)
    first.merge(empty)
    empty.merge(first)
    assert first.result() == empty.result() == 4
    first.add(8)
    first.undo()
    assert first.result() == 4


class Stateless:
    """Has nothing to keep."""

    def add(self, value: int) -> None:
        """Forget it."""

    def result(self) -> int:
        return 7


def test_one_without_state_is_restored_too() -> None:
    kept = Folding(Stateless).dump()
    assert Folding(Stateless, kept).added(1) == 7
    assert Folding(lambda: Sum(None), None).result() is None
