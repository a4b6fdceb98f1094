"""What the checks say of things that are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.simulation.lateness import BACK_OFF_S, LATE_S, SLOW_S, Lateness, Waiting
from tests.simulation.loop import BEGAN_NS, BEGAN_S
from tests.simulation.model import Handed, Model
from tests.simulation.node import Clocks, Node
from tests.simulation.unsynced import Unsynced

BACK_S = BEGAN_S + 20.0
LATEST_S = LATE_S + SLOW_S
BODY = b"timed-0-1"


class Clock(Node):
    """A node whose time of day was set ahead after what is waited for was stored."""

    def __init__(self, ahead_s: float = 0.0) -> None:
        self._clocks = [(0.0, 0)]
        if ahead_s:
            self._clocks.append((BACK_S + 0.1, int(ahead_s * 1e9)))

    def now_s(self) -> float:
        return BACK_S + 100.0


def late(
    came_s: float, waiting: list[Waiting], handed: list[Handed], ahead_s: float = 0.0
) -> list[str]:
    """What is said where a message was stored at a time."""
    trace = SimpleNamespace(note=lambda *_: None)
    model = Model(cast("Any", trace), lambda: BACK_S)
    lateness = Lateness(model, [Clocks([Clock(ahead_s)])])
    store_ms = (BEGAN_NS + int((came_s - BEGAN_S + ahead_s) * 1e9)) // 1_000_000
    lateness.came("there", BODY, 0, store_ms, BACK_S + 100.0)
    lateness.check(waiting, BACK_S, BACK_S + 100.0)
    lateness.check_popped("there", handed, BACK_S)
    return model.violations


def waiting(acked_s: float, wait_s: float, **more: bool) -> Waiting:
    return Waiting(BODY, "there", 0, acked_s, acked_s, wait_s, LATEST_S, **more)


def test_a_timed_message_may_come_a_moment_after_the_faults_or_its_time() -> None:
    for acked_s, due_s in ((BEGAN_S, BACK_S), (BACK_S - 1.0, BACK_S + 4.0)):
        one = waiting(acked_s, 5.0)
        assert not late(due_s + LATEST_S - 0.1, [one], [])
        assert late(due_s + LATEST_S + 0.1, [one], [])[0].startswith("late: timed-0-1")


def test_a_clock_that_was_set_ahead_makes_it_due_at_once_but_not_a_level() -> None:
    came_s = BACK_S + LATEST_S + 1.0
    assert late(came_s, [waiting(BACK_S, 5.0)], [], ahead_s=60.0)
    level = waiting(BACK_S, 65.0, is_timed=False)
    assert not late(came_s, [level], [], ahead_s=60.0)


def test_what_was_popped_comes_back_by_itself_or_by_being_handed_out_again() -> None:
    visible_s = BACK_S + 3.0
    too_late_s = visible_s + BACK_OFF_S + LATEST_S + 0.1
    again_late = Handed(BODY, visible_s, too_late_s)
    assert not late(visible_s, [], [again_late])
    assert late(too_late_s, [], [again_late])
    assert not late(too_late_s, [], [Handed(BODY, visible_s, visible_s)])


def test_a_record_may_be_shown_once_it_was_synced_and_its_like_before() -> None:
    record, like = b"\0" * 88 + BODY + b"...", b"\1" * 88 + BODY + b"..."
    unsynced = Unsynced()
    unsynced.wrote(7, 3, b"block" + record)
    assert unsynced.shown(b"answer" + record) == [BODY]
    assert not unsynced.shown(b"answer" + like)
    unsynced.synced(7, 2)
    unsynced.synced(8, 3)
    assert unsynced.shown(record)
    unsynced.synced(7, 3)
    assert not unsynced.shown(record)
