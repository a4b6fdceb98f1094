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
    """How quickly one log's blocks are written. Loop's thread only, but for `slow`.

    Args:
        wait_ms: How long a block may be on its way.
        overdue: Called when one has been for longer.
    """

    __slots__ = ("_overdue", "_timer", "_wait_s", "away_until", "departed", "slow_s")

    def __init__(self, wait_ms: int, overdue: Callable[[], None]) -> None:
        self._wait_s = wait_ms / 1000
        self._overdue = overdue
        self.slow_s = SLOW_WRITE_S
        """A write that takes longer is slow."""
        self.away_until = 0.0
        """Until then, by `time.monotonic`, the loop should not write."""
        self._timer: asyncio.TimerHandle | None = None
        self.departed = 0.0
        """When the last block set out that the loop did not wait for."""

    def slow(self, now: float) -> None:
        """A slow write has ended now. Any thread may say so."""
        self.away_until = now + AWAY_S

    def depart(self) -> None:
        """A block is on its way, and the loop does not wait for it."""
        self.departed = time.monotonic()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._wait_s, self._overdue)

    def arrive(self) -> None:
        """The block is there, or has failed."""
        assert self._timer is not None
        self._timer.cancel()
