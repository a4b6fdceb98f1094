"""What waits for its time comes then, or at the latest a moment after the faults.

It is looked at by the times that messages were stored at, where they come to: in their
queue, in the retry topic, among those that were given up. A node's clock is not set any
more by then, so these say when that was, unless it was set since: what is there at
the first look came before it, whatever it says.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.loop import BEGAN_NS, BEGAN_S
from tests.simulation.model import short

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.model import Handed, Model
    from tests.simulation.node import Clocks

LATE_S = 1.0
"""What docs/timers.md allows a timed message, and a turn of popping may take."""
SLOW_S = 1.5
"""What a slow disk, of which each sync may take 0.4 s, adds to it."""
TIMEOUT_MS, INTERVAL_MS, CHECKS = 1500, 1500, 3
"""When producers are asked how their transactions ended, and how often."""
GIVEN_UP_S = (TIMEOUT_MS + CHECKS * INTERVAL_MS) / 1000
LOOKS_S = 1.5 * (CHECKS + 1)
"""Each question, and giving up, is due by the second, and looked for each second."""
BACK_OFF_S = 10.0
"""When what came back is stored again whose first try met a disk that was slow."""
SET_BACK_S = 10.0
"""A delay level waits for a clock that was set back by less; see `node.schedule`."""


class Waiting(NamedTuple):
    """A message that was acknowledged and has its time."""

    body: bytes
    topic: str
    """Where it comes."""
    broker: int
    asked_s: float
    acked_s: float
    """Between these two its broker looked at the clock."""
    wait_s: float
    late_s: float
    """How late it may be."""
    is_timed: bool = True
    """Whether it has a time of the clock, which a start does not change. A delay level,
    and the questions of a transaction, may wait as long again after a start, and need
    not notice that the clock was set ahead."""


class Lateness:
    """All that waits in a run.

    Args:
        model: Told of what came late.
        clocks: Of brokers, by number.
        is_refused: Whether disks are full or fail: what is put off for a moment then
            waits by the clock of that moment.
    """

    def __init__(
        self, model: Model, clocks: list[Clocks], *, is_refused: bool = False
    ) -> None:
        self._is_refused = is_refused
        self._model = model
        self._clocks = clocks
        self._came: defaultdict[tuple[str, bytes], list[float]] = defaultdict(list)

    def came(
        self, topic: str, body: bytes, broker: int, store_ms: int, now_s: float
    ) -> None:
        """Note what is seen in a topic for the first time.

        Args:
            topic: Where it is.
            body: What it is.
            broker: By whose clock it was stored.
            store_ms: When.
            now_s: When it is seen.
        """
        by_clock_ns = store_ms * 1_000_000 - BEGAN_NS
        ahead_s = self._clocks[broker].most_ahead_s(now_s, now_s)
        stored_s = BEGAN_S + by_clock_ns / 1e9 - ahead_s
        self._came[topic, body].append(min(stored_s, now_s))

    def is_awaited(self, one: Waiting) -> bool:
        """Whether it was not seen, and is worth waiting for."""
        return (
            (one.topic, one.body) not in self._came
            and not self._model.is_unsure(one.acked_s)
            and not self._clocks[one.broker].was_set
        )

    def check(self, waiting: Iterable[Waiting], back_s: float, now_s: float) -> None:
        """See that all came in time.

        Args:
            waiting: What was to come.
            back_s: Since when all works again.
            now_s: When that is asked.
        """
        for one in waiting:
            if self._model.is_unsure(one.acked_s):
                continue
            # What has not come comes later than now.
            times = self._came.get((one.topic, one.body), [now_s])
            clocks = self._clocks[one.broker]
            if one.is_timed:
                put_off_s = back_s if self._is_refused else one.acked_s
                due_s = one.acked_s + clocks.set_back_s(one.asked_s, put_off_s)
            else:
                due_s = max(one.acked_s, back_s) + clocks.set_back_s(
                    one.asked_s, back_s
                )
                due_s += SET_BACK_S if clocks.was_set else 0.0
            due_s += one.wait_s
            self._hold(one.body, min(times), max(due_s, back_s) + one.late_s)

    def check_popped(self, topic: str, handed: Iterable[Handed], back_s: float) -> None:
        """See that what was handed out for a time came back to its group after it."""
        for one in handed:
            stored = [
                at for at in self._came[topic, one.body] if at > one.visible_s - LATE_S
            ]
            came_s = min([one.again_s, *stored])
            due_s = max(one.visible_s, back_s) + BACK_OFF_S
            self._hold(one.body, came_s, due_s + LATE_S + SLOW_S)

    def _hold(self, body: bytes, came_s: float, latest_s: float) -> None:
        if came_s > latest_s:
            self._model.wrong(
                f"late: {short(body)} came {came_s - latest_s:.3f} s later than it may"
            )
