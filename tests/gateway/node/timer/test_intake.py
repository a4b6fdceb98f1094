"""Reading the system topic: all of it once, and what was visited not again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node.index_thread import IndexThread
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.node.timer.intake import Intake
from tests.gateway.node.timer.rig import START_MS, WINDOW_MS, Clock, Rig, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


async def indexed(
    rig: Rig, done_ms: int, done_offset: int
) -> tuple[list[tuple[int, int]], int]:
    """Visit time and offset of what a fresh index has; and until when all is done."""
    thread = IndexThread("timers", Index, rig.directory / "fresh")
    await thread.open(anew=True)
    intake = Intake(rig.timer.topic.partitions[0], thread, WINDOW_MS)
    done_ms = await intake.catch_up(await intake.begin(done_ms, done_offset))
    entries, _ = await thread.run(Index.page, b"", None, 99, 99)
    await thread.close()
    found = [(one.visit_ms - START_MS, one.offset) for one in entries]
    return found, done_ms - START_MS


@looped
@pytest.mark.parametrize(
    ("done_ms", "done_offset", "expected"),
    [
        (START_MS - 1, 0, ([(10, 0), (20, 1), (30, 2), (WINDOW_MS, 3)], -1)),
        (START_MS + 20, 3, ([(30, 2), (WINDOW_MS, 3)], 20)),
        (START_MS + 20, 1, ([(20, 1), (30, 2), (WINDOW_MS, 3)], 19)),
        (START_MS + 30, 1, ([(20, 1), (30, 2), (WINDOW_MS, 3)], 19)),
        (START_MS + 50, 4, ([(WINDOW_MS, 3)], 50)),
    ],
)
async def test_what_was_visited_is_left_out_and_the_time_goes_back_to_what_is_late(
    tmp_path: Path,
    done_ms: int,
    done_offset: int,
    expected: tuple[list[tuple[int, int]], int],
):
    async with rigged(tmp_path) as rig:
        for number, after_ms in enumerate((10, 20, 30, 9 * WINDOW_MS)):
            rig.send(f"{number}", START_MS + after_ms)
        await rig.settled()
        assert await indexed(rig, done_ms, done_offset) == expected


@looped
@pytest.mark.parametrize("whole", [True, False], ids=["all of it", "a part"])
async def test_an_index_that_fits_the_log_is_gone_on_with(tmp_path: Path, whole: bool):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 10)
        rig.send("b", START_MS + 20)
        await rig.settled()
        partition = rig.timer.topic.partitions[0]
        thread = IndexThread("timers", Index, rig.directory / "other")
        await thread.open(anew=True)
        first = Intake(partition, thread, WINDOW_MS)
        await first.begin(START_MS - 1, 0)
        await first.catch_up(START_MS - 1)
        read_to = first.next_offset
        if not whole:
            rig.send("c", START_MS + 30)
            await rig.settled()
        again = Intake(partition, thread, WINDOW_MS)
        with capture_logs() as logs:
            await again.begin(START_MS - 1, 0)
        assert again.next_offset == read_to == partition.end - (not whole)
        assert not logs
        await thread.close()


@looped
async def test_a_log_that_was_restored_without_its_offsets_delivers_what_it_lost(
    tmp_path: Path,
):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        rig.send("before", START_MS + 10)
        await rig.at(START_MS + 100_000)
        rig.send("waits", START_MS + 200_000)
        await rig.settled()
    shutil.copytree(tmp_path / "log", tmp_path / "backup")
    async with rigged(tmp_path, clock) as rig:
        rig.send("lost with the log", START_MS + 150_000)
        await rig.at(START_MS + 200_000)
        assert await rig.bodies() == ["before", "lost with the log", "waits"]
    shutil.rmtree(tmp_path / "log")
    (tmp_path / "backup").rename(tmp_path / "log")
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        assert await rig.bodies() == ["before", "waits"]
        rig.send("new", START_MS + 200_010)
        await rig.at(START_MS + 200_010)
        assert await rig.bodies() == ["before", "waits", "new"]
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        assert await rig.bodies() == ["before", "waits", "new"]
