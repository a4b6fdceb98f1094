"""A compacted log is a log; and what compaction leaves of it, in every order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import NoSuchPartitionError
from ropeway.storage.file import FileLogSettings
from tests.contracts.log import TOPIC, LogContract
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
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.compaction.log import CompactedLog


class TestCompactedLog(LogContract):
    @pytest.fixture
    def open_log(self, tmp_path: Path) -> Callable[[], Awaitable[CompactedLog]]:
        async def again() -> CompactedLog:
            log = compacted(tmp_path)
            if TOPIC in log.topics():
                # What was stored before is read from compacted files.
                await log.compact(TOPIC)
            return log

        return again


def test_a_topic_that_is_compacted_later_on_loses_what_is_replaced_from_then_on(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            log.keep_last(TOPIC, compacted=False)
            await log.create(TOPIC, [0])
            plain = log.partition(TOPIC, 0)
            await send(plain, ["a=1", "a=2"])
            with pytest.raises(NoSuchPartitionError, match="is not compacted"):
                await log.compact(TOPIC)
            log.keep_last(TOPIC, compacted=True)
            await log.compact(TOPIC)
            assert await stored(await partition_of(log)) == {1: "a=2"}
            assert await stored(plain) == {0: "a=1", 1: "a=2"}
            log.keep_last(TOPIC, compacted=False)
            assert await stored(await partition_of(log)) == {1: "a=2"}

    asyncio.run(main())


def test_what_was_compacted_goes_when_it_is_old_and_the_topic_is_not_compacted(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        clock = Clock()
        async with closing(compacted(tmp_path, clock=clock)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1"], store_ms=clock.ms)
            await log.compact(TOPIC)
            log.keep_last(TOPIC, compacted=False)
            await log.cleaner.look()
            assert partition.first == 0
            assert SETTINGS.keyless_ms is not None
            clock.ms += SETTINGS.keyless_ms + 1
            await log.cleaner.look()
            assert (partition.first, partition.end) == (1, 1)

    asyncio.run(main())


def test_a_deleted_topic_begins_anew_though_the_process_ended_in_between(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1"])
            await log.compact(TOPIC)
            await log.inner.delete(TOPIC)  # and no further
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            assert (partition.first, partition.end) == (0, 0)
            await send(partition, ["a=2"])
            await log.compact(TOPIC)
            await log.delete(TOPIC)
            assert not any((tmp_path / "compaction").iterdir())
            with pytest.raises(NoSuchPartitionError):
                await log.compact(TOPIC)

    asyncio.run(main())


def test_a_topic_may_be_deleted_while_it_is_compacted(tmp_path: Path) -> None:
    async def main() -> None:
        slow = msgspec.structs.replace(SETTINGS, bytes_per_s=1_000_000)
        async with closing(compacted(tmp_path, slow)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n}={'x' * 50}" for n in range(3000)])
            under_way = asyncio.ensure_future(log.compact(TOPIC))
            await asyncio.sleep(0)
            assert not log.cleaner.is_idle
            await log.delete(TOPIC)
            await asyncio.gather(under_way, return_exceptions=True)
            assert not any((tmp_path / "compaction").iterdir())
            log.keep_last(TOPIC, compacted=True)
            partition = await partition_of(log)
            await send(partition, ["a=1", "a=2"])
            await log.compact(TOPIC)
            assert await stored(partition) == {1: "a=2"}

    asyncio.run(main())


def test_retention_waits_for_compaction_and_for_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        files = FileLogSettings(segment_bytes=1 << 16, retention_ms=0)
        later = 1 << 60
        async with closing(compacted(tmp_path, file_settings=files)) as log:
            partition = await partition_of(log)
            inner = log.inner
            await send(partition, [f"a={'x' * 1000}" for _ in range(200)] + ["b=1"])
            await inner.expire(later)
            assert partition.inner.first == 0
        # Nobody has said yet that the topic is compacted, and still nothing is lost.
        async with closing(compacted(tmp_path, file_settings=files)) as log:
            await log.inner.expire(later)
            partition = await partition_of(log)
            assert partition.inner.first == 0
            await log.compact(TOPIC)
            left = await stored(partition)
            assert list(left) == [199, 200]
            expired = await log.inner.expire(later)
            assert expired.segments > 0
            assert partition.inner.first > 0
            assert await stored(partition) == left
            assert partition.first == 199
        async with closing(compacted(tmp_path, file_settings=files)) as log:
            assert await stored(await partition_of(log)) == left

    asyncio.run(main())
