"""How the lag of groups went, for plots: of those groups that somebody looked at.

A group is watched from its first look, over all brokers, and for a while after the
last one. For what nobody looked at, there is /metrics.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ropeway.client.errors import RemotingError
from ropeway.gateway.node.backoff import keep_doing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.client.lags import QueueLag
    from ropeway.gateway.http.console import Console

log = structlog.get_logger(__name__)

EVERY_S = 5.0
KEPT = 720
"""Points of a group: an hour."""
WATCHED_FOR_S = 3600.0
MOST_GROUPS = 100
"""Of more, the one that nobody has looked at for longest is given up."""


class Point(NamedTuple):
    """A group at one time."""

    time_ms: int
    lag: int
    done: int
    """The sum of its offsets: how far it has come grows with what it consumes."""


class _Watched:
    """A group that somebody looked at."""

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=KEPT)
        self.looked_at_s = 0.0


class History:
    """The lag of groups over time.

    Args:
        console: Whom to ask.
        clock_s: Seconds that only go forward.
    """

    def __init__(
        self, console: Console, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._clock_s = clock_s
        self._watched: dict[str, _Watched] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch."""
        noting = keep_doing("history of groups", EVERY_S, self.note_all)
        self._task = asyncio.get_running_loop().create_task(noting)

    async def close(self) -> None:
        """Watch no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self, group: str, lags: list[QueueLag]) -> list[Point]:
        """What is known of a group, with what somebody has just asked of it."""
        # Those looked at last are the last.
        watched = self._watched.pop(group, None) or _Watched()
        self._watched[group] = watched
        watched.looked_at_s = self._clock_s()
        if len(self._watched) > MOST_GROUPS:
            del self._watched[next(iter(self._watched))]
        self._note(watched, lags)
        return list(watched.points)

    async def note_all(self) -> None:
        """Add a point to every group that is watched; give up those that nobody is."""
        now_s = self._clock_s()
        for group, watched in list(self._watched.items()):
            if now_s - watched.looked_at_s > WATCHED_FOR_S:
                del self._watched[group]
                continue
            try:
                self._note(watched, await self._console.describe_group(group))
            except RemotingError as error:
                # A gap in the plot says the same.
                log.debug("lag not known", group=group, reason=str(error))

    @staticmethod
    def _note(watched: _Watched, lags: list[QueueLag]) -> None:
        now_ms = time.time_ns() // 1_000_000
        newest = watched.points[-1].time_ms if watched.points else 0
        if now_ms - newest >= EVERY_S * 500:
            lag = sum(one.lag for one in lags)
            done = sum(one.committed for one in lags)
            watched.points.append(Point(now_ms, lag, done))
