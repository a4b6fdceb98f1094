"""Offsets in an SQLite file: the contract, the timer, kill -9, and newer formats."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.file import open_offsets
from tests.contracts.offsets import OffsetsContract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.file.offsets import FileOffsets


class TestFileOffsets(OffsetsContract):
    @pytest.fixture
    def open_offsets(self, tmp_path: Path) -> Callable[[], Awaitable[FileOffsets]]:
        async def again() -> FileOffsets:
            return open_offsets(tmp_path)

        return again


CHILD = """
import asyncio, pathlib, sys
from ropeway.storage.file import open_offsets

async def main():
    interval_ms = int(sys.argv[2])
    offsets = open_offsets(pathlib.Path(sys.argv[1]), flush_interval_ms=interval_ms)
    offsets.commit("g", "t", 0, 41)
    if sys.argv[2] != "1":
        await offsets.flush()
    else:
        while offsets._dirty:
            await asyncio.sleep(0.001)
        offsets.commit("g", "t", 0, 42)
        await offsets.flush()
    print("kept", flush=True)
    offsets.commit("g", "t", 0, 99)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize(("interval_ms", "kept"), [(3_600_000, 41), (1, 42)])
def test_kill_9_takes_back_no_more_than_one_interval(
    tmp_path: Path, interval_ms: int, kept: int
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), str(interval_ms)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "kept\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()

    async def main() -> None:
        offsets = open_offsets(tmp_path)
        found = offsets.get("g", "t", 0)
        # Within one millisecond the last commit may have been kept as well.
        assert found == kept or (interval_ms == 1 and found == 99)
        await offsets.close()

    asyncio.run(main())


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "offsets.db") as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(LogError, match="has format 2; this program reads up to 1"):
        open_offsets(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "offsets.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(LogError, match=r"cannot open .*offsets\.db"):
        open_offsets(tmp_path)


def test_a_failed_flush_says_so_and_is_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        offsets = open_offsets(tmp_path, flush_interval_ms=3_600_000)
        offsets._database.execute("PRAGMA busy_timeout = 1")
        other = sqlite3.connect(tmp_path / "offsets.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        offsets.commit("g", "t", 0, 5)
        with pytest.raises(LogUnavailableError, match="locked"):
            await offsets.flush()
        other.execute("ROLLBACK")
        other.close()
        await offsets.close()
        again = open_offsets(tmp_path)
        assert again.get("g", "t", 0) == 5
        await again.close()
        with pytest.raises(LogUnavailableError, match="is closed"):
            again.commit("g", "t", 0, 6)
        with pytest.raises(LogUnavailableError, match="is closed"):
            again.forget(group="g")

    asyncio.run(main())


def test_a_close_ends_the_thread_and_leaves_no_timer(tmp_path: Path) -> None:
    async def main() -> None:
        failed: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failed.append(context)
        )
        before = set(threading.enumerate())
        offsets = open_offsets(tmp_path, flush_interval_ms=10)
        offsets.commit("g", "t", 0, 41)
        offsets.forget(group="others")
        with capture_logs() as logs:
            await offsets.close()
            assert set(threading.enumerate()) <= before
            await asyncio.sleep(0.05)
        assert failed == []
        assert logs == []

    asyncio.run(main())


def test_what_could_not_be_written_is_tried_again_an_interval_later(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        offsets = open_offsets(tmp_path, flush_interval_ms=1)
        offsets._database.execute("PRAGMA busy_timeout = 1")
        other = sqlite3.connect(tmp_path / "offsets.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        write, tries = offsets._write, 0

        def counted(dirty: dict[tuple[str, str, int], int | None]) -> None:
            nonlocal tries
            tries += 1
            write(dirty)

        offsets._write = counted  # type: ignore[method-assign]
        offsets.commit("g", "t", 0, 5)
        async with asyncio.timeout(60):
            with capture_logs() as logs:
                while tries < 3:  # noqa: ASYNC110 - set by a thread
                    await asyncio.sleep(0.001)
            assert logs
            assert {one["event"] for one in logs} == {"offsets are not kept"}
            assert all("locked" in one["error"] for one in logs)
            other.execute("ROLLBACK")
            select = "SELECT * FROM offsets"
            while not other.execute(select).fetchall():  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.001)
        other.close()
        await offsets.close()

    asyncio.run(main())


def test_a_close_gives_the_file_up_with_all_that_is_beside_it(tmp_path: Path) -> None:
    async def main() -> None:
        offsets = open_offsets(tmp_path)
        offsets.commit("g", "t", 0, 5)
        await offsets.close()

    asyncio.run(main())
    assert [path.name for path in tmp_path.iterdir()] == ["offsets.db"]


def test_what_is_kept_is_no_word_in_the_log(tmp_path: Path) -> None:
    async def main() -> None:
        offsets = open_offsets(tmp_path, flush_interval_ms=1)
        with capture_logs() as logs:
            offsets.commit("g", "t", 0, 5)
            while offsets._dirty:  # noqa: ASYNC110 - a timer empties it
                await asyncio.sleep(0.001)
            await offsets.flush()  # behind the one that is under way
            await asyncio.sleep(0.01)
        assert logs == []
        await offsets.close()

    asyncio.run(main())


def test_what_is_forgotten_is_gone_from_the_file_an_interval_later(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        offsets = open_offsets(tmp_path, flush_interval_ms=1)
        offsets.commit("g", "t", 0, 5)
        await offsets.flush()
        offsets.forget(group="g")
        other = sqlite3.connect(tmp_path / "offsets.db")
        async with asyncio.timeout(60):
            select = "SELECT * FROM offsets"
            while other.execute(select).fetchall():  # noqa: ASYNC110 - by a thread
                await asyncio.sleep(0.001)
        other.close()
        await offsets.close()

    asyncio.run(main())
