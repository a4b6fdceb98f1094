"""A disk that takes its time: who waits for it, who does not, and what is refused."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import Flush, LogBusyError, LogUnavailableError
from ropeway.storage.file import FileLogSettings, disk_latency, open_log
from ropeway.storage.file import segment as files
from ropeway.storage.file.segment import bases
from tests.contracts.log import TOPIC, begin, read_all, record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ropeway.storage.file.log import FileLog
    from ropeway.storage.file.segment import Segment

TIMEOUT_S = 60


class Disk:
    """A fault between the log and the disk: it does nothing until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.write_s = 0.0
        self.writers: list[int] = []
        """The threads that wrote blocks."""
        self._pwritev = os.pwritev
        self._fdatasync = os.fdatasync
        self._create = files.create
        monkeypatch.setattr(os, "pwritev", self.pwritev)
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)
        monkeypatch.setattr(files, "create", self.create)

    def pwritev(self, descriptor: int, pieces: Sequence[bytes], place: int) -> int:
        self.writers.append(threading.get_ident())
        time.sleep(self.write_s)
        return self._pwritev(descriptor, pieces, place)

    def fdatasync(self, descriptor: int) -> None:
        self.goes_on.wait(TIMEOUT_S)
        self._fdatasync(descriptor)

    def create(self, directory: Path, base: int, capacity: int) -> Segment:
        self.goes_on.wait(TIMEOUT_S)
        return self._create(directory, base, capacity)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


WAIT_MS = 250
"""What may pass between two lines of a test before the log is overdue."""


async def opened(directory: Path, flush: Flush, wait_ms: int = WAIT_MS) -> FileLog:
    log = open_log(
        directory, FileLogSettings(segment_bytes=1 << 16, flush=flush, wait_ms=wait_ms)
    )
    await log.create(TOPIC, [0])
    return log


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - whatever the condition is
            await asyncio.sleep(0.001)


@pytest.mark.rule(
    "README.md",
    "A message is acknowledged only when it is as durable as the log is set up to make "
    "it, and only then can anybody read it.",
)
@pytest.mark.rule("storage.md", "All state belongs to the event loop's thread.")
def test_nothing_is_done_told_or_read_before_the_disk_has_it(
    tmp_path: Path, disk: Disk
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, "sync", wait_ms=TIMEOUT_S * 1000)
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("before"))
        disk.goes_on.clear()
        disk.writers.clear()
        told: list[int] = []

        def tell(*_: object) -> None:
            told.append(threading.get_ident())

        partition.watch(tell)
        partition.append([record("waits", keys=["key"])], 1000, tell)
        # It is written by now, and not synced.
        await until(lambda: disk.writers)
        for _ in range(3):
            await asyncio.sleep(0.005)
            assert not told
            assert partition.end == 1
            assert await read_all(partition) == ["before"]
        disk.goes_on.set()
        await until(lambda: len(told) == 2)
        assert set(told) == {threading.get_ident()}
        assert await read_all(partition) == ["before", "waits"]
        await log.close()

    asyncio.run(main())


def test_appends_are_refused_while_the_disk_takes_too_long_and_not_after(
    tmp_path: Path, disk: Disk
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, "sync")
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("before"))
        disk.goes_on.clear()
        waiting = begin(partition, record("waits"))
        await asyncio.sleep(0)
        behind = begin(partition, record("waits behind"))
        assert log.overdue_ms() == 0
        await until(lambda: log.overdue_ms() >= WAIT_MS)
        assert log.waiting_bytes()
        refusals = []
        for _ in range(2):
            with pytest.raises(LogBusyError, match=f"busy: .* than {WAIT_MS} ms") as it:
                begin(partition, record("refused"))
            refusals.append(it.value)
        assert refusals[0] is not refusals[1]
        assert await read_all(partition) == ["before"]
        assert not waiting.done()
        disk.goes_on.set()
        assert await asyncio.gather(waiting, behind) == [1, 2]
        await until(lambda: log.overdue_ms() == 0)
        assert await begin(partition, record("after")) == 3
        await log.close()

    asyncio.run(main())


def test_a_log_that_is_closed_while_it_is_overdue_keeps_what_waits(
    tmp_path: Path, disk: Disk
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, "sync")
        disk.goes_on.clear()
        waiting = begin(log.partition(TOPIC, 0), record("waits"))
        await until(log.overdue_ms)
        closing = asyncio.ensure_future(log.close())
        await asyncio.sleep(0)
        disk.goes_on.set()
        await closing
        assert await waiting == 0
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        assert await read_all(log.partition(TOPIC, 0)) == ["waits"]
        await log.close()

    asyncio.run(main())


