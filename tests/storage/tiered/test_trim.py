"""A log with a tier is trimmed: nothing that was given up comes from either."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.tiered.memory import MemoryProvider
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.contracts.trim import TrimContract, TrimmableLog
from tests.storage.tiered.tiers import QUICK, fill, forget_local, running, tiered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.tiered.log import TieredLog
    from ropeway.storage.tiered.tier_config import ReadLevel


@pytest.mark.parametrize("level", ["NOT_IN_DISK", "NOT_IN_MEM", "FORCE"])
class TestTrim(TrimContract):
    @pytest.fixture
    def open_log(
        self, tmp_path: Path, level: ReadLevel
    ) -> Callable[[], Awaitable[TieredLog]]:
        provider = MemoryProvider()
        settings = msgspec.structs.replace(QUICK, level=level)

        async def again() -> TieredLog:
            return await tiered(tmp_path, provider, settings)

        return again

    async def look(self, log: TrimmableLog) -> None:
        await log.dispatch()  # type: ignore[attr-defined]
        await super().look(log)


def test_what_only_the_tier_has_is_given_up_and_deleted_there(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, [f"{at}" for at in range(100)])
            await log.dispatch()
            await forget_local(log, partition)
            assert (partition.inner.first, partition.first) == (100, 0)
            assert await log.trim(TOPIC, {0: 60}, dry_run=True) == {0: 60}
            assert await log.trim(TOPIC, {0: 60}) == {0: 60}
            found = await read_all(partition)
            assert found[:-1] == [f"{at}" for at in range(60, 100)]
            assert await partition.offset_at(0) == 60
            assert await partition.offset_at(0, upper=True) == 60
            assert await partition.store_time(59) is None
            assert await partition.store_time(60) == 61_000
            assert await log.query(TOPIC, "key-59", 0, 1 << 40, 5) == []
            assert len(await log.query(TOPIC, "key-60", 0, 1 << 40, 5)) == 1
            # One segment has records on both sides, and stays.
            assert await log.retire(0) == 0
            await log.trim(TOPIC, {0: 100})
            assert await log.retire(0) == 1
            assert (await read_all(partition))[:-1] == []
            await begin(partition, record("on"))
            assert (await read_all(partition))[-1] == "on"

    asyncio.run(main())


def test_what_retention_has_dropped_here_comes_from_the_tier_after_a_restart(
    tmp_path: Path,
) -> None:
    """It is no trim: before, nothing below the end was read any more."""

    async def main() -> None:
        provider = MemoryProvider()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, [f"{at}" for at in range(100)])
            await log.dispatch()
            log.inner._writer.roll_if_older(1 << 50, 0)
            await log.inner.expire(1 << 50, log.dispatcher.safe_position)
            assert (partition.inner.first, partition.first) == (100, 0)
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            assert (partition.first, partition.end) == (0, 100)
            assert await read_all(partition) == [f"{at}" for at in range(100)]

    asyncio.run(main())
