"""How quickly blocks are written, and what follows from it."""

from __future__ import annotations

import asyncio
import time

import pytest

from ropeway.storage.file.disk_latency import AWAY_S, SLOW_WRITE_S, DiskLatency


def test_only_a_slow_write_makes_the_disk_slow_and_not_for_ever() -> None:
    watched = DiskLatency(200, pytest.fail)
    assert watched.slow_s == SLOW_WRITE_S
    now = time.monotonic()
    assert now > watched.away_until
    watched.slow(now)
    assert now < watched.away_until
    assert now + AWAY_S >= watched.away_until


def test_a_block_that_is_on_its_way_for_too_long_is_told_once() -> None:
    async def main() -> None:
        told = asyncio.Event()
        watched = DiskLatency(1, told.set)
        watched.depart()
        async with asyncio.timeout(120):
            await told.wait()
        told.clear()
        watched.arrive()
        watched.depart()
        watched.arrive()
        await asyncio.sleep(0.01)
        assert not told.is_set()

    asyncio.run(main())
