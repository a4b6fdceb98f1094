"""The timer where messages are late when they are read, and where nothing is due."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from ropeway.gateway.node.timer import timer
from ropeway.storage.api import LogBusyError
from tests.gateway.node.timer.rig import START_MS, Clock, rigged
from tests.gateway.node.timer.test_timer import Refusing
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

AHEAD_MS = 100_000


@looped
async def test_a_message_comes_at_its_time_that_came_before_a_set_clock_was_seen(
    tmp_path: Path,
):
    """It waited until the time that the clock had shown before."""
    async with rigged(tmp_path, Clock(START_MS + AHEAD_MS)) as rig:
        await rig.settled()
        rig.clock.now_ms = START_MS
        rig.send("a", START_MS + 500)
        await rig.at(START_MS + 499)
        assert await rig.bodies() == []
        await rig.at(START_MS + 500)
        assert await rig.bodies() == ["a"]


@looped
async def test_it_is_not_lost_with_the_index(tmp_path: Path):
    """Seed 101 of the simulator: what it waited for was counted as visited."""
    clock = Clock(START_MS + AHEAD_MS)
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        clock.now_ms = START_MS
        rig.send("a", START_MS + 10)
        await rig.settled()
    clock.now_ms = START_MS + 20
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
    shutil.rmtree(tmp_path / "timer")
    async with rigged(tmp_path, clock) as rig:
        await rig.at(START_MS + 2 * AHEAD_MS)
        assert set(await rig.bodies()) == {"a"}


@looped
async def test_what_is_late_and_stays_is_not_lost_with_the_index(tmp_path: Path):
    """Where a slow disk has it be stored after its time, and then its topic is busy."""
    clock = Clock(START_MS + 1000)
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        orders = rig.topics.get("orders").partitions
        orders[0] = refusing = Refusing(orders[0], LogBusyError("busy"))
        rig.send("late", START_MS + 500)
        clock.now_ms += 1
        rig.timer.wake()
        await until(lambda: refusing.refused > 2)
    shutil.rmtree(tmp_path / "timer")
    async with rigged(tmp_path, clock) as rig:
        await rig.at(START_MS + 2000)
        assert await rig.bodies() == ["late"]


@looped
async def test_what_is_late_and_more_than_a_batch_is_not_lost_with_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(timer, "_BATCH", 2)
    clock = Clock(START_MS + 1000)
    sent = [f"{number}" for number in range(9)]
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        orders = rig.topics.get("orders").partitions
        true = orders[0]
        for name in sent:
            rig.send(name, START_MS + 500)
        clock.now_ms += 1
        rig.timer.wake()
        await until(lambda: true.end > 0)
        orders[0] = Refusing(true, LogBusyError("busy"))
    shutil.rmtree(tmp_path / "timer")
    async with rigged(tmp_path, clock) as rig:
        await rig.at(START_MS + 2000)
        assert set(await rig.bodies()) == set(sent)


@looped
async def test_an_index_that_has_nothing_due_is_looked_into_each_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(timer, "_LOOK_EVERY_S", 0.001)
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 60_000)
        await rig.settled()
        index = rig.timer._index
        true_run, looks = index.run, []

        async def counted(*args: Any) -> Any:
            looks.append(args)
            return await true_run(*args)

        monkeypatch.setattr(index, "run", counted)
        rounds = rig.timer.idle_rounds
        await until(lambda: rig.timer.idle_rounds > rounds + 20)
        # `settled` had it look once more.
        assert len(looks) <= 1
        looks.clear()
        rig.clock.now_ms = START_MS + 10_000
        await until(lambda: looks)
        rig.send("b", START_MS + 10_001)
        rig.clock.now_ms = START_MS + 60_000
        orders = rig.topics.get("orders").partitions[0]
        await until(lambda: orders.end == 2)
        assert await rig.bodies() == ["b", "a"]
