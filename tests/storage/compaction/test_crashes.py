"""A process that ends at any step of compaction, and what the next one finds."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import LogError
from ropeway.storage.compaction.disk import Disk
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import (
    SETTINGS,
    closing,
    compacted,
    partition_of,
    send,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ropeway.storage.compaction.disk import Buffer

pytestmark = pytest.mark.slow

SMALL = msgspec.structs.replace(SETTINGS, file_bytes=1 << 12, map_bytes=1 << 10)


class DiedError(OSError):
    """The process has ended: from here on nothing changes any more."""

    def __init__(self) -> None:
        super().__init__(5, "died")


class DyingDisk(Disk):
    """Dies before the step of a number; while it writes, after half of it."""

    def __init__(self, last_step: int) -> None:
        self.steps = 0
        self._last_step = last_step

    @property
    def is_dead(self) -> bool:
        return self.steps > self._last_step

    def _step(self) -> None:
        self.steps += 1
        if self.is_dead:
            raise DiedError

    def create(self, path: Path) -> int:
        self._step()
        return super().create(path)

    def append(self, descriptor: int, pieces: Sequence[Buffer]) -> None:
        try:
            self._step()
        except DiedError:
            data = b"".join(pieces)
            super().append(descriptor, [data[: len(data) // 2]])
            raise
        super().append(descriptor, pieces)

    def sync(self, descriptor: int) -> None:
        self._step()
        super().sync(descriptor)

    def replace(self, new: Path, path: Path) -> None:
        self._step()
        super().replace(new, path)

    def sync_directory(self, path: Path) -> None:
        self._step()
        super().sync_directory(path)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)


def sent(begin: int, end: int) -> list[str]:
    return [f"key-{n * 7 % 40}={n}{'x' * 100}" for n in range(begin, end)]


async def prepare(directory: Path) -> None:
    """A partition that was compacted once, and has new records since then."""
    async with closing(compacted(directory, SMALL)) as log:
        partition = await partition_of(log)
        await send(partition, sent(0, 100))
        await log.compact(TOPIC)
        await send(partition, sent(100, 200))


async def attempt(directory: Path, disk: DyingDisk) -> set[int]:
    """Compact until the disk dies; the offsets that readers then still see."""
    log = compacted(directory, SMALL, disk=disk)
    try:
        partition = await partition_of(log)
        try:
            await log.compact(TOPIC)
        except LogError:
            assert disk.is_dead
        seen = await stored(partition)
        assert_nothing_is_lost(seen)
        return set(seen)
    finally:
        await log.close()


def assert_nothing_is_lost(seen: dict[int, str]) -> None:
    everything = sent(0, 200)
    last = {text.partition("=")[0]: n for n, text in enumerate(everything)}
    assert set(last.values()) <= set(seen)
    assert all(everything[n] == text for n, text in seen.items())


def test_whenever_the_process_ends_nothing_is_lost_and_nothing_is_mixed(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        await prepare(tmp_path / "prepared")
        shutil.copytree(tmp_path / "prepared", tmp_path / "whole")
        whole = DyingDisk(1 << 30)
        final = await attempt(tmp_path / "whole", whole)
        assert whole.steps > 20
        for last_step in range(whole.steps):
            directory = tmp_path / str(last_step)
            shutil.copytree(tmp_path / "prepared", directory)
            disk = DyingDisk(last_step)
            await attempt_or_fail_to_open(directory, disk)
            # The next process: the same records, and then it compacts to the end.
            async with closing(compacted(directory, SMALL)) as log:
                partition = await partition_of(log)
                assert_nothing_is_lost(await stored(partition))
                left_over = {one.name for one in partition.clean.directory.iterdir()}
                named = {
                    one.name + end
                    for one in partition.clean.now.files
                    for end in (".data", ".index")
                }
                assert left_over - {"manifest"} == named
                await log.compact(TOPIC)
                assert set(await stored(partition)) == final

    asyncio.run(main())


async def attempt_or_fail_to_open(directory: Path, disk: DyingDisk) -> None:
    try:
        await attempt(directory, disk)
    except LogError:
        assert disk.is_dead, "opening makes changes, too"


def test_a_full_disk_is_said_and_readers_go_on(tmp_path: Path) -> None:
    class FullDisk(Disk):
        is_full = True

        def append(self, descriptor: int, pieces: Sequence[Buffer]) -> None:
            if self.is_full:
                raise OSError(28, "No space left on device")
            super().append(descriptor, pieces)

    async def main() -> None:
        disk = FullDisk()
        async with closing(compacted(tmp_path, disk=disk)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1", "a=2"])
            with pytest.raises(LogError, match=r"No space left .* needs room"):
                await log.compact(TOPIC)
            assert await stored(partition) == {0: "a=1", 1: "a=2"}
            await log.cleaner.look()
            (status,) = await log.status(TOPIC)
            assert "No space left" in str(status.problem)
            disk.is_full = False
            await log.compact(TOPIC)
            (status,) = await log.status(TOPIC)
            assert status.problem is None
            assert await stored(partition) == {1: "a=2"}

    asyncio.run(main())
