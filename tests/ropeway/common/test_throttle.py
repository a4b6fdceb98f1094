"""Work is no faster than it may be."""

import asyncio

from ropeway.common.throttle import Throttle


def test_so_many_bytes_take_so_long():
    async def main():
        now = 100.0

        async def sleep(seconds):
            nonlocal now
            now += seconds

        throttle = Throttle(1000, lambda: now, sleep)
        for _ in range(5):
            await throttle.take(500)
        assert now == 102.0  # the fifth waits for those before it, not for itself
        now += 1000
        before = now
        await throttle.take(500)
        assert now == before, "what was not used is not saved up, and nobody waits"

    asyncio.run(main())


def test_those_who_come_together_wait_one_behind_the_other():
    async def main():
        slept = []

        async def sleep(seconds):
            slept.append(seconds)

        throttle = Throttle(100, lambda: 0.0, sleep)
        await asyncio.gather(*(throttle.take(100) for _ in range(4)))
        assert slept == [1.0, 2.0, 3.0]

    asyncio.run(main())


def test_without_a_limit_nobody_waits():
    async def never(_):
        raise AssertionError

    asyncio.run(Throttle(None, lambda: 0.0, never).take(1 << 40))
