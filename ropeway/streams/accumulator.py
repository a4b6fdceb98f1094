"""An accumulator over what is kept of it, which a value that fails leaves as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.streams.records import dump_value, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.streams.aggregates import Accumulator


class Folding:
    """Adds values up.

    Args:
        make: Makes a new accumulator.
        kept: What `dump` gave for an earlier one.
    """

    def __init__(
        self, make: Callable[[], Accumulator], kept: bytes | None = None
    ) -> None:
        self._make = make
        self._kept = kept
        self._since: list[Any] = []
        self._accumulator = self._restored()

    def add(self, value: Any) -> None:
        """Add a value, or raise what the accumulator raises and be as before."""
        try:
            self._accumulator.add(value)
        except Exception:
            self._go_back()
            raise
        self._since.append(value)

    def added(self, value: Any) -> Any:
        """The result with another value; where that fails, all is as before."""
        self.add(value)
        try:
            return self.result()
        except Exception:
            self.undo()
            raise

    def undo(self) -> None:
        """Take back what was added last."""
        self._since.pop()
        self._go_back()

    def merge(self, other: Folding) -> None:
        """Take in all that another one has."""
        # Only those of sessions are merged, and a job without `merge` is refused.
        accumulator: Any = self._accumulator
        accumulator.merge(other._accumulator)
        self._kept, self._since = self.dump(), []

    def result(self) -> Any:
        """What it comes to."""
        return self._accumulator.result()

    @property
    def state(self) -> Any:
        """What is to be kept of the accumulator."""
        return self._accumulator.__getstate__()

    def dump(self) -> bytes:
        """The same as bytes."""
        return dump_value(self.state)

    def _go_back(self) -> None:
        self._accumulator = self._restored()
        for value in self._since:
            self._accumulator.add(value)
        # The next time there is less to do again.
        self._kept, self._since = self.dump(), []

    def _restored(self) -> Accumulator:
        accumulator = self._make()
        if self._kept is not None and (state := load(self._kept)) is not None:
            restore = getattr(accumulator, "__setstate__", vars(accumulator).update)
            restore(state)
        return accumulator
