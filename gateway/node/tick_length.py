"""How long requests are begun in a tick: not so long where much comes behind it.

What is begun in a tick is finished behind it: the log writes and indexes it, answers
leave. Only then is anybody else heard. Where that takes long, the next ticks are
shorter; where it does not, they grow again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BEHIND_S = 0.01
"""What may come behind a tick. Of CPU time: nobody begins less because other programs
have the processor."""
LEAST = 0.1
"""The shortest tick, of a whole one."""
_GROWTH = 1.1
"""How much longer the next tick may be where little came behind the last one."""


class TickLength:
    """Says how long each tick may be.

    Args:
        clock: CPU time of the loop's thread, in seconds.
    """

    __slots__ = ("_clock", "_share", "ended_s")

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._share = 1.0
        self.ended_s: float | None = None
        """When the last tick ended, and what it owed was done, about; None: no other
        comes right behind it."""

    def end(self, owed_s: float = 0.0) -> None:
        """Note that a tick ends, and that another one comes right behind it.

        Args:
            owed_s: What comes behind it and was taken from it beforehand.
        """
        self.ended_s = self._clock() + owed_s

    def begin(self) -> float:
        """Say how long the tick that begins now may be, as a part of a whole one."""
        if self.ended_s is not None:
            if self._clock() - self.ended_s > BEHIND_S:
                self._share = max(self._share / 2, LEAST)
            else:
                self._share = min(self._share * _GROWTH, 1.0)
        return self._share
