"""A partition whose log takes records, and writes none of them until it is let go."""

from __future__ import annotations

from typing import Any


class Holding:
    """Holds appends back, and is otherwise the partition that it stands for.

    Args:
        true: That partition.
    """

    def __init__(self, true: Any) -> None:
        self._true = true
        self.held: list[tuple[Any, ...]] = []
        """Arguments of the appends."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    def append(self, *args: Any) -> None:
        """Hold an append back."""
        self.held.append(args)

    def let_go(self) -> None:
        """Append all."""
        for args in self.held:
            self._true.append(*args)
