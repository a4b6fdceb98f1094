"""A flow: the connections of one principal, or of one address, that share turns."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol


class Waiting(Protocol):
    """A connection that waits for its turn."""

    @property
    def flow(self) -> Flow:
        """Whose turns it shares."""

    @property
    def has_large(self) -> bool:
        """Whether it waits to begin a large request, or to read it to its end."""

    def take_turn(self, now: float, until: float) -> int:
        """Begin requests until a time, or go on reading; says how many were begun."""

    def close(self) -> None:
        """End it: its turn failed."""


class Flow:
    """The connections of one principal, or of one address, that share turns."""

    __slots__ = (
        "__weakref__",
        "_large_is_next",
        "connections",
        "held_back",
        "large",
        "storing_bytes",
        "until",
        "waiting",
        "waiting_bytes",
        "with_large",
    )

    def __init__(self) -> None:
        self.connections: deque[Waiting] = deque()
        """Those that wait for a turn."""
        self.with_large: deque[Waiting] = deque()
        """Likewise, to begin a large request or to read it to its end."""
        self._large_is_next = False
        self.held_back: dict[Waiting, None] = {}
        """Those that get one, and read on, when less waits."""
        self.waiting = 0
        """Requests that wait, on all of them."""
        self.waiting_bytes = 0
        """Their bytes, and those of requests whose work pauses."""
        self.storing_bytes = 0
        """What its turns have appended and the log has not stored."""
        self.large = asyncio.Lock()
        """Held by the one whose request is inflated to something large."""
        self.until = 0.0
        """Until then, its long work has a turn."""

    @property
    def waits(self) -> bool:
        """Whether any connection waits for a turn."""
        return bool(self.connections or self.with_large)

    def add(self, connection: Waiting, *, goes_on: bool = False) -> None:
        """Have a connection wait behind all others, or before all with a large one.

        Args:
            connection: Which one.
            goes_on: It has begun to read a large request, and has the next turn for
                one: so few are there in part, or wait to be begun.
        """
        line = self.with_large if connection.has_large else self.connections
        if goes_on and line is self.with_large:
            line.appendleft(connection)
        else:
            line.append(connection)

    def next(self) -> Waiting:
        """Take the connection whose turn it is out of those that wait.

        Large requests have every other turn, so that nobody waits for all of them.
        """
        large = bool(self.with_large) and (self._large_is_next or not self.connections)
        self._large_is_next = not large
        return (self.with_large if large else self.connections).popleft()
