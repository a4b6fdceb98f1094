"""A partition reads each record from where its level says, and never misses one."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ropeway.storage.file.partition import FilePartition
from tests.contracts.log import TOPIC, read_all
from tests.storage.tiered.tiers import QUICK, Faulty, fill, forget_local, running

TEXTS = [f"{at}" for at in range(30)]


@pytest.mark.parametrize(
    ("level", "from_tier"),
    [
        ("DISABLE", False),
        ("NOT_IN_DISK", False),
        ("NOT_IN_MEM", False),
        ("FORCE", True),
    ],
)
def test_the_level_says_whether_the_log_or_the_tier_is_read(
    disk_path, level, from_tier
):
    async def main():
        provider = Faulty()
        settings = msgspec.structs.replace(QUICK, level=level)
        async with running(disk_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            provider.asked.clear()
            assert await read_all(partition) == TEXTS
            assert bool(provider.asked) == from_tier
            await forget_local(log, partition)
            assert partition.first == (30 if level == "DISABLE" else 0)

    asyncio.run(main())


def test_what_is_not_in_memory_is_read_from_the_tier(tmp_path, monkeypatch):
    async def main():
        provider = Faulty()
        settings = msgspec.structs.replace(QUICK, level="NOT_IN_MEM")
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            provider.asked.clear()
            # Whether the page cache has it is the kernel's to say.
            monkeypatch.setattr(
                FilePartition,
                "read_now",
                lambda one, at, *_: None if at < one.end else 1,
            )
            assert await read_all(partition) == TEXTS
            assert provider.asked

    asyncio.run(main())


@pytest.mark.parametrize("level", ["NOT_IN_DISK", "NOT_IN_MEM", "FORCE"])
def test_reads_go_on_over_every_border(tmp_path, level):
    """Segments, a gap in the tier, the log's beginning and its end."""

    async def main():
        provider = Faulty()
        settings = msgspec.structs.replace(QUICK, level=level)
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            for low in range(0, 30, 10):
                await fill(partition, TEXTS[low : low + 10])
                await log.dispatch()
            (flat,) = log.tier_index.flats.values()
            second = flat.segments[1]
            flat.drop(second)
            for offset in range(31):
                chunk = await partition.read(offset, 5, 1 << 20)
                assert chunk.next_offset == min(offset + max(chunk.records, 0), 30)
                assert chunk.records or offset == 30
            assert await read_all(partition) == TEXTS
            flat.add(second)
            await forget_local(log, partition)
            await fill(partition, ["new"])
            found = await read_all(partition)
            assert (found[:30], found[-1]) == (TEXTS, "new")
            flat.drop(second)
            # Nobody has it: reads pass over it.
            assert (await read_all(partition))[:20] == TEXTS[:10] + TEXTS[20:]
            chunk = await partition.read(12, 1, 1)
            assert (chunk.records, chunk.next_offset) == (1, 21)

    asyncio.run(main())
