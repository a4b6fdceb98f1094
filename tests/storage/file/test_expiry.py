"""Retention: by age, by size, and what it leaves of partitions and readers."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.file import FileLogSettings, open_log
from ropeway.storage.file.expiry import Expired, outlived
from ropeway.storage.file.segment import Segment, bases
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.storage.file.damage import unseal

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def test_old_segments_go_and_offsets_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)
        log = open_log(tmp_path, settings, clock)
        await log.create(TOPIC, [0, 1])
        busy, quiet = log.partition(TOPIC, 0), log.partition(TOPIC, 1)
        await begin(quiet, record("quiet", 0, ["k"]))
        for i in range(6):
            await begin(busy, record(f"{i}" * 30_000))
            clock.now_ms += 300
        report = await log.expire(clock.now_ms)
        assert report.segments == 1
        assert (busy.first, busy.end) == (2, 6)
        assert (quiet.first, quiet.end) == (1, 1)
        assert [text[0] for text in await read_all(busy)] == list("2345")
        assert (await quiet.read(0, 1, 1)).records == 0
        assert await busy.offset_at(0) == 2
        assert await log.query(TOPIC, "k", 0, 9999, 9) == []
        assert await log.expire(clock.now_ms) == Expired(0, 0)
        await log.close()

        log = open_log(tmp_path, settings, clock)
        busy, quiet = log.partition(TOPIC, 0), log.partition(TOPIC, 1)
        assert (busy.first, busy.end) == (2, 6)
        assert (quiet.first, quiet.end) == (1, 1)
        assert await begin(quiet, record("again")) == 1
        await log.close()

    asyncio.run(main())


def test_an_active_segment_that_is_too_old_goes_too(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)
        log = open_log(tmp_path, settings, clock)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("a"), record("b"))
        assert (await log.expire(clock.now_ms + 1000)).segments == 0
        assert len(log._segments.all) == 1
        assert (await log.expire(clock.now_ms + 1001)).segments == 1
        assert (partition.first, partition.end) == (2, 2)
        assert await begin(partition, record("c")) == 2
        await log.close()
        log = open_log(tmp_path, settings, clock)
        partition = log.partition(TOPIC, 0)
        assert (partition.first, partition.end) == (2, 3)
        assert await read_all(partition) == ["c"]
        await log.close()

    asyncio.run(main())


def test_a_segment_without_records_is_not_ended_however_old_it_is(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        for _ in range(2):
            assert (await log.expire(1 << 50)).segments == 0
            assert bases(tmp_path) == [0]
        await log.close()

    asyncio.run(main())


def test_without_an_age_limit_no_segment_is_too_old(tmp_path: Path) -> None:
    async def main() -> None:
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=None)
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        await begin(log.partition(TOPIC, 0), record("a"))
        assert (await log.expire(1 << 50)).segments == 0
        assert bases(tmp_path) == [0]
        await log.close()

    asyncio.run(main())


def test_the_size_of_all_segments_is_bounded(tmp_path: Path) -> None:
    async def main() -> None:
        settings = FileLogSettings(
            segment_bytes=1 << 16, retention_ms=None, retention_bytes=140_000
        )
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        for i in range(10):
            await begin(partition, record(f"{i}" * 30_000))
        report = await log.expire(0)
        assert report.segments == 3
        assert partition.first == 6
        assert [text[0] for text in await read_all(partition)] == list("6789")
        await log.close()

    asyncio.run(main())


def test_a_reader_that_was_waiting_goes_on_after_what_was_dropped(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        settings = FileLogSettings(
            segment_bytes=1 << 16, retention_bytes=70_000, tail_bytes=0
        )
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        for i in range(6):
            await begin(log.partition(TOPIC, 0), record(f"{i}" * 30_000))
        await log.close()
        log = open_log(tmp_path, settings)
        partition = log.partition(TOPIC, 0)
        reading = asyncio.ensure_future(partition.read(0, 1, 1))
        await asyncio.gather(reading, log.expire(0))
        assert reading.result().next_offset in (1, 5, 3)
        assert (await partition.read(0, 1, 1)).next_offset == partition.first + 1
        await log.close()

    asyncio.run(main())


def test_records_of_a_topic_that_is_kept_longer_outlive_age_and_size(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        clock = Clock()
        settings = FileLogSettings(
            segment_bytes=1 << 16,
            retention_ms=1000,
            retention_bytes=1 << 17,
            kept_ms={"kept": 10_000, "absent": 99_000},
        )
        log = open_log(tmp_path, settings, clock)
        await log.create(TOPIC, [0])
        await log.create("kept", [0])
        busy, kept = log.partition(TOPIC, 0), log.partition("kept", 0)
        await begin(kept, record("waits"))
        for i in range(8):
            await begin(busy, record(f"{i}" * 30_000))
        clock.now_ms += 9000
        assert (await log.expire(clock.now_ms)).segments == 0
        assert kept.first == 0
        clock.now_ms += 2000
        assert (await log.expire(clock.now_ms)).segments > 0
        assert kept.first == kept.end == 1
        await log.close()

    asyncio.run(main())


def test_what_is_needed_stays_until_it_is_not(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)
        log = open_log(tmp_path, settings, clock)
        await log.create(TOPIC, [0, 1])
        partition = log.partition(TOPIC, 0)
        for i in range(6):
            await begin(partition, record(f"{i}" * 30_000))
        clock.now_ms += 100_000
        log.need(TOPIC, 0, 0)
        log.need("no such topic", 0, 0)
        assert (await log.expire(clock.now_ms)).segments == 0
        log.need(TOPIC, 0, 3)
        assert (await log.expire(clock.now_ms)).segments == 1
        assert partition.first == 2
        log.need(TOPIC, 0, None)
        assert (await log.expire(clock.now_ms)).segments > 0
        await log.close()

    asyncio.run(main())


def test_a_segment_that_ends_where_the_log_is_kept_from_may_go(tmp_path: Path) -> None:
    segments = [Segment(tmp_path, base, 100) for base in (0, 100, 200)]
    for segment in segments:
        segment.written = 100
    for keep_from, gone in ((99, 0), (100, 1), (199, 1), (200, 2), (None, 2)):
        old = outlived(segments, 1000, 1, None, {}, {}, {}, keep_from)
        assert old == segments[:gone]


def test_segments_keep_their_age_over_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)
        log = open_log(tmp_path, settings, clock)
        await log.create(TOPIC, [0])
        for i in range(6):
            await begin(log.partition(TOPIC, 0), record(f"{i}" * 30_000))
        await log.close()
        log = open_log(tmp_path, settings, clock)
        clock.now_ms += 1000
        assert (await log.expire(clock.now_ms)).segments == 0
        clock.now_ms += 1
        assert (await log.expire(clock.now_ms)).segments == 3
        await log.close()

    asyncio.run(main())


def test_a_segment_that_goes_while_a_key_is_looked_up_has_nothing(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings())
        await log.create(TOPIC, [0])
        await begin(log.partition(TOPIC, 0), record("x", 0, ["k"]))
        assert len(await log.query(TOPIC, "k", 0, 1 << 62, 9)) == 1
        for segment in log._segments.all:
            segment.gone = True
        assert await log.query(TOPIC, "k", 0, 1 << 62, 9) == []
        await log.close()

    asyncio.run(main())


def test_a_segment_whose_index_is_missing_goes_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        settings = FileLogSettings(segment_bytes=1 << 16, retention_bytes=70_000)
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        for i in range(6):
            await begin(log.partition(TOPIC, 0), record(f"{i}" * 30_000))
        await log.close()
        log = open_log(tmp_path, settings)
        unseal(tmp_path)
        assert (await log.expire(0)).segments == 2
        assert await begin(log.partition(TOPIC, 0), record("after")) == 6
        await log.close()

    asyncio.run(main())


def test_a_disk_that_does_not_let_segments_go_is_an_error_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    async def main() -> None:
        settings = FileLogSettings(segment_bytes=1 << 16, retention_bytes=70_000)
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        for i in range(6):
            await begin(log.partition(TOPIC, 0), record(f"{i}" * 30_000))
        monkeypatch.setattr("ropeway.storage.file.log.unlink", broken)
        with pytest.raises(LogUnavailableError, match=r"drop segments: .*Read-only"):
            await log.expire(0)
        assert await begin(log.partition(TOPIC, 0), record("after")) == 6
        await log.close()

    asyncio.run(main())


def test_no_room_for_another_segment_is_an_error_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def main() -> None:
        clock = Clock()
        settings = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)
        log = open_log(tmp_path, settings, clock)
        await log.create(TOPIC, [0])
        await begin(log.partition(TOPIC, 0), record("a"))
        with monkeypatch.context() as patch:
            patch.setattr("ropeway.storage.file.segment.create", full)
            with pytest.raises(LogUnavailableError, match=r"begin a segment: .*No spa"):
                await log.expire(clock.now_ms + 1001)
        assert await begin(log.partition(TOPIC, 0), record("b")) == 1
        await log.close()

    asyncio.run(main())
