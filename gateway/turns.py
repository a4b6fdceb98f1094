"""Whose requests are begun when more come than can be worked on.

What comes is begun at once, until a tick has taken long enough. From then on
connections wait for their turn in the order in which they began to, and each turn is a
few requests, so a client that asks for much does not hold up one that asks for little.

How long a request will wait is known from how many do, and how quickly they went so
far. When that is too long, sends are refused as they arrive; and those that waited for
too long after all, when their turn comes. Refusing costs time too: as much as it took
is then given to turns, so that at least half of all time is work, and what is beyond
that waits in the network.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from gateway.node.latencies import SAMPLE_EVERY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.config import LimitsConfig
    from gateway.connection import Connection
    from gateway.node.leadership import Leadership
    from gateway.wire.frame import RawFrame
    from storage.api import Log

TURN_REQUESTS = 16

_TICK_S = 0.01
"""After so long answers are written and others are heard, whatever waits."""

_LONGEST_TICK_S = 0.1
"""The same where hearing others takes longer."""

_FIRST_GUESS_S = 20e-6
"""What a request takes, until it is known: a single send and its share of a tick."""

_LEARNING = 0.25
"""The share of the last tick in what is known."""


class Arrived(NamedTuple):
    """Requests that came together and wait."""

    at: float
    frames: Iterator[RawFrame]
    size_bytes: int
    late: bool = False
    """Whether sends among them have been refused already."""


class Turns:
    """The connections whose requests wait, of all listeners of a server.

    Args:
        limits: How long sends, and how many bytes, may wait.
        log: Where sends go; while it is overdue, they are refused as they arrive.
        leadership: Looked after before anything is begun.
    """

    def __init__(self, limits: LimitsConfig, log: Log, leadership: Leadership) -> None:
        self._log = log
        self._leadership = leadership
        self.wait_s = limits.send_wait_ms / 1000
        self._limit_bytes = limits.waiting_bytes
        self._loop = asyncio.get_running_loop()
        self._connections: deque[Connection] = deque()
        self._tick_over_at = 0.0
        """When this tick has taken long enough; 0 until something has come in it."""
        self._free = True
        """Whether nobody waits, nor the log is overdue; looked at once a tick."""
        self._tick_began = self._worked_until = 0.0
        self._begun = 0
        """Requests begun in the last tick, of those that had waited, if some are left;
        a tick that had not enough to do says nothing of what a request takes."""
        self._each_s = _FIRST_GUESS_S
        """What a request takes, with all that is done meanwhile."""
        self.sampling = False
        """Whether the next request that is begun is timed; who does it resets this."""
        self._sample_at = 0.0
        self.waiting = 0
        """Requests that wait, on all connections."""
        self.waiting_bytes = 0
        """Their bytes."""

    @property
    def full(self) -> bool:
        """Whether so much waits that no more is read where something waits."""
        return self.waiting_bytes > self._limit_bytes

    @property
    def delay_ms(self) -> int:
        """How long sends wait now, if what came now could be too late; or else 0."""
        delay_s = self.waiting * self._each_s
        if delay_s * 2 > self.wait_s:
            return int(delay_s * 1000) or 1
        return self._log.overdue_ms

    def is_free(self) -> bool:
        """Whether what has just come may be begun at once."""
        if not self._tick_over_at:
            self._begin_tick()
            return self._free
        return self._free and time.monotonic() < self._tick_over_at

    def join(self, connection: Connection) -> None:
        """Give a connection a turn behind all others that wait."""
        self._connections.append(connection)
        if not self._tick_over_at:
            self._begin_tick()
        self._free = False

    def _begin_tick(self) -> None:
        self._free = not self._log.overdue_ms
        now = time.monotonic()
        self._leadership.check(now)
        self._sample(now)
        self._tick_over_at = now + _TICK_S
        self._loop.call_soon(self._tick)

    def _sample(self, now: float) -> None:
        if now >= self._sample_at:
            self._sample_at = now + SAMPLE_EVERY_S
            self.sampling = True

    def _tick(self) -> None:
        if not self._connections:
            # A guess that is too high would refuse what could disprove it.
            self._each_s = _FIRST_GUESS_S
            self._tick_over_at = self._tick_began = 0.0
            self._begun = 0
            return
        now = time.monotonic()
        self._leadership.check(now)
        self._sample(now)
        heard_s = now - self._worked_until if self._tick_began else 0.0
        if self._begun:
            each_s = (now - self._tick_began) / self._begun
            self._each_s += (each_s - self._each_s) * _LEARNING
        self._tick_began = now
        self._tick_over_at = now + min(max(heard_s, _TICK_S), _LONGEST_TICK_S)
        begun = 0
        while self._connections and now < self._tick_over_at:
            begun += self._connections.popleft().take_turn(now)
            now = time.monotonic()
        self._begun = begun if self._connections else 0
        self._free = not self._connections and not self._log.overdue_ms
        self._worked_until = now
        self._loop.call_soon(self._tick)
