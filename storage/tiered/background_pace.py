"""Work that can wait leaves the processor to those who send and read.

The event loop's thread does what clients wait for; the rest of the process is taken for
the work. The busier the loop was lately, the smaller the part of a processor that the
work takes; but never less than a tenth, so that it goes on under any load. Where the
machine has more to do than processors, a loop that waits for one is busy, too.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LEAST_SHARE = 0.1
LONGEST_REST_S = 2.0

_SCHEDULED = Path("/proc/thread-self/schedstat")
"""Linux: nanoseconds that this thread had a processor, and that it waited for one."""


class Times(NamedTuple):
    """What clocks say; differences of two of them count."""

    wall_s: float
    loop_s: float
    """CPU time of the event loop's thread."""
    process_s: float
    """CPU time of all threads."""
    waited_s: float
    """How long the event loop's thread had work and no processor."""


def times() -> Times:
    """What they say now. To be called by the loop's thread."""
    return Times(time.monotonic(), time.thread_time(), time.process_time(), _waited_s())


def _waited_s() -> float:
    try:
        return int(_SCHEDULED.read_bytes().split()[1]) / 1e9
    except OSError:  # nobody counts it here
        return 0.0


class BackgroundPace:
    """Rests between pieces of work."""

    def __init__(
        self,
        now: Callable[[], Times] = times,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._rested = self._began = now()

    def begin(self) -> None:
        """A piece of work begins."""
        self._began = self._now()

    async def rest(self) -> None:
        """Wait for as long as what was done since `begin` is to be paid with."""
        now = self._now()
        wall_s = now.wall_s - self._rested.wall_s
        wanted_s = (now.loop_s - self._rested.loop_s) + (
            now.waited_s - self._rested.waited_s
        )
        busy = wanted_s / wall_s if wall_s else 1.0
        share = max(1 - busy, LEAST_SHARE)
        worked_s = (now.process_s - self._began.process_s) - (
            now.loop_s - self._began.loop_s
        )
        self._rested = now
        await self._sleep(min(max(worked_s, 0) * (1 / share - 1), LONGEST_REST_S))
