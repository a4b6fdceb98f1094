"""Partitions that hold appends back, or have nothing in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


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


def have_cold(patch: pytest.MonkeyPatch, kind: type[Any]) -> None:
    """Have nothing of partitions be in memory: a read that may wait finds it alone."""
    original = kind.read_now

    def cold(self: Any, *given: Any) -> Any:
        _, _, _, *rest = given
        return original(self, *given) if len(rest) > 1 else None  # what is warm

    patch.setattr(kind, "read_now", cold)
