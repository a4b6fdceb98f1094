"""A clock that leaps makes nothing old; one that goes on is believed."""

from __future__ import annotations

from ropeway.storage.tiered.retention_clock import (
    BELIEVED_AFTER_S,
    LEAP_MS,
    RetentionClock,
)

YEAR_MS = 365 * 86_400_000
START_MS = 50 * YEAR_MS


class Clocks:
    """A machine's clock that may be set, and seconds that it has run for."""

    def __init__(self, last_ms: int | None = None) -> None:
        self.wall_ms = START_MS
        self.running_s = 7.0
        self.time = RetentionClock(
            lambda: self.wall_ms, lambda: self.running_s, last_ms
        )

    def wait(self, seconds: float) -> None:
        self.running_s += seconds
        self.wall_ms += int(seconds * 1000)


def test_time_goes_on_and_is_corrected_by_little() -> None:
    clocks = Clocks()
    assert clocks.time.now_ms() == START_MS
    clocks.wait(1e6)
    clocks.wall_ms += LEAP_MS // 2
    assert clocks.time.now_ms() == clocks.wall_ms


def test_a_leap_there_and_back_changes_nothing() -> None:
    clocks = Clocks()
    clocks.wall_ms += 10 * YEAR_MS
    clocks.wait(60)
    assert clocks.time.now_ms() == START_MS + 60_000
    clocks.wall_ms -= 10 * YEAR_MS
    clocks.wait(60)
    assert clocks.time.now_ms() == START_MS + 120_000


def test_a_leap_back_is_believed_and_the_way_forth_again_is_not_at_once() -> None:
    clocks = Clocks()
    clocks.wall_ms -= 10 * YEAR_MS
    assert clocks.time.now_ms() == START_MS - 10 * YEAR_MS
    clocks.wall_ms = START_MS
    assert clocks.time.now_ms() == START_MS - 10 * YEAR_MS


def test_a_leap_that_holds_for_a_day_is_believed() -> None:
    clocks = Clocks()
    clocks.wall_ms += YEAR_MS
    clocks.time.now_ms()
    clocks.wait(BELIEVED_AFTER_S - 1)
    assert clocks.time.now_ms() < START_MS + YEAR_MS
    clocks.wait(1)
    assert clocks.time.now_ms() == clocks.wall_ms
    clocks.wait(60)
    assert clocks.time.now_ms() == clocks.wall_ms


def test_a_leap_while_nobody_looked_is_one_too() -> None:
    clocks = Clocks(last_ms=START_MS - YEAR_MS)
    assert clocks.time.now_ms() == START_MS - YEAR_MS
