"""How long requests are begun in a tick: not so long where much comes behind it.

What is begun in a tick has work done when the tick is over: the log writes and indexes
it, answers leave. And others are heard. Where that takes long, the next ticks are
shorter, so that nobody waits for it for long; where it does not, they grow again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BEHIND_S = 0.02
"""What may come behind a tick. Of CPU time: nobody begins less because other programs
have the processor."""
LEAST = 0.1
"""The shortest tick, of a whole one."""
_MORE = 1.1
"""By so much a tick grows again; it is halved."""


class TickLength:
    """The length of the next tick.

    Args:
        clock: CPU time of the loop's thread, in seconds.
    """

    __slots__ = ("_clock", "_ended_s", "_share")

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._ended_s: float | None = None
        self._share = 1.0

    def ended(self, *, more: bool) -> None:
        """A tick ends; say whether another one comes right behind it."""
        self._ended_s = self._clock() if more else None

    def share(self) -> float:
        """The length of the tick that begins now, of a whole one."""
        if self._ended_s is not None:
            if self._clock() - self._ended_s > BEHIND_S:
                self._share = max(self._share / 2, LEAST)
            else:
                self._share = min(self._share * _MORE, 1.0)
        return self._share
