"""Group commit when the disk fails: what is answered, and what is left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import Flush, LogUnavailableError, OutcomeUnknownError
from ropeway.storage.file import FileLogSettings, open_log, verify
from ropeway.storage.file.partition import BLOCK_BYTES
from tests.contracts.log import TOPIC, begin, read_all, record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ropeway.storage.api import LogError

BOTH = pytest.mark.parametrize("flush", ["async", "sync"])


class Disk:
    """A fault between the log and the disk: it takes so many bytes, then no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.sync_fails = False
        self._pwritev = os.pwritev
        self._pwrite = os.pwrite
        self._fdatasync = os.fdatasync
        monkeypatch.setattr(os, "pwritev", self.pwritev)
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)

    def pwritev(self, descriptor: int, pieces: Sequence[bytes], place: int) -> int:
        if self.room is None:
            return self._pwritev(descriptor, pieces, place)
        return self.pwrite(descriptor, b"".join(pieces), place)

    def pwrite(self, descriptor: int, data: bytes, place: int) -> int:
        if self.room is None or not any(data):  # zeros go where bytes are already
            return self._pwrite(descriptor, data, place)
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._pwrite(descriptor, data[: self.room], place)
        self.room -= taken
        return taken

    def fdatasync(self, descriptor: int) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fdatasync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@BOTH
@pytest.mark.parametrize("room", [0, 1, 63, 64, 100, 150])
def test_a_full_disk_fails_the_block_and_later_ones_work(
    tmp_path: Path, disk: Disk, flush: Flush, room: int
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16, flush=flush))
        await log.create(TOPIC, [0, 1])
        partitions = [log.partition(TOPIC, number) for number in (0, 1)]
        await begin(partitions[0], record("before"))
        disk.room = room
        failing = [begin(one, record("x" * 50)) for one in partitions for _ in range(3)]
        await asyncio.sleep(0)
        failing.append(begin(partitions[0], record("behind")))
        for one in await asyncio.gather(*failing, return_exceptions=True):
            assert isinstance(one, LogUnavailableError)
            assert "No space left on device; nothing was stored" in str(one)
        assert [one.next_offset for one in partitions] == [1, 0]
        disk.room = None
        assert await begin(partitions[0], record("after")) == 1
        assert await begin(partitions[1], record("other")) == 0
        await log.close()
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        assert log.recovery.dropped == []
        assert await read_all(log.partition(TOPIC, 0)) == ["before", "after"]
        assert await read_all(log.partition(TOPIC, 1)) == ["other"]
        await log.close()
        assert verify(tmp_path).problems == []

    asyncio.run(main())


def test_a_failed_append_may_be_tried_again_from_its_callback(
    tmp_path: Path, disk: Disk
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        again = asyncio.get_running_loop().create_future()

        def done(offset: int, error: LogError | None) -> None:
            if error is None:
                again.set_result(offset)
            else:
                disk.room = None
                partition.append([record("a")], 1, done)

        disk.room = 10
        partition.append([record("a")], 1, done)
        assert await again == 0
        assert await read_all(partition) == ["a"]
        await log.close()

    asyncio.run(main())


@BOTH
def test_a_failed_sync_makes_the_log_read_only(
    tmp_path: Path, disk: Disk, flush: Flush
) -> None:
    async def main() -> None:
        log = open_log(
            tmp_path,
            FileLogSettings(segment_bytes=1 << 16, flush=flush, flush_interval_ms=1),
        )
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("kept"))
        await log.flush()
        disk.sync_fails = True
        if flush == "sync":
            with pytest.raises(OutcomeUnknownError, match="Input/output error"):
                await begin(partition, record("unknown"))
            assert partition.end == 1
        else:
            await begin(partition, record("unknown"))
            with pytest.raises(OutcomeUnknownError, match="Input/output error"):
                await log.flush()
            # The kernel forgets what it failed to write, and says that all is well.
            disk.sync_fails = False
            with pytest.raises(OutcomeUnknownError, match="Input/output error"):
                await log.flush()
        disk.sync_fails = False
        with pytest.raises(LogUnavailableError, match="read-only until it is opened"):
            begin(partition, record("refused"))
        assert (await read_all(partition))[0] == "kept"
        await log.close()

    asyncio.run(main())


CHILD = """
import asyncio, pathlib, resource, struct, sys
from ropeway.storage.api import LogUnavailableError, Record
from ropeway.storage.file import FileLogSettings, open_log

async def main():
    log = open_log(pathlib.Path(sys.argv[1]), FileLogSettings(segment_bytes=1 << 16))
    await log.create("orders", [0])
    partition = log.partition("orders", 0)

    async def append(size):
        future = asyncio.get_running_loop().create_future()
        data = struct.pack(">i", size) + bytes(size - 4)
        def done(offset, error):
            future.set_result(offset) if error is None else future.set_exception(error)
        partition.append([Record(data, 0, ())], 1000, done)
        return await future

    assert await append(1000) == 0
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limit[1]))
    try:
        await append(1 << 17)
    except LogUnavailableError as error:
        print(error)
    assert await append(1000) == 1
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert await append(1 << 17) == 2
    assert await append(1000) == 3
    await log.close()

asyncio.run(main())
"""


def test_no_room_for_a_segment_is_an_answer_and_passes(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "cannot write: File too large; nothing was stored" in child.stdout
    assert verify(tmp_path).records == 4
    assert verify(tmp_path).problems == []


def test_a_callback_that_raises_does_not_reach_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)

        def bad(offset: int, error: LogError | None) -> None:
            raise RuntimeError("a fault of the caller's")

        partition.append([record("a")], 1, bad)
        assert await begin(partition, record("b")) == 1
        await log.close()

    asyncio.run(main())
    assert "a fault of the caller's" in capsys.readouterr().out


@BOTH
def test_what_waits_behind_a_failed_block_is_never_written(
    tmp_path: Path, disk: Disk, flush: Flush
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 23, flush=flush))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        disk.room = 10
        failing = [begin(partition, record("x" * BLOCK_BYTES)) for _ in range(3)]
        failing[0].add_done_callback(lambda _: setattr(disk, "room", None))
        for one in await asyncio.gather(*failing, return_exceptions=True):
            assert isinstance(one, LogUnavailableError)
        assert await begin(partition, record("after")) == 0
        assert await read_all(partition) == ["after"]
        await log.close()
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        assert await read_all(log.partition(TOPIC, 0)) == ["after"]
        await log.close()

    asyncio.run(main())


def test_a_log_that_is_closed_after_a_failure_syncs_nothing_more(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        stray: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: stray.append(context)
        )
        log = open_log(
            tmp_path, FileLogSettings(segment_bytes=1 << 16, flush_interval_ms=20)
        )
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("written, and not synced yet"))
        disk.room = 10

        def broken(*_: object) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "pwrite", broken)
        with pytest.raises(LogUnavailableError, match="nothing was stored"):
            await begin(partition, record("x" * 50))
        with pytest.raises(LogUnavailableError, match="could not be cleared"):
            begin(partition, record("refused"))
        await log.close()
        await asyncio.sleep(0.03)
        assert stray == []

    asyncio.run(main())
