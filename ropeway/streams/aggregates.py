"""What grouped streams compute: each aggregate is an accumulator of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Accumulator(Protocol):
    """Sums values up. It is kept between batches, so it can be pickled.

    One that also has `merge(other)`, which takes in all that another one has, can be
    used in sessions that grow together before they are over: see `WindowStream`.
    """

    def add(self, value: Any) -> None:
        """Take a value in."""

    def result(self) -> Any:
        """What all values so far come to."""


class _Selecting:
    """Takes what a function selects of each value."""

    def __init__(self, select: Callable[[Any], Any] | None) -> None:
        self._select = select
        self.total: Any = None
        self.count = 0

    def __getstate__(self) -> dict[str, Any]:
        # The selection is the topology's, and need not be kept for each key.
        return {"total": self.total, "count": self.count}

    def add(self, value: Any) -> None:
        """Take in what is selected of a value, unless that is None."""
        chosen = value if self._select is None else self._select(value)
        if chosen is not None:
            self.count += 1
            self.total = self.first(chosen) if self.count == 1 else self.joined(chosen)

    def first(self, value: Any) -> Any:
        """The total of one value."""
        return value

    def merge(self, other: _Selecting) -> None:
        """Take in all that another one of this kind has."""
        if other.count:
            self.total = self.joined(other.total) if self.count else other.total
            self.count += other.count

    def joined(self, value: Any) -> Any:
        """The total with another value."""
        raise NotImplementedError

    def result(self) -> Any:
        """The total; None without values."""
        return self.total


class Count(_Selecting):
    """How many values there are, of those where the selection is not None."""

    def first(self, value: Any) -> Any:  # noqa: ARG002 - only how many
        """The total of one value."""
        return None

    def joined(self, value: Any) -> Any:  # noqa: ARG002 - only how many
        """The total with another value."""
        return None

    def result(self) -> int:
        """The number."""
        return self.count


class Min(_Selecting):
    """The smallest."""

    def joined(self, value: Any) -> Any:
        """The total with another value."""
        return min(self.total, value)


class Max(_Selecting):
    """The largest."""

    def joined(self, value: Any) -> Any:
        """The total with another value."""
        return max(self.total, value)


class Sum(_Selecting):
    """The sum."""

    def joined(self, value: Any) -> Any:
        """The total with another value."""
        return self.total + value


class Avg(Sum):
    """The mean."""

    def result(self) -> float | None:
        """The mean; None without values."""
        return None if not self.count else self.total / self.count


KINDS: dict[str, type[_Selecting]] = {
    "count": Count,
    "min": Min,
    "max": Max,
    "sum": Sum,
    "avg": Avg,
}
"""The aggregates that have a name. In windows, Spark computes those of numbers."""
