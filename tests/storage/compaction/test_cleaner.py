"""When a partition is compacted, and what it leaves alone."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.compaction.compaction_config import CompactionSettings
from ropeway.storage.compaction.disk import Disk
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import (
    SETTINGS,
    Clock,
    closing,
    compacted,
    partition_of,
    send,
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path


class FullDisk(Disk):
    """A disk that has no room at times."""

    is_full = False

    def create(self, path: Path) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return super().create(path)


PATIENT = CompactionSettings(
    share=1.0,
    bytes_per_s=None,
    dirty_ratio=0.5,
    min_lag_ms=1000,
    max_lag_ms=100_000,
)


def test_it_is_time_when_enough_is_new_or_something_has_waited_for_long(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        clock = Clock()
        async with closing(compacted(tmp_path, PATIENT, clock)) as log:
            partition = await partition_of(log)

            async def end_after_a_look() -> int:
                await log.cleaner.look()
                return partition.clean.now.clean_end

            await send(partition, [f"key-{n}=1" for n in range(10)], clock.ms)
            assert await end_after_a_look() == 0  # too young
            clock.ms += 1001
            assert await end_after_a_look() == 10
            await send(partition, ["key-1=2"], clock.ms)
            clock.ms += 1001
            assert await end_after_a_look() == 10  # too few
            clock.ms += 98_998
            assert await end_after_a_look() == 10
            clock.ms += 1
            assert await end_after_a_look() == 11
            assert len(await stored(partition)) == 10

    asyncio.run(main())


def test_younger_records_are_left_for_who_keeps_up(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        async with closing(compacted(tmp_path, PATIENT, clock)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1", "a=2"], clock.ms - 2000)
            await send(partition, ["a=3", "a=4"], clock.ms - 10)
            await log.cleaner.look()
            assert await stored(partition) == {1: "a=2", 2: "a=3", 3: "a=4"}

    asyncio.run(main())


def test_closing_ends_a_round_that_is_under_way(tmp_path: Path) -> None:
    async def main() -> None:
        slow = msgspec.structs.replace(SETTINGS, bytes_per_s=20_000)
        log = compacted(tmp_path, slow)
        partition = await partition_of(log)
        await send(partition, [f"key-{n}={'x' * 50}" for n in range(3000)])
        under_way = asyncio.ensure_future(log.compact(TOPIC))
        await asyncio.sleep(0)
        assert not log.cleaner.is_idle
        await log.close()
        with pytest.raises(LogUnavailableError, match="being closed"):
            await under_way
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            assert len(await stored(partition)) == 3000

    asyncio.run(main())


def test_reads_go_on_while_rounds_replace_files_under_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            texts = [f"key-{n % 100}={n}" for n in range(2000)]
            await send(partition, texts[:1000])
            done = asyncio.Event()

            async def read_on() -> int:
                reads = 0
                while not done.is_set():
                    seen = await stored(partition)
                    assert all(texts[n] == text for n, text in seen.items())
                    keys = {text.partition("=")[0] for text in seen.values()}
                    assert len(keys) == 100
                    reads += 1
                    await asyncio.sleep(0)  # what is in memory is read at once
                return reads

            readers = [asyncio.ensure_future(read_on()) for _ in range(3)]
            for begin in range(1000, 2000, 100):
                await send(partition, texts[begin : begin + 100])
                await log.compact(TOPIC)
            done.set()
            assert all(await asyncio.gather(*readers))

    asyncio.run(main())


def test_a_clock_that_jumps_loses_no_key(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        async with closing(compacted(tmp_path, PATIENT, clock)) as log:
            partition = await partition_of(log)
            now_ms, wanted = clock.ms, {}
            for number, jump_ms in enumerate((0, 10**11, -(10**9), 5, 10**12)):
                clock.ms = now_ms + jump_ms
                offset = partition.end
                texts = [f"key-{n}={number}" for n in range(number, 10)]
                await send(partition, texts, clock.ms)
                wanted |= {number + at: (offset + at, t) for at, t in enumerate(texts)}
                await log.cleaner.look()
                await log.compact(TOPIC)
                assert await stored(partition) == dict(sorted(wanted.values()))

    asyncio.run(main())


def test_after_a_failure_it_waits_no_longer_because_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        clock, disk = Clock(), FullDisk()
        log = compacted(tmp_path, PATIENT, clock, disk)
        async with closing(log):
            partition = await partition_of(log)
            await send(partition, ["a=1", "a=2"], 0)
            disk.is_full = True
            await log.cleaner.look()
            (status,) = await log.status(TOPIC)
            assert "No space left" in (status.problem or "")
            disk.is_full = False
            await log.cleaner.look()
            assert partition.clean.now.clean_end == 0  # it is too soon
            clock.ms -= 900_000
            await log.cleaner.look()
            assert partition.clean.now.clean_end == 2

    asyncio.run(main())
