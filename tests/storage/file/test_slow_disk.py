"""A disk that takes its time: who waits for it, who does not, and what is refused."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from storage.api import Flush, LogBusyError
from storage.file import FileLogSettings, open_log, pace
from storage.file import segment as files
from tests.contracts.log import TOPIC, begin, read_all, record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from storage.file.log import FileLog
    from storage.file.segment import Segment

TIMEOUT_S = 20


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


async def opened(directory: Path, flush: Flush, wait_ms: int = 20) -> FileLog:
    log = open_log(
        directory, FileLogSettings(segment_bytes=1 << 16, flush=flush, wait_ms=wait_ms)
    )
    await log.create(TOPIC, [0])
    return log


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - whatever the condition is
            await asyncio.sleep(0.001)


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
        assert log.overdue_ms == 0
        await until(lambda: log.overdue_ms >= 20)
        refusals = []
        for _ in range(2):
            with pytest.raises(LogBusyError, match=r"busy: .* than 20 ms") as it:
                begin(partition, record("refused"))
            refusals.append(it.value)
        assert refusals[0] is not refusals[1]
        assert await read_all(partition) == ["before"]
        assert not waiting.done()
        disk.goes_on.set()
        assert await asyncio.gather(waiting, behind) == [1, 2]
        await until(lambda: log.overdue_ms == 0)
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
        await until(lambda: log.overdue_ms)
        closing = asyncio.ensure_future(log.close())
        await asyncio.sleep(0)
        disk.goes_on.set()
        await closing
        assert await waiting == 0
        log = open_log(tmp_path)
        assert await read_all(log.partition(TOPIC, 0)) == ["waits"]
        await log.close()

    asyncio.run(main())


def test_the_loop_waits_for_one_slow_write_and_a_thread_for_the_next(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SLOW_WRITE_S", 0.2)
    monkeypatch.setattr(pace, "AWAY_S", 0.5)

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
            await until(lambda: log.overdue_ms)
            assert await read_all(partition) == ["x" * 30_000, "y" * 30_000]
            with pytest.raises(LogBusyError):
                begin(partition, record("refused"))
            gate.set()
            assert await waiting == 2
        assert await begin(partition, record("after")) == 3
        await log.close()

    asyncio.run(main())
