"""A log with a tier begins partitions where it is told, and so does the tier."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.tiered.memory import MemoryProvider
from tests.contracts.beginnings import AT, BeginningContract, fill, text_of
from tests.contracts.log import TOPIC, read_all
from tests.storage.tiered.tiers import QUICK, forget_local, tiered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.tiered.log import TieredLog
    from ropeway.storage.tiered.tier_config import ReadLevel


@pytest.mark.parametrize("level", ["NOT_IN_DISK", "NOT_IN_MEM", "FORCE"])
class TestBeginnings(BeginningContract):
    @pytest.fixture
    def open_log(
        self, tmp_path: Path, level: ReadLevel
    ) -> Callable[[], Awaitable[TieredLog]]:
        provider = MemoryProvider()
        settings = msgspec.structs.replace(QUICK, level=level)

        async def again() -> TieredLog:
            log = await tiered(tmp_path, provider, settings)
            await log.dispatch()
            return log

        return again


def test_the_tier_begins_where_the_log_does(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        log = await tiered(tmp_path, provider)
        await log.create(TOPIC, [0], begins={0: AT})
        partition = log.partition(TOPIC, 0)
        await fill(partition, AT, 100)
        await log.dispatch()
        await forget_local(log, partition)
        assert (partition.inner.first, partition.first) == (AT + 100, AT)
        wanted = [text_of(AT, number) for number in range(100)]
        assert (await read_all(partition))[:100] == wanted
        assert await partition.offset_at(0) == AT
        assert await partition.store_time(AT + 5) == 5000
        (found,) = await log.query(TOPIC, f"{AT + 7}", 0, 1 << 40, 5)
        assert found.offset == AT + 7
        await log.close()
        # Without metadata, the tier's listing alone tells what it has.
        (tmp_path / "tier" / "tier.db").unlink()
        log = await tiered(tmp_path, provider)
        partition = log.partition(TOPIC, 0)
        assert partition.first == AT
        assert (await read_all(partition))[:100] == wanted
        await log.close()

    asyncio.run(main())
