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
        turns: Whose turns.
    """

    def __init__(self, turns: FairQueue) -> None:
        self._turns = turns
        self.flow = turns.flow("busy")
        self.turns = 0
        self.ended = False

    def take_turn(self, _now: float, _until: float) -> int:
        """Have a turn, and wait for the next one."""
        time.sleep(TURN_S)
        self.turns += 1
        if not self.ended:
            self._turns.join(self)
        return 1

    def close(self) -> None:
        """Want no turn any more."""
        self.ended = True


@contextmanager
def busy(turns: FairQueue) -> Iterator[Busy]:
    """Have somebody wait for turns all the time, until the end of the block."""
    one = Busy(turns)
    turns.join(one)
    try:
        yield one
    finally:
        one.close()
