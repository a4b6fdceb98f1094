"""How long work rests that can wait."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.common.throttle import Throttle
from ropeway.storage.pace import (
    LEAST_SHARE,
    LONGEST_REST_S,
    OwnShare,
    Pace,
    StoppedError,
    Times,
    WhatIsLeft,
    times,
)


class Time:
    """Time that passes by what is slept, and by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def pace(self, share: float, bytes_per_s: int | None = None) -> Pace:
        def clock() -> float:
            return self.now

        throttle = Throttle(bytes_per_s, clock, self.sleep)
        return Pace(OwnShare(share, clock), throttle, self.sleep, clock)


@pytest.mark.parametrize(("share", "rest_s"), [(0.25, 0.03), (0.5, 0.01), (1.0, 0.0)])
def test_work_of_the_loop_rests_for_its_share(share: float, rest_s: float) -> None:
    time = Time()
    pace = time.pace(share)
    pace.begin()
    time.now += 0.01
    asyncio.run(pace.rest(1 << 30))
    assert sum(time.slept) == pytest.approx(rest_s)


@pytest.mark.parametrize(
    ("share", "worked_s", "took_s"),
    [(1.0, 0.1, 1.6), (1.0, 0.9, 3.6), (0.25, 0.3, 4.8)],
)
def test_it_rests_for_its_bytes_where_the_share_is_less(
    share: float, worked_s: float, took_s: float
) -> None:
    time = Time()
    pace = time.pace(share, 1000)

    async def work() -> None:
        pace.begin()
        for _ in range(4):
            time.now += worked_s
            await pace.rest(500)

    asyncio.run(work())
    assert time.now == pytest.approx(took_s)


def test_short_rests_are_saved_up() -> None:
    time = Time()
    pace = time.pace(0.5)
    for _ in range(10):
        pace.begin()
        time.now += 0.0004
        asyncio.run(pace.rest())
    assert sum(time.slept) == pytest.approx(0.004, abs=0.001)
    assert 0 in time.slept


def test_a_rest_that_was_too_long_is_made_good_by_the_next() -> None:
    time = Time()

    async def sleep(seconds: float) -> None:
        await time.sleep(seconds + 0.002)

    pace = Pace(OwnShare(0.5, lambda: time.now), None, sleep, lambda: time.now)
    for worked_s in (0.01, 0.005):
        time.now += worked_s
        asyncio.run(pace.rest())
    assert time.slept == [pytest.approx(0.012), pytest.approx(0.005)]


def test_it_ends_work_that_is_to_stop() -> None:
    pace = Pace(OwnShare(1.0))
    pace.stopped = True
    with pytest.raises(StoppedError):
        asyncio.run(pace.rest())


@pytest.mark.parametrize(
    ("loop_s", "waited_s", "worked_s", "rest_s"),
    [
        (0.0, 0.0, 0.1, 0.0),
        (0.5, 0.0, 0.1, 0.1),
        (0.2, 0.3, 0.1, 0.1),
        (0.8, 0.0, 0.1, 0.4),
        (0.7, 0.3, 0.1, 0.1 * (1 / LEAST_SHARE - 1)),
        (1.0, 0.0, 0.1, 0.1 * (1 / LEAST_SHARE - 1)),
        (1.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 5.0, LONGEST_REST_S),
    ],
)
def test_work_of_threads_pays_by_how_busy_the_loop_is(
    loop_s: float, waited_s: float, worked_s: float, rest_s: float
) -> None:
    begin = Times(10.0, 3.0, 4.0, 1.0)
    process_s = 4.0 + loop_s + worked_s
    now = Times(11.0, 3.0 + loop_s, process_s, 1.0 + waited_s)
    clock = iter([begin, begin, now, now])
    time = Time()
    pace = Pace(WhatIsLeft(lambda: next(clock)), None, time.sleep)
    pace.begin()
    asyncio.run(pace.rest())
    assert time.slept == [pytest.approx(rest_s)]


def test_clocks_count_the_loops_thread_and_the_process_apart() -> None:
    before = times()
    while (now := times()).loop_s == before.loop_s:
        pass
    assert now.wall_s > before.wall_s
    assert now.process_s - before.process_s >= 0
