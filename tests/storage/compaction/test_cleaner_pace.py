"""How long compaction rests."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.compaction.cleaner_pace import CleanerPace, StoppedError


class Time:
    """Time that passes by what is slept, and by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slept: list[float] = []

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.now += seconds

        monkeypatch.setattr(
            "ropeway.storage.compaction.cleaner_pace.asyncio.sleep", sleep
        )


@pytest.mark.parametrize(
    ("share", "bytes_per_s", "worked_s", "used", "rest_s"),
    [
        (0.25, None, 0.01, 1 << 30, 0.03),
        (0.5, None, 0.01, 0, 0.01),
        (1.0, 1000, 0.1, 500, 0.4),
        (1.0, 1000, 0.6, 500, 0.0),
        (1.0, None, 5.0, 1 << 30, 0.0),
    ],
)
def test_it_rests_for_its_share_and_for_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    bytes_per_s: int | None,
    worked_s: float,
    used: int,
    rest_s: float,
) -> None:
    time = Time(monkeypatch)
    pace = CleanerPace(share, bytes_per_s, lambda: time.now)
    pace.begin()
    time.now += worked_s
    asyncio.run(pace.rest(used))
    assert sum(time.slept) == pytest.approx(rest_s)


def test_short_rests_are_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time(monkeypatch)
    pace = CleanerPace(0.5, None, lambda: time.now)
    for _ in range(10):
        pace.begin()
        time.now += 0.0004
        asyncio.run(pace.rest())
    assert sum(time.slept) == pytest.approx(0.004, abs=0.001)
    assert 0 in time.slept


def test_it_ends_work_that_is_to_stop() -> None:
    pace = CleanerPace(1.0, None)
    pace.stopped = True
    with pytest.raises(StoppedError):
        asyncio.run(pace.rest())
