"""Cold reads leave the event loop to hot work: while there is some, they get a share.

To read from the tier and answer takes as long as several sends, and who reads old
messages asks again at once. So while the log is written to, reads wait here for their
turn. A read leaves a debt of the time that it takes. Each turn of the loop pays off a
share of its own length, and one in which nobody had anything to do pays off all of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Chunk

SHARE = 0.2
"""Of the loop's time, while others have work."""

HOT_S = 0.01
"""So long after the log was last written to, more is taken to come."""

ANSWER_S = 60e-6
"""What is done for a read beside itself, of any size: hearing who asks, answering."""
BYTE_S = 2e-9
"""What is done for each of its bytes: writing them to a socket."""

IDLE_TURN_S = 30e-6
"""A turn of the loop that is no longer had nothing to do: a send takes more."""
LONGEST_S = 5e-3
"""After a long turn, reads that have waited take no more than that at once."""


class LoopShare:
    """Who reads from the tier, in the order in which they came.

    Args:
        written_to: Where the log is written to; it moves while there is hot work.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        written_to: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._written_to = written_to
        self._clock = clock
        self._written = written_to()
        self._hot_until = 0.0
        self._waiting: deque[tuple[Callable[[], Chunk], asyncio.Future[Chunk]]] = (
            deque()
        )
        self._debt_s = 0.0
        """What reads have taken and is not paid off; below 0 it may be taken."""
        self._turn_began = 0.0
        self._looking = False
        """Whether each turn of the loop is looked at: while there is a debt."""

    @property
    def is_free(self) -> bool:
        """Whether a read may be done at once."""
        return not self._waiting and (
            self._debt_s <= 0 or not self._is_hot(self._clock())
        )

    def _is_hot(self, now: float) -> bool:
        written = self._written_to()
        if written != self._written:
            self._written = written
            self._hot_until = now + HOT_S
        return now < self._hot_until

    def do(self, read: Callable[[], Chunk]) -> Chunk:
        """Read at once, and count what it takes; raises what it raises."""
        began = self._clock()
        chunk = read()
        size = sum(map(len, chunk.data))
        self._debt_s += self._clock() - began + ANSWER_S + size * BYTE_S
        if not self._looking:
            self._look_from(began)
        return chunk

    async def take(self, read: Callable[[], Chunk]) -> Chunk:
        """Read as soon as it is its turn; raises what it raises."""
        if self.is_free:
            return self.do(read)
        done: asyncio.Future[Chunk] = asyncio.get_running_loop().create_future()
        self._waiting.append((read, done))
        if not self._looking:
            self._look_from(self._clock())
        return await done

    def _look_from(self, now: float) -> None:
        self._looking = True
        self._turn_began = now
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        now = self._clock()
        turn_s = now - self._turn_began
        hot = self._is_hot(now)
        if turn_s <= IDLE_TURN_S or not hot:
            self._debt_s = min(self._debt_s, 0.0)
        else:
            self._debt_s = max(self._debt_s - SHARE * turn_s, -LONGEST_S)
        while self._waiting and (self._debt_s <= 0 or not hot):
            self._next()
        if not self._waiting:
            self._debt_s = max(self._debt_s, 0.0)
        self._looking = self._debt_s > 0 or bool(self._waiting)
        if self._looking:
            self._look_from(now)

    def _next(self) -> None:
        read, done = self._waiting.popleft()
        if done.done():  # nobody waits for it any more
            return
        try:
            done.set_result(self.do(read))
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)
