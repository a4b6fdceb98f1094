"""Spark's side of operators with state, in memory and with a clock of the test's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class State:
    """A value state."""

    def __init__(self) -> None:
        self.kept: tuple | None = None

    def get(self) -> tuple | None:
        return self.kept

    def update(self, value: tuple) -> None:
        self.kept = value

    def clear(self) -> None:
        self.kept = None


class Handle:
    """Keeps states and timers as long as a test wants."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.timers: set[int] = set()

    def getValueState(self, name: str, _schema: str) -> State:  # noqa: N802 - Spark's name
        return self.states.setdefault(name, State())

    def registerTimer(self, time_ms: int) -> None:  # noqa: N802 - Spark's name
        self.timers.add(time_ms)

    def expire(self, until_ms: int, fire: Callable[[], Any]) -> list[Any]:
        """Fire the timers before a time, as Spark does."""
        found = []
        for timer in sorted(one for one in self.timers if one < until_ms):
            found += fire()
            self.timers.discard(timer)
        return found


class Times:
    """What Spark says of a batch's times."""

    def __init__(self, now_ms: int = 0, watermark_ms: int = 0) -> None:
        self._given = SimpleNamespace(now_ms=now_ms, watermark_ms=watermark_ms)

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802 - Spark's name
        return self._given.now_ms

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802 - Spark's name
        return self._given.watermark_ms
