"""When queues move by load unasked: rarely enough that none goes back and forth.

`ropeway.client.admin_loads` says which moves would even brokers out now. Here is what
was measured before:

* A broker gives a queue only after it has been too loaded several times in a row.
* After a move all are measured as often again: producers find the queue within 30 s.
* A queue that has moved stays for a while, whatever is measured.

Nothing of it is kept: a node that begins to balance has to measure as often first.

Source: loadBalancerSheddingConditionHitCountThreshold and
loadBalancerSheddingGracePeriodMinutes of Pulsar 4.0's ServiceConfiguration.java.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin_loads import LoadMove
    from ropeway.client.admin_moves import Move
    from ropeway.gateway.pulsar_config import BalanceConfig


class Balance:
    """What was measured and moved by load, as far as it bears on the next move.

    Args:
        config: How often, and for how long.
        clock_s: Seconds that only go forward.
    """

    def __init__(self, config: BalanceConfig, clock_s: Callable[[], float]) -> None:
        self.measured = 0
        """How often loads were measured."""
        self.failed = 0
        """How often that failed, or a move did."""
        self.moves = 0
        """Queues that were moved."""
        self._config = config
        self._clock_s = clock_s
        self._giver: str | None = None
        self._hits = 0
        self._moved_s: dict[tuple[str, int], float] = {}

    def due(self, planned: Sequence[LoadMove]) -> list[LoadMove]:
        """Those of the moves that help now of which one may be made, the best first.

        Args:
            planned: What a measurement says, all of one broker; none where all is even.
        """
        self.measured += 1
        giver = planned[0].move.giver if planned else None
        self._hits = self._hits + 1 if giver is not None and giver == self._giver else 1
        self._giver = giver
        if giver is None or self._hits < self._config.hits:
            return []
        long_ago_s = self._clock_s() - self._config.grace_ms / 1000
        self._moved_s = {
            queue: moved_s
            for queue, moved_s in self._moved_s.items()
            if moved_s > long_ago_s
        }
        return [one for one in planned if _queue(one.move) not in self._moved_s]

    def note(self, move: Move) -> None:
        """Remember a queue that was moved."""
        self.moves += 1
        self._moved_s[_queue(move)] = self._clock_s()
        self.forget()

    def forget(self) -> None:
        """Begin to measure anew: what was measured before bears on nothing now."""
        self._giver = None
        self._hits = 0


def _queue(move: Move) -> tuple[str, int]:
    """A queue wherever it is: of one topic, a partition is one queue."""
    return move.topic, move.partition
