"""Windows over event time, and the keys of what comes out of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct


class Windowed(NamedTuple):
    """The key of a window's result."""

    key: Any
    begin_ms: int
    end_ms: int
    """Not included."""


class Tumbling(Struct, frozen=True):
    """Windows of one length, one behind the other."""

    size_ms: int

    def __post_init__(self) -> None:
        check(size_ms=self.size_ms)


class Sliding(Struct, frozen=True):
    """Windows of one length that begin at every step, so that they overlap."""

    size_ms: int
    slide_ms: int

    def __post_init__(self) -> None:
        check(size_ms=self.size_ms, slide_ms=self.slide_ms)
        if self.slide_ms > self.size_ms:
            raise ValueError(
                f"slide_ms is {self.slide_ms}; allowed: up to size_ms, {self.size_ms}"
            )


class Session(Struct, frozen=True):
    """Windows that end when a key has had nothing for a while."""

    gap_ms: int

    def __post_init__(self) -> None:
        check(gap_ms=self.gap_ms)


Window = Tumbling | Sliding | Session


def spans(window: Window, time_ms: int) -> list[tuple[int, int]]:
    """Where windows begin and end that a time is in, the latest first.

    That of a session is what the time alone makes; it grows together with those that it
    touches.
    """
    match window:
        case Tumbling(size_ms):
            begin_ms = time_ms - time_ms % size_ms
            return [(begin_ms, begin_ms + size_ms)]
        case Sliding(size_ms, slide_ms):
            last_ms = time_ms - time_ms % slide_ms
            begins_ms = range(last_ms, time_ms - size_ms, -slide_ms)
            return [(begin_ms, begin_ms + size_ms) for begin_ms in begins_ms]
        case Session(gap_ms):
            return [(time_ms, time_ms + gap_ms)]


class Firing(Struct, frozen=True):
    """When windows give results besides the one when they are over."""

    early_ms: int | None = None
    """At most so often while there is news; by the clock."""
    idle_ms: int | None = None
    """Once nothing has come for so long; by the clock."""

    def __post_init__(self) -> None:
        for name in ("early_ms", "idle_ms"):
            value = getattr(self, name)
            if value is not None and value < MIN_FIRE_MS:
                raise ValueError(
                    f"{name.replace('_', '_fire_')} is {value}; allowed: from "
                    f"{MIN_FIRE_MS}"
                )

    @property
    def tick_ms(self) -> int | None:
        """How often windows are looked at; None where only event time counts."""
        return min((one for one in (self.early_ms, self.idle_ms) if one), default=None)


MIN_FIRE_MS = 100
"""A batch of Spark's takes longer than this."""


def check(**times_ms: int) -> None:
    """Refuse times that are none.

    Raises:
        ValueError: Names the time, what came, and what is allowed.
    """
    for name, value in times_ms.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; allowed: from 1")