def test_the_loop_waits_for_one_slow_write_and_a_thread_for_the_next(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_latency, "SLOW_WRITE_S", 0.2)
    monkeypatch.setattr(disk_latency, "AWAY_S", 60.0)

    async def main() -> None:
        log = await opened(tmp_path, "async", wait_ms=10_000)
        partition = log.partition(TOPIC, 0)
        disk.write_s = 0.3
        await begin(partition, record("in the loop"))
        await begin(partition, record("in a thread"))
        me = threading.get_ident()
        assert disk.writers[0] == me
        assert disk.writers[1] != me
        disk.write_s = 0.0
        # As if so long had passed.
        log._writer._pace.away_until = 0.0
        async with asyncio.timeout(TIMEOUT_S):
            while disk.writers[-1] != me:
                await begin(partition, record("again"))
                await asyncio.sleep(0.01)
        found = await read_all(partition)
        assert found[:2] == ["in the loop", "in a thread"]
        assert len(found) == len(disk.writers) == partition.end
        await log.close()

    asyncio.run(main())


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_a_full_segment_waits_for_the_next_one_and_the_loop_goes_on(
    tmp_path: Path, disk: Disk, flush: Flush
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, flush)
        partition = log.partition(TOPIC, 0)
        create = disk.create
        await begin(partition, record("x" * 30_000))
        with pytest.MonkeyPatch.context() as patch:
            gate = threading.Event()

            def slow(directory: Path, base: int, capacity: int) -> Segment:
                gate.wait(TIMEOUT_S)
                return create(directory, base, capacity)

            patch.setattr(files, "create", slow)
            await begin(partition, record("y" * 30_000))
            waiting = begin(partition, record("z" * 30_000))
            await until(log.overdue_ms)
            assert await read_all(partition) == ["x" * 30_000, "y" * 30_000]
            with pytest.raises(LogBusyError):
                begin(partition, record("refused"))
            gate.set()
            assert await waiting == 2
        assert await begin(partition, record("after")) == 3
        await log.close()

    asyncio.run(main())


def test_retention_does_not_end_a_segment_that_a_block_is_on_its_way_to(
    tmp_path: Path, disk: Disk
) -> None:
    """The segment would be sealed without the block."""

    async def main() -> None:
        log = await opened(tmp_path, "sync")
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("before"))
        disk.goes_on.clear()
        waiting = begin(partition, record("waits"))
        await until(log.overdue_ms)
        assert (await log.expire(1 << 50)).segments == 0
        assert bases(tmp_path) == [0]
        disk.goes_on.set()
        assert await waiting == 1
        await log.close()
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        assert await read_all(log.partition(TOPIC, 0)) == ["before", "waits"]
        await log.close()

    asyncio.run(main())


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_closing_keeps_what_was_appended_before_and_refuses_what_comes_after(
    tmp_path: Path, flush: Flush
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, flush)
        partition = log.partition(TOPIC, 0)
        waiting = begin(partition, record("before"))
        await log.close()
        assert await waiting == 0
        with pytest.raises(LogUnavailableError, match="is closed"):
            begin(partition, record("after"))
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        assert await read_all(log.partition(TOPIC, 0)) == ["before"]
        await log.close()

    asyncio.run(main())


def test_a_flush_waits_for_what_is_on_its_way_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, "sync", wait_ms=TIMEOUT_S * 1000)
        partition = log.partition(TOPIC, 0)
        goes_on, write = threading.Event(), os.pwritev

        def held(descriptor: int, pieces: Sequence[bytes], place: int) -> int:
            goes_on.wait(TIMEOUT_S)
            return write(descriptor, pieces, place)

        monkeypatch.setattr(os, "pwritev", held)
        appending = begin(partition, record("waits"))
        flushing = asyncio.ensure_future(log.flush())
        for _ in range(3):
            await asyncio.sleep(0.005)
            assert not flushing.done()
        goes_on.set()
        await flushing
        assert appending.done()
        await log.close()

    asyncio.run(main())


def test_a_flush_waits_for_no_more_than_what_came_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = await opened(tmp_path, "sync", wait_ms=TIMEOUT_S * 1000)
        partition = log.partition(TOPIC, 0)
        fair_queue, write = threading.Semaphore(0), os.pwritev

        def held(descriptor: int, pieces: Sequence[bytes], place: int) -> int:
            fair_queue.acquire(timeout=TIMEOUT_S)
            return write(descriptor, pieces, place)

        monkeypatch.setattr(os, "pwritev", held)
        flushing = []
        for _ in range(2):
            begin(partition, record("waits"))
            flushing.append(asyncio.ensure_future(log.flush()))
            await asyncio.sleep(0)
        fair_queue.release()
        await flushing[0]
        assert partition.end == 1
        assert not flushing[1].done()
        fair_queue.release()
        await flushing[1]
        assert partition.end == 2
        await log.close()

    asyncio.run(main())
