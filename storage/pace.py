"""Work that can wait makes way for those who send and read.

It rests between two pieces for as long as what it did is to be paid with. How long that
is says a gauge: of work that the event loop's thread does itself, or of work that other
threads do.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.common.throttle import Throttle

LEAST_SHARE = 0.1
LONGEST_REST_S = 2.0
_LEAST_S = 0.001
"""What the loop's clock can wait."""
_SCHEDULED = Path("/proc/thread-self/schedstat")
"""Linux: nanoseconds that this thread had a processor, and that it waited for one."""


class StoppedError(Exception):
    """The work is to end; it has changed nothing but what it can begin anew."""


class Gauge(Protocol):
    """Says what a piece of work costs."""

    def begin(self) -> None:
        """A piece of work begins."""

    def due_s(self) -> float:
        """How long to rest for what was done since."""


class OwnShare:
    """Work of the event loop's thread takes a share of its time.

    Args:
        share: The most of it.
        clock: Seconds.
    """

    def __init__(
        self, share: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._rest_of_work = 1 / share - 1
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """See `Gauge`."""
        self._began = self._clock()

    def due_s(self) -> float:
        """See `Gauge`."""
        return (self._clock() - self._began) * self._rest_of_work


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


class WhatIsLeft:
    """Work of other threads takes what the event loop leaves of a processor.

    The loop's thread does what clients wait for; the rest of the process is taken for
    the work. The busier the loop was lately, the smaller the work's part; but never
    less than a tenth, so that it goes on under any load. Where the machine has more to
    do than processors, a loop that waits for one is busy, too.

    Args:
        now: What clocks say.
    """

    def __init__(self, now: Callable[[], Times] = times) -> None:
        self._now = now
        self._rested = self._began = now()

    def begin(self) -> None:
        """See `Gauge`."""
        self._began = self._now()

    def due_s(self) -> float:
        """See `Gauge`."""
        now, rested, began = self._now(), self._rested, self._began
        self._rested = now
        wall_s = now.wall_s - rested.wall_s
        wanted_s = now.loop_s - rested.loop_s + now.waited_s - rested.waited_s
        share = max(1 - (wanted_s / wall_s if wall_s else 1.0), LEAST_SHARE)
        worked_s = now.process_s - began.process_s - (now.loop_s - began.loop_s)
        return max(worked_s, 0) * (1 / share - 1)


class Pace:
    """Rests between pieces of work; rests too short to wait for are saved up.

    Args:
        gauge: What a piece costs.
        throttle: So many bytes a second at most; None without limit.
        sleep: Waits for seconds.
        clock: Seconds.
    """

    def __init__(
        self,
        gauge: Gauge,
        throttle: Throttle | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._gauge = gauge
        self._throttle = throttle
        self._sleep = sleep
        self._clock = clock
        self._owed_s = 0.0
        self.stopped = False
        """Set, it ends the work at its next rest."""

    def begin(self) -> None:
        """A piece of work begins."""
        self._gauge.begin()

    async def rest(self, used_bytes: int = 0) -> None:
        """Wait for as long as is due since `begin`; the next piece begins.

        Args:
            used_bytes: How much was read and written.

        Raises:
            StoppedError: There is to be no more work.
        """
        if self.stopped:
            raise StoppedError
        self._owed_s += min(self._gauge.due_s(), LONGEST_REST_S)
        if self._owed_s >= _LEAST_S:
            began = self._clock()
            await self._sleep(self._owed_s)
            self._owed_s = min(self._owed_s - (self._clock() - began), 0.0)
        else:
            await self._sleep(0)
        if self._throttle is not None:
            await self._throttle.take(used_bytes)
        self.begin()
