"""Background syncs: what is noted gets to the disk, and who is told if it does not."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.file.segment import Segment, create
from ropeway.storage.file.syncer import Syncer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOUR_MS = 3_600_000


class Journal:
    """A catalog that counts its syncs, or fails them."""

    def __init__(self) -> None:
        self.synced = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.error: OSError | None = None

    def sync(self) -> None:
        self.loop.call_soon_threadsafe(self.synced.set)
        if self.error is not None:
            raise self.error


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def written(directory: Path, base: int) -> Segment:
    """A segment that has a hundred bytes."""
    segment = create(directory, base, 1 << 16)
    segment.written = 100
    return segment


def test_what_is_noted_is_durable_an_interval_later(
    tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        journal = Journal()
        syncer = Syncer(journal, thread, 1, 5, pytest.fail)  # type: ignore[arg-type]
        segment = written(tmp_path, 1000)
        syncer.note(segment)
        assert syncer.durable == 5
        async with asyncio.timeout(120):
            await journal.synced.wait()
        await syncer.sync()
        await asyncio.sleep(0)
        assert syncer.durable == 1100
        os.close(segment.descriptor)

    asyncio.run(main())


def test_a_sync_says_how_far_the_log_had_come_when_it_began(
    tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        syncer = Syncer(Journal(), thread, HOUR_MS, 0, pytest.fail)  # type: ignore[arg-type]
        segments = [written(tmp_path, 0), written(tmp_path, 1000)]
        for segment in segments:
            syncer.note(segment)
        future = syncer.sync()
        segments[1].written = 200
        await future
        await asyncio.sleep(0)
        assert syncer.durable == 1100
        syncer.stop()
        for segment in segments:
            os.close(segment.descriptor)

    asyncio.run(main())


def test_a_failed_sync_is_told_and_makes_nothing_durable(
    tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        journal = Journal()
        journal.error = OSError(5, "Input/output error")
        told: list[OSError] = []
        syncer = Syncer(journal, thread, HOUR_MS, 0, told.append)  # type: ignore[arg-type]
        segment = written(tmp_path, 0)
        syncer.note(segment)
        with pytest.raises(OSError, match="Input/output error"):
            await syncer.sync()
        await asyncio.sleep(0)
        assert told == [journal.error]
        assert syncer.durable == 0
        syncer.stop()
        os.close(segment.descriptor)

    asyncio.run(main())


def test_nothing_is_synced_after_a_stop(
    tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        journal = Journal()
        syncer = Syncer(journal, thread, 1, 0, pytest.fail)  # type: ignore[arg-type]
        segment = written(tmp_path, 0)
        syncer.note(segment)
        syncer.stop()
        await asyncio.sleep(0.01)
        assert not journal.synced.is_set()
        os.close(segment.descriptor)

    asyncio.run(main())


def test_who_waits_for_a_sync_may_give_up(
    tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        stray: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: stray.append(context)
        )
        syncer = Syncer(Journal(), thread, HOUR_MS, 0, pytest.fail)  # type: ignore[arg-type]
        segment = written(tmp_path, 0)
        syncer.note(segment)
        syncer.sync().cancel()
        syncer.note(segment)
        await syncer.sync()
        await asyncio.sleep(0)
        assert syncer.durable == 100
        assert stray == []
        syncer.stop()
        os.close(segment.descriptor)

    asyncio.run(main())


def test_a_segment_that_was_sealed_meanwhile_needs_no_sync(
    tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        syncer = Syncer(Journal(), thread, HOUR_MS, 0, pytest.fail)  # type: ignore[arg-type]
        segment = written(tmp_path, 0)
        syncer.note(segment)
        os.close(segment.descriptor)
        segment.descriptor = -1
        await syncer.sync()
        await asyncio.sleep(0)
        assert syncer.durable == 100
        syncer.stop()

    asyncio.run(main())
