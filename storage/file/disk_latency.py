"""Watches how long the disk takes: who writes the next block, and when it is too long.

A write that the kernel lets wait, because the disk does not keep up, would stop the
loop and all that it serves. So after one the writing is a thread's, until writes have
been quick for a while.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW_WRITE_S = 0.02
"""A write to memory is quicker, also of the largest block: this one met the disk."""

AWAY_S = 1.0
"""For so long after a slow write, writes are the thread's."""


class DiskLatency:
    """How quickly one log's blocks are written. Loop's thread only, but for `wrote`.

    Args:
        wait_ms: How long a block may be on its way.
        overdue: Called when one has been for longer.
    """

    __slots__ = ("_away_until", "_overdue", "_timer", "_wait_s", "departed")

    def __init__(self, wait_ms: int, overdue: Callable[[], None]) -> None:
        self._wait_s = wait_ms / 1000
        self._overdue = overdue
        self._away_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.departed = 0.0
        """When the last block set out that the loop did not wait for."""

    def is_slow(self, now: float) -> bool:
        """Whether the loop should not write now, by `time.monotonic`."""
        return now < self._away_until

    def wrote(self, began: float) -> None:
        """A write has ended that began then. Any thread may say so."""
        now = time.monotonic()
        if now - began > SLOW_WRITE_S:
            self._away_until = now + AWAY_S

    def depart(self) -> None:
        """A block is on its way, and the loop does not wait for it."""
        self.departed = time.monotonic()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._wait_s, self._overdue)

    def arrive(self) -> None:
        """The block is there, or has failed."""
        assert self._timer is not None
        self._timer.cancel()
