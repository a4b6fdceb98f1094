"""What slow clients of one kind may hold of this process's memory, all together.

Messages that a client was given and has not taken, and requests of which a part has
come. Where it is more than allowed, the connection is closed that has not got on for
longest, until it is not: so a client that gets on is not closed for those that do not.
"""

from __future__ import annotations

from typing import Protocol

import structlog

log = structlog.get_logger(__name__)


class Holder(Protocol):
    """A client's connection."""

    address: str

    def abort(self) -> None:
        """Close it at once."""


class Budget:
    """Counts what connections hold.

    Args:
        limit_bytes: Of all together. What one holds alone may be as much.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[Holder, int] = {}
        """That which has not got on for longest comes first."""
        self.used_bytes = 0

    def hold(self, holder: Holder, size: int) -> None:
        """A connection holds more."""
        self._held[holder] = self._held.get(holder, 0) + size
        self.used_bytes += size
        while self.used_bytes > self._limit_bytes:
            slowest = next(iter(self._held))
            log.warning(
                "connection closed",
                client=slowest.address,
                reason="slow, of too many",
                held_bytes=self._held[slowest],
            )
            self.leave(slowest)
            slowest.abort()

    def let_go(self, holder: Holder, size: int) -> None:
        """A connection has got on: it holds less, and nothing where it was closed."""
        held = self._held.pop(holder, None)
        if held is None:
            return
        size = min(size, held)
        self.used_bytes -= size
        if held > size:
            self._held[holder] = held - size

    def leave(self, holder: Holder) -> None:
        """A connection has ended."""
        self.used_bytes -= self._held.pop(holder, 0)
