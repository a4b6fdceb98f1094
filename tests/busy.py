"""Somebody who wants every turn that there is, and takes a while for each."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.node.fair_queueing import FairQueue

TURN_S = 0.002
"""Longer than the shortest time that a send may be told to wait."""


class Busy:
    """A connection that always has something to be done.

    Args:
        fair_queue: Whose turns.
    """

    has_large = False

    def __init__(self, fair_queue: FairQueue) -> None:
        self._fair_queue = fair_queue
        self.flow = fair_queue.flow("busy")
        self.turns = 0
        self.longest_s = 0.0
        """CPU time of the loop between two of its turns, at most."""
        self._done_s: float | None = None
        self.ended = False

    def take_turn(self, _now: float, _until: float) -> int:
        """Have a turn, and wait for the next one."""
        if self._done_s is not None:
            self.longest_s = max(self.longest_s, time.thread_time() - self._done_s)
        time.sleep(TURN_S)
        self.turns += 1
        self._done_s = time.thread_time()
        if not self.ended:
            self._fair_queue.join(self)
        return 1

    def close(self) -> None:
        """Want no turn any more."""
        self.ended = True


@contextmanager
def busy(fair_queue: FairQueue) -> Iterator[Busy]:
    """Have somebody wait for turns all the time, until the end of the block."""
    one = Busy(fair_queue)
    fair_queue.join(one)
    try:
        yield one
    finally:
        one.close()
