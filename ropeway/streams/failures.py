"""What a step failed at: it ends the query, or is put aside and sent elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.streams.records import failed_at

if TYPE_CHECKING:
    from ropeway.streams.records import Dead, Record, StepError

TOGETHER = 1000
"""So many records that are put aside are sent together."""


class Failures:
    """Takes what one step fails at.

    Args:
        name: The step's name.
        dead: Where it goes; None ends the query.
    """

    def __init__(self, name: str, dead: Dead | None) -> None:
        self._name = name
        self._dead = dead
        self._failed: list[tuple[Record, StepError]] = []

    def put(self, record: Record, error: Exception) -> None:
        """Put a record aside.

        Raises:
            StepError: There is nowhere for it to go; names the step and the value.
        """
        failure = failed_at(self._name, record[1], error)
        if self._dead is None:
            raise failure from error
        self._failed.append((record, failure))
        if len(self._failed) >= TOGETHER:
            self.send()

    def send(self) -> None:
        """Send what was put aside."""
        if self._dead is not None and self._failed:
            self._dead(self._failed)
            self._failed = []
