"""Reading: what is in memory, what is cold, and in how few pieces it comes."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import MAX_LOOKS, Filter, LogUnavailableError
from ropeway.storage.file import FileLogSettings, open_log
from ropeway.storage.file.reader import OVERHEAD_BYTES, ReadPartition, Tail
from tests.contracts.log import TOPIC, begin, read_all, record, texts
from tests.cycles import none_left

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = FileLogSettings(segment_bytes=1 << 16, flush="sync")


def forget_pages(directory: Path) -> None:
    """Have the kernel drop a log's files from memory."""
    for path in directory.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def test_neighbours_of_one_tick_come_as_one_slice(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0, 1])
        one, other = log.partition(TOPIC, 0), log.partition(TOPIC, 1)
        await asyncio.gather(
            *[begin(p, record(f"{i}")) for i in range(8) for p in (one, other)]
        )
        chunk = one.read_now(0, 32, 1 << 20)
        assert chunk is not None
        assert len(chunk.data) == 1
        assert texts(chunk) == [str(i) for i in range(8)]
        await log.close()

    asyncio.run(main())


def test_cold_records_are_read_by_a_thread_and_then_are_warm(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        words = [f"{i:05}" + "x" * 2000 for i in range(100)]
        for i in range(0, 100, 10):
            await begin(
                log.partition(TOPIC, 0), *[record(w, 1) for w in words[i : i + 10]]
            )
        await log.close()
        forget_pages(tmp_path)
        log = open_log(tmp_path, SETTINGS)
        partition = log.partition(TOPIC, 0)
        assert partition.read_now(0, 32, 1 << 20) is None  # the index is unchecked yet
        async with none_left():
            chunk = await partition.read(0, 30, 1 << 20)
        assert texts(chunk) == words[:30]
        forget_pages(tmp_path)
        assert await read_all(partition) == words
        accept = Filter({1}, lambda data: bytes(data[4:9]) == b"00077")
        forget_pages(tmp_path)
        assert await read_all(partition, 0, accept) == [words[77]]
        again = await partition.read(0, 30, 1 << 20)
        assert texts(again) == words[:30]
        await log.close()

    asyncio.run(main())


def test_a_filtered_read_looks_at_a_bounded_number_of_entries(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 20))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, *[record("x", 1)] * (MAX_LOOKS + 10), record("y", 2))
        nothing = partition.read_now(0, 32, 1 << 20, Filter({2}))
        assert nothing is not None
        assert (nothing.records, nothing.next_offset) == (0, MAX_LOOKS)
        found = partition.read_now(MAX_LOOKS, 32, 1 << 20, Filter({2}))
        assert found is not None
        assert texts(found) == ["y"]
        await log.close()

    asyncio.run(main())


def test_what_was_asked_about_is_not_asked_again_when_the_rest_is_cold(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        words = [f"{i:05}" + "x" * 2000 for i in range(400)]
        for i in range(0, 400, 10):
            await begin(
                log.partition(TOPIC, 0), *[record(w) for w in words[i : i + 10]]
            )
        await log.close()
        forget_pages(tmp_path)
        log = open_log(tmp_path, SETTINGS)
        asked: list[int] = []

        def accept(data: bytes | memoryview) -> bool:
            asked.append(int(bytes(data[4:9])))
            return asked[-1] in (111, 399)

        found = await read_all(log.partition(TOPIC, 0), 0, Filter(accept=accept))
        assert found == [words[111], words[399]]
        assert asked == list(range(400))
        await log.close()

    asyncio.run(main())


def test_what_the_kernel_has_in_memory_is_read_at_once(disk_path: Path) -> None:
    async def main() -> None:
        log = open_log(
            disk_path,
            FileLogSettings(segment_bytes=1 << 16, flush="sync", tail_bytes=0),
        )
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        for text in "abcdef":
            await begin(partition, record(text * 20_000))
        await partition.read(0, 1, 1 << 20)
        for offset in (0, 5):  # in a sealed segment, and in the one that grows
            chunk = partition.read_now(offset, 1, 1 << 20)
            assert chunk is not None
            assert chunk.records == 1
        await log.close()

    asyncio.run(main())


def test_a_filter_is_shown_a_bounded_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropeway.storage.file.reader.MAX_LOOKED_BYTES", 2000)

    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 20))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, *[record("x" * 1000)] * 100)
        chunk = await partition.read(0, 100, 4000, Filter(accept=lambda _: False))
        assert chunk.records == 0
        assert 2 <= chunk.next_offset <= 4
        await log.close()

    asyncio.run(main())


def test_a_disk_that_fails_is_an_error_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        for text in "abcdef":
            await begin(log.partition(TOPIC, 0), record(text * 20_000))
        await log.close()
        log = open_log(tmp_path, SETTINGS)
        partition = log.partition(TOPIC, 0)
        with monkeypatch.context() as patch:
            patch.setattr("ropeway.storage.file.fetcher.fetch", broken)
            with pytest.raises(LogUnavailableError, match=r"cannot read .*Input/outp"):
                await partition.read(0, 1, 1)
        assert (await partition.read(0, 1, 1)).records == 1
        await log.close()

    asyncio.run(main())


def test_times_are_found_in_a_log_that_was_just_opened(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        for number in range(6):
            one = record("x" * 20_000)
            await begin(log.partition(TOPIC, 0), one, store_ms=1000 + 10 * number)
        await log.close()
        for look in range(2):
            forget_pages(tmp_path)
            log = open_log(tmp_path, SETTINGS)
            partition = log.partition(TOPIC, 0)
            if look:
                assert await partition.offset_at(1035) == 4
            assert await partition.store_time(1) == 1010
            await log.close()

    asyncio.run(main())


def test_a_time_is_looked_for_among_what_retention_leaves_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        for number in range(10):
            await begin(partition, record("x"), store_ms=1000 + number)
        entry, asked = ReadPartition._entry, []

        async def dropped(self: ReadPartition, offset: int) -> tuple[int, int] | None:
            asked.append(offset)
            assert len(asked) <= 10, f"it asks again and again: {asked}"
            return None if offset < 6 else await entry(self, offset)

        monkeypatch.setattr(ReadPartition, "_entry", dropped)
        assert await partition.offset_at(0) == 6
        await log.close()

    asyncio.run(main())


def kept_at(tail: Tail, position: int, size: int) -> bytes | None:
    """The bytes at a position, where they are kept."""
    found = tail.records(position, [(0, size, 1)])
    return None if found is None else bytes(found[0][0])


def test_the_newest_blocks_stay_and_the_oldest_go() -> None:
    tail = Tail(8 * (100 + OVERHEAD_BYTES))
    for number in range(20):
        tail.add(number * 1000, bytes([number]) * 100)
    assert kept_at(tail, 19_010, 5) == bytes([19]) * 5
    assert kept_at(tail, 0, 5) is None
    kept = [number for number in range(20) if kept_at(tail, number * 1000, 100)]
    assert kept == list(range(20 - len(kept), 20))
    assert 7 <= len(kept) <= 8


def test_blocks_of_any_size_stay_within_the_limit() -> None:
    tail = Tail(1000)
    for number in range(3):
        tail.add(number * 1000, bytes(600))
        kept = [at for at in range(3) if kept_at(tail, at * 1000, 600)]
        assert kept == [number]


def test_bytes_outside_of_the_kept_blocks_are_not_there() -> None:
    tail = Tail(10_000)
    tail.add(1000, b"abcdef")
    assert kept_at(tail, 1002, 4) == b"cdef"
    for position, size in [(999, 1), (1002, 5), (1006, 1), (2000, 1)]:
        assert kept_at(tail, position, size) is None
