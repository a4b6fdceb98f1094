"""The busier the event loop, the longer what can wait does."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.tiered.background_pace import (
    LEAST_SHARE,
    LONGEST_REST_S,
    BackgroundPace,
    Times,
    times,
)


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
def test_a_rest_pays_for_what_was_worked(loop_s, waited_s, worked_s, rest_s) -> None:
    clock = [Times(10.0, 3.0, 4.0, 1.0), Times(10.0, 3.0, 4.0, 1.0)]
    process_s = 4.0 + loop_s + worked_s
    clock.append(Times(11.0, 3.0 + loop_s, process_s, 1.0 + waited_s))
    rests: list[float] = []

    async def sleep(wait_s: float) -> None:
        rests.append(wait_s)

    pace = BackgroundPace(lambda: clock.pop(0), sleep)
    pace.begin()
    asyncio.run(pace.rest())
    assert rests == [pytest.approx(rest_s)]


def test_clocks_count_the_loops_thread_and_the_process_apart() -> None:
    before = times()
    while (now := times()).loop_s == before.loop_s:
        pass
    assert now.wall_s > before.wall_s
    assert now.process_s - before.process_s >= 0
