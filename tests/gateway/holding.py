"""What is held back: appends, what is in memory, and the time of delayed messages."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ropeway.gateway.node import schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextmanager
def time_stands(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have no delay be over before the end of the block, however long it takes."""
    with monkeypatch.context() as patch:
        patch.setattr(schedule, "now_ms", lambda: 0)
        patch.setattr(schedule, "_LOOK_EVERY_S", 0.05)
        yield


def have_cold(patch: pytest.MonkeyPatch, kind: type[Any]) -> None:
    """Have nothing of partitions be in memory: a read that may wait finds it alone."""
    original = kind.read_now

    def cold(self: Any, *given: Any) -> Any:
        _, _, _, *rest = given
        return original(self, *given) if len(rest) > 1 else None  # what is warm

    patch.setattr(kind, "read_now", cold)
