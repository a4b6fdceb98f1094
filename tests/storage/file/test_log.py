"""The embedded log meets the contract of logs, in both ways of flushing."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.common.clock import now_ms
from ropeway.storage.api import (
    LogError,
    LogLimitError,
    LogUnavailableError,
    LogUnfitError,
    NoSuchPartitionError,
)
from ropeway.storage.file import FileLog, FileLogSettings, open_log, verify
from tests.contracts.log import TOPIC, LogContract, begin, read_all, record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.api import Flush


@pytest.mark.parametrize("flush", ["async", "sync"])
@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["files", "memory"])
class TestFileLog(LogContract):
    @pytest.fixture
    def open_log(
        self, disk_path: Path, flush: Flush, tail_bytes: int
    ) -> Callable[[], Awaitable[FileLog]]:
        settings = FileLogSettings(
            flush=flush, segment_bytes=1 << 16, tail_bytes=tail_bytes
        )

        async def again() -> FileLog:
            return open_log(disk_path, settings)

        return again


def test_records_beyond_the_limits_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(
            tmp_path, FileLogSettings(segment_bytes=1 << 16, in_flight_bytes=1000)
        )
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        with pytest.raises(LogLimitError, match="record of 3 bytes"):
            begin(partition, record("")._replace(data=b"abc"))
        with pytest.raises(LogLimitError, match="says it has"):
            begin(partition, record("")._replace(data=b"abcdefgh"))
        with pytest.raises(LogLimitError, match="record of 16777217 bytes"):
            begin(partition, record("a" * ((1 << 24) - 3)))
        first = begin(partition, record("a" * 900))
        with pytest.raises(LogUnavailableError, match=r"busy: 904 bytes .* 1000"):
            begin(partition, record("b" * 100))
        assert partition.next_offset == 1
        await first
        assert await begin(partition, record("b" * 100)) == 1
        await log.close()

    asyncio.run(main())


def test_a_block_larger_than_a_segment_gets_one_of_its_size(tmp_path: Path) -> None:
    async def main() -> None:
        settings = FileLogSettings(segment_bytes=1 << 16, tail_bytes=0)
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        sizes = [10, 300_000, 20, 65_000, 100_000, 30]
        for size in sizes:
            await begin(partition, record("x" * size))
        assert [len(text) for text in await read_all(partition)] == sizes
        await log.close()
        log = open_log(tmp_path, settings)
        found = await read_all(log.partition(TOPIC, 0))
        assert [len(text) for text in found] == sizes
        await log.close()
        assert verify(tmp_path).problems == []

    asyncio.run(main())


def test_records_are_stored_at_the_systems_time() -> None:
    assert abs(now_ms() - time.time() * 1000) < 60_000


def test_a_log_that_cannot_be_opened_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "partitions").mkdir()
    for _ in range(2):
        with pytest.raises(LogError, match="cannot open the log"):
            open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
    (tmp_path / "partitions").rmdir()
    asyncio.run(open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16)).close())


def test_a_log_that_is_closed_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        await log.create(TOPIC, [0])
        await log.close()
        closed = pytest.raises(LogUnavailableError, match="is closed")
        with closed:
            log.partition(TOPIC, 0)
        with closed:
            await log.follow(0, 1)
        with closed:
            await log.flush()

    asyncio.run(main())


def test_as_much_may_wait_as_is_allowed(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(in_flight_bytes=1000))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        waiting = [begin(partition, record("x" * 496)) for _ in range(2)]
        with pytest.raises(LogUnavailableError, match=r"busy: 1000 bytes .* 1000"):
            begin(partition, record(""))
        await asyncio.gather(*waiting)
        await log.close()

    asyncio.run(main())


def test_keys_that_wait_count_as_what_they_take(tmp_path: Path) -> None:
    """A message of 33 KB may have 6,553, which take ten times as much."""

    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(in_flight_bytes=1000))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        first = begin(partition, record("", 0, [f"{number}" for number in range(15)]))
        with pytest.raises(LogUnavailableError, match=r"busy: 964 bytes .* 1000"):
            begin(partition, record("b" * 40))
        await first
        assert log._writer.waiting_bytes == 0
        assert await begin(partition, record("b" * 40)) == 1
        await log.close()

    asyncio.run(main())


def test_entries_of_other_formats_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        with pytest.raises(LogUnfitError, match=r"entry format pulsar .* packed"):
            await log.create(TOPIC, [0], entry_format="pulsar")
        with pytest.raises(NoSuchPartitionError):
            log.partition(TOPIC, 0)
        await log.close()

    asyncio.run(main())
