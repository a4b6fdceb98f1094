"""A compacted partition: what is read across both parts, and its ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from tests.contracts.log import TOPIC, texts
from tests.storage.compaction.logs import (
    SETTINGS,
    closing,
    compacted,
    partition_of,
    send,
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_missing_offset_reads_the_next_one_and_all_behind_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1", "b=1", "a=2", "c=1", "b=2", "d=1"])
            await log.compact(TOPIC)
            await send(partition, ["a=3"])
            left = {2: "a=2", 3: "c=1", 4: "b=2", 5: "d=1", 6: "a=3"}
            for offset in range(7):
                wanted = {n: text for n, text in left.items() if n >= offset}
                assert await stored(partition, offset) == wanted
            chunk = await partition.read(0, 3, 1 << 20)
            assert (texts(chunk), chunk.next_offset) == (["a=2", "c=1", "b=2"], 5)
            chunk = await partition.read(0, 32, 12)
            assert (texts(chunk), chunk.next_offset) == (["a=2"], 3)

    asyncio.run(main())


def test_when_nothing_is_left_the_queue_is_empty_and_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        settings = msgspec.structs.replace(SETTINGS, tombstone_ms=0)
        for again in range(2):
            async with closing(compacted(tmp_path, settings)) as log:
                partition = await partition_of(log)
                if not again:
                    await send(partition, ["a=1", "a="])
                await log.compact(TOPIC)
                assert (partition.first, partition.end) == (2, 2)
                assert await stored(partition) == {}
                if again:
                    await send(partition, ["a=2"])
                    assert (partition.first, await stored(partition)) == (2, {2: "a=2"})

    asyncio.run(main())


def test_offsets_are_found_by_time_in_both_parts(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            sent = [f"key-{n % 150}={n}@{1000 + n}" for n in range(450)]
            await send(partition, sent)
            await log.compact(TOPIC)
            await send(partition, [f"new={n}@{2000 + n}" for n in range(5)])
            assert partition.first == 300
            for time_ms, lower, upper in (
                (0, 300, 300),
                (1000, 300, 300),
                (1300, 300, 300),
                (1333, 333, 333),
                (1449, 449, 449),
                (1500, 450, 449),
                (2000, 450, 450),
                (2003, 453, 453),
                (9999, 455, 454),
            ):
                assert await partition.offset_at(time_ms) == lower
                assert await partition.offset_at(time_ms, upper=True) == upper
            assert await partition.store_time(299) is None
            assert await partition.store_time(310) == 1310
            assert await partition.store_time(452) == 2002

    asyncio.run(main())


def test_what_is_in_memory_is_read_at_once_in_both_parts(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n % 300}={n}" for n in range(400)])
            await log.compact(TOPIC)
            await send(partition, ["a=3"])
            offset = 0
            while offset < partition.end:
                waited = await partition.read(offset, 32, 1 << 20)
                found = partition.read_now(offset, 32, 1 << 20)
                if found is not None:  # the kernel may have thrown it out of memory
                    assert texts(found) == texts(waited)
                    assert found.next_offset == waited.next_offset
                offset = waited.next_offset
            for path in (tmp_path / "compaction").rglob("*.index"):
                path.unlink()
            assert partition.read_now(0, 32, 1 << 20) is None

    asyncio.run(main())
