"""The timer by a clock that tests set: when, in which order, after which harm."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.node.timer import timer
from ropeway.gateway.wire import properties
from ropeway.storage.api import LogBusyError, LogUnavailableError
from tests.gateway.node.timer.rig import (
    START_MS,
    WINDOW_MS,
    Clock,
    Refusing,
    Rig,
    rigged,
)
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


SECOND_MS = 1000
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


@pytest.mark.rule(
    "timer.md", "A round reads what is new, takes up to 1,024 messages that are due"
)
@looped
async def test_a_message_comes_at_its_time_and_not_a_millisecond_earlier(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 1000)
        await rig.at(START_MS + 999)
        assert await rig.bodies() == []
        await rig.at(START_MS + 1000)
        (found,) = await rig.stored()
        assert (found.body, found.flag, found.born_ms) == (b"a", 7, 1)
        assert found.store_ms == START_MS + 1000
        pairs = properties.parse(found.properties)
        assert pairs["UNIQ_KEY"] == "a"
        assert (pairs["REAL_TOPIC"], pairs["REAL_QID"]) == ("orders", "0")
        await rig.at(START_MS + 5000)
        assert await rig.bodies() == ["a"]


@looped
async def test_messages_come_by_time_and_those_of_one_time_as_they_were_sent(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        for number in range(1200):
            rig.send(f"{number}", START_MS + 50)
        rig.send("other queue", START_MS + 60, queue_id=1)
        rig.send("soon", START_MS + 10)
        rig.send("late", START_MS + 10_000)
        await rig.at(START_MS + 9999)
        assert await rig.bodies() == ["soon", *(f"{one}" for one in range(1200))]
        assert await rig.bodies(queue_id=1) == ["other queue"]


@looped
async def test_more_than_one_batch_goes_on_at_once_and_after_it_there_is_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    paused_s: list[tuple[int, float]] = []
    async with rigged(tmp_path) as rig:
        partition = rig.topics.get("orders").partitions[0]
        sleep = rig.timer._sleep

        async def noted(sleep_s: float) -> None:
            paused_s.append((partition.next_offset, sleep_s))
            await sleep(sleep_s)

        for number in range(timer._BATCH + 1):
            rig.send(f"{number}", START_MS + 50)
        await rig.settled()
        monkeypatch.setattr(rig.timer, "_sleep", noted)
        await rig.at(START_MS + 50)
        after = dict(reversed(paused_s))
        assert after[timer._BATCH] == 0.0
        assert after[timer._BATCH + 1] == timer._PAUSE_S


@looped
async def test_what_was_recalled_never_comes(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        for name in ("a", "b", "c"):
            rig.send(name, START_MS + 1000)
        rig.recall("b", START_MS + 1000)
        rig.recall("nobody", START_MS + 1000)
        rig.recall("a", START_MS + 1000, topic="others")
        rig.recall("c", START_MS + 1001)
        await rig.settled()
        listed, _ = await rig.timer.page(b"", None, 10, 10)
        assert [one.identity for one in listed] == [b"orders+a", b"orders+c"]
        await rig.at(START_MS + 2000)
        assert await rig.bodies() == ["a", "c"]


@looped
@pytest.mark.parametrize("lost", [False, True], ids=["index", "without its index"])
async def test_what_waits_and_what_was_recalled_survive_a_restart(
    tmp_path: Path, lost: bool
):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        rig.send("done", START_MS + 10)
        await rig.at(START_MS + 10)
        rig.send("a", START_MS + 1000)
        rig.send("recalled", START_MS + 1000)
        await rig.settled()
        rig.recall("recalled", START_MS + 1000)
    if lost:
        shutil.rmtree(tmp_path / "timer")
    clock.now_ms = START_MS + 60_000
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        assert await rig.bodies() == ["done", "a"]
        rig.send("next", START_MS + 60_001)
        await rig.at(START_MS + 60_001)
        assert await rig.bodies() == ["done", "a", "next"]


@looped
async def test_an_index_of_another_log_is_made_again(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path / "one", clock) as rig:
        for number in range(10):
            rig.send(f"{number}", START_MS + 500)
        await rig.settled()
    async with rigged(tmp_path / "two", clock) as rig:
        rig.send("a", START_MS + 1000)
        rig.send("b", START_MS + 1000)
        await rig.settled()
    shutil.rmtree(tmp_path / "two" / "timer")
    shutil.copytree(tmp_path / "one" / "timer", tmp_path / "two" / "timer")
    async with rigged(tmp_path / "two", clock) as rig:
        await rig.at(START_MS + 999)
        assert await rig.bodies() == []
        await rig.at(START_MS + 1000)
        assert await rig.bodies() == ["a", "b"]


@looped
async def test_an_index_that_is_damaged_is_made_again(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        rig.send("a", START_MS + 1000)
        await rig.settled()
    for file in (tmp_path / "timer").iterdir():
        file.write_bytes(b"?" * 100)
    async with rigged(tmp_path, clock) as rig:
        await rig.at(START_MS + 1000)
        assert await rig.bodies() == ["a"]


@looped
async def test_an_index_that_fails_at_work_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.backoff.RETRY_S", 0.01)
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 1000)
        await rig.settled()
        rig.timer._index._index._db.close()
        rig.send("b", START_MS + 1000)
        await rig.at(START_MS + 1000)
        assert await rig.bodies() == ["a", "b"]


@looped
async def test_a_clock_that_jumps_ahead_makes_due_what_it_passes(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + YEAR_MS)
        rig.send("b", START_MS + YEAR_MS + 2)
        await rig.at(START_MS + YEAR_MS + 1)
        # A year takes it through all the times that it is stored anew.
        await until(lambda: rig.topics.get("orders").partitions[0].end == 1)
        assert await rig.bodies() == ["a"]


@looped
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_clock_that_is_set_back_makes_nobody_early_or_late(
    tmp_path: Path, restarted: bool
):
    clock = Clock(START_MS + 3_600_000)
    async with rigged(tmp_path, clock) as rig:
        rig.send("wrong", START_MS + 3_600_001)
        await rig.at(START_MS + 3_600_001)
        assert await rig.bodies() == ["wrong"]
        if not restarted:
            await in_the_right_time(rig, ["wrong"])
    if restarted:
        clock.now_ms = START_MS
        async with rigged(tmp_path, clock) as rig:
            await in_the_right_time(rig, ["wrong"])


async def in_the_right_time(rig: Rig, before: list[str]) -> None:
    await rig.at(START_MS)
    rig.send("right", START_MS + 500)
    await rig.at(START_MS + 499)
    assert await rig.bodies() == before
    await rig.at(START_MS + 500)
    assert await rig.bodies() == [*before, "right"]


@looped
async def test_what_waits_for_long_is_stored_anew_before_retention_takes_it(
    tmp_path: Path,
):
    clock = Clock()
    due_ms = START_MS + 3 * WINDOW_MS + 5
    async with rigged(tmp_path, clock) as rig:
        rig.send("a", due_ms)
        rig.send("recalled", due_ms)
        for day in range(1, 4):
            await rig.at(START_MS + day * WINDOW_MS)
            await until(lambda: rig.waits() == 2 + 2 * day)  # noqa: B023
            await rig.settled()
            assert await rig.bodies() == []
    # A node that has nothing but the log begins with what is left of it.
    shutil.rmtree(tmp_path / "timer")
    async with rigged(tmp_path, clock) as rig:
        await rig.settled()
        rig.recall("recalled", due_ms)
        listed, _ = await rig.timer.page(b"", None, 10, 10)
        assert {one.due_ms for one in listed} == {due_ms}
        await rig.at(due_ms)
        (found,) = await rig.stored()
        assert found.body == b"a"
        pairs = properties.parse(found.properties)
        assert pairs["TIMER_ROLL_TIMES"] == "3"
        assert pairs["TIMER_OUT_MS"] == str(due_ms)


@looped
async def test_messages_of_a_deleted_topic_are_dropped(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.make("doomed")
        rig.send("x", START_MS + 10, topic="doomed")
        rig.send("y", START_MS + 10, queue_id=5)
        rig.send("a", START_MS + 10)
        await rig.topics.delete("doomed")
        await rig.at(START_MS + 10)
        assert await rig.bodies() == ["a"]
        assert await rig.timer.page(b"", None, 10, 10) == ([], None)


@looped
async def test_a_topic_that_cannot_be_written_holds_up_no_other(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.make("shut")
        served = rig.topics.get("shut")
        true = served.partitions[0]
        served.partitions[0] = refusing = Refusing(true, LogUnavailableError("no"))
        for number in range(3):
            rig.send(f"{number}", START_MS + 10, topic="shut")
        rig.send("a", START_MS + 10)
        await rig.at(START_MS + 10)
        assert await rig.bodies() == ["a"]
        for pause_s in (1, 2, 4, 8):
            assert refusing.refused == pause_s.bit_length()
            rig.send(f"later {pause_s}", rig.clock() + 1, topic="shut")
            await rig.at(rig.clock() + 1)
            await rig.at(rig.clock() + pause_s * SECOND_MS - 1)
        served.partitions[0] = true
        await rig.at(rig.clock() + 16 * SECOND_MS)
        assert await rig.bodies("shut") == [
            "0",
            "1",
            "2",
            *(f"later {pause_s}" for pause_s in (1, 2, 4, 8)),
        ]


@looped
@pytest.mark.parametrize(
    "error", [LogBusyError("busy"), LogUnavailableError("down")], ids=["busy", "down"]
)
async def test_what_cannot_even_be_put_off_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    monkeypatch.setattr("ropeway.gateway.node.backoff.RETRY_S", 0.01)
    async with rigged(tmp_path) as rig:
        for number in range(3):
            rig.send(f"{number}", START_MS + 10)
        rig.send("other queue", START_MS + 10, queue_id=1)
        await rig.settled()
        places = [rig.topics.get("orders").partitions, rig.timer.topic.partitions]
        true = [partitions[0] for partitions in places]
        refusing = Refusing(true[0], error)
        places[0][0] = refusing
        places[1][0] = Refusing(true[1], error)
        rig.clock.now_ms = START_MS + 10
        rig.timer.wake()
        if isinstance(error, LogBusyError):
            await until(lambda: refusing.refused > 3)
        else:
            await until(lambda: places[1][0].refused > 3)
        for partitions, partition in zip(places, true, strict=True):
            partitions[0] = partition
        await rig.at(START_MS + 70_000)
        assert sorted(await rig.bodies()) == ["0", "1", "2"]
        assert await rig.bodies(queue_id=1) == ["other queue"]


@looped
async def test_how_far_it_has_come_is_an_offset_of_the_system_topic(tmp_path: Path):
    """So that each node has it, and a rebuild repeats nothing."""
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        rig.send("a", START_MS + 10)
        rig.send("b", START_MS + 20)
        await rig.at(START_MS + 30)
        queues = rig.offsets.queues(names.TIMER_GROUP, names.TIMER_TOPIC)
        assert queues[0] == 2
        assert queues[1] == START_MS + 30
        rig.send("c", START_MS + 40)
    shutil.rmtree(tmp_path / "timer")
    async with rigged(tmp_path, clock) as rig:
        await rig.at(START_MS + 40)
        assert await rig.bodies() == ["a", "b", "c"]


@looped
async def test_an_index_is_made_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A log that refuses afterwards is no reason to make it again each time."""
    monkeypatch.setattr("ropeway.gateway.node.backoff.RETRY_S", 0.01)
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 1000)
        await rig.settled()
        opened: list[bool] = []
        index = rig.timer._index
        true_open = index.open

        async def noted(*, anew: bool = False) -> None:
            opened.append(anew)
            await true_open(anew=anew)

        monkeypatch.setattr(index, "open", noted)
        index._index._db.close()
        rig.timer.wake()
        await until(lambda: opened)
        await rig.settled()
        partitions = rig.timer.topic.partitions
        true = partitions[0]
        partitions[0] = Refusing(true, LogUnavailableError("down"))
        orders = rig.topics.get("orders").partitions
        orders[0] = Refusing(orders[0], LogUnavailableError("down"))
        rig.clock.now_ms = START_MS + 1000
        rig.timer.wake()
        refused_at = len(opened)
        await until(lambda: len(opened) > refused_at + 2)
        partitions[0], orders[0] = true, orders[0]._true
        assert any(opened[:refused_at])
        assert not any(opened[refused_at:])
