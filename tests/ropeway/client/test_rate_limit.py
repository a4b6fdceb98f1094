"""So many messages a second, of all that share a limit; the clock is the test's."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.client.rate_limit import RateLimit


class Clock:
    """Stands still but for sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_messages_take_their_time_one_after_the_other():
    clock = Clock()

    async def work() -> None:
        limit = RateLimit(10, clock, clock.sleep)
        await limit.spend(5)
        await limit.spend(20)
        clock.now_s += 2.0
        await limit.spend(10)
        # Nobody makes up for an hour in which there was nothing to do.
        clock.now_s += 3600
        await limit.spend(1)
        await limit.spend(0)

    asyncio.run(work())
    assert clock.slept == pytest.approx([0.5, 2.5, 1.5, 0.1])


def test_without_a_limit_nobody_waits():
    clock = Clock()
    asyncio.run(RateLimit(None, clock, clock.sleep).spend(1000))
    assert clock.slept == []
