"""Back-pressure of one connection: whether requests are begun, and more is read.

No request of a client is begun while the client does not take its answers, nor while it
has too many requests in flight. Nothing is read while requests wait for a turn, nor
while the client has taken more than its quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class FlowControl:
    """Says when a connection pauses, and stops and resumes its transport's reading.

    Args:
        limit: How many requests may be in flight. A connection that has reached it goes
            on when half of them are answered.
    """

    __slots__ = (
        "_is_reading",
        "congested",
        "draining",
        "in_flight",
        "limit",
        "paused",
    )

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._is_reading = True
        self.in_flight = 0
        """Requests that are worked on; those that wait for messages do not count."""
        self.congested = False
        """Whether the client does not take its answers."""
        self.draining = False
        """Whether only what is in flight is still answered."""
        self.paused = False
        """Whether nothing is begun."""

    def look(self) -> bool:
        """Pause or resume, as things are now; tells whether it resumed."""
        if self.draining or self.congested or self.in_flight >= self.limit:
            self.paused = True
        elif self.paused and self.in_flight <= self.limit // 2:
            self.paused = False
            return True
        return False

    def read(self, transport: asyncio.Transport, *, wanted: bool) -> None:
        """Have a transport read where that is wanted and nothing is paused."""
        reading = wanted and not self.paused
        if reading == self._is_reading:
            return
        self._is_reading = reading
        if reading:
            transport.resume_reading()
        else:
            transport.pause_reading()
