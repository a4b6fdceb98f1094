"""A timer that stops: it delivers nothing behind that, and nothing twice."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.node.timer import timer
from ropeway.storage.api import LogUnavailableError
from tests.gateway.holding import Holding
from tests.gateway.node.timer.rig import START_MS, Clock, Refusing, Rig, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_it_stops_also_where_something_comes_at_the_same_time(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        for _ in range(5):
            await rig.settled()
            # By now it has paused, and waits to be woken.
            await asyncio.sleep(0.05)
            rig.timer.wake()
            await rig.timer.give_up()
            await rig.timer.take_over()


def at_work() -> list[asyncio.Task[Any]]:
    """The tasks of timers."""
    return [
        one
        for one in asyncio.all_tasks()
        if one.get_coro().cr_code.co_filename == timer.__file__
    ]


@looped
async def test_it_delivers_nothing_after_it_has_given_up(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 10)
        await rig.settled()
        assert at_work()
        (partition,) = rig.timer.topic.partitions
        assert rig.timer._wake.set in partition.watchers
        await rig.timer.give_up()
        assert rig.timer._wake.set not in partition.watchers
        assert not at_work()
        await rig.timer.take_over()
        await rig.at(START_MS + 10)
        assert await rig.bodies() == ["a"]


@looped
async def test_what_is_being_delivered_is_noted_before_it_gives_up(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        rig.send("a", START_MS + 10)
        await rig.settled()
        partitions = rig.topics.get("orders").partitions
        true = partitions[0]
        partitions[0] = holding = Holding(true)
        clock.now_ms = START_MS + 10
        rig.timer.wake()
        await until(lambda: holding.held)
        asyncio.get_running_loop().call_later(0.05, holding.let_go)
        await rig.timer.give_up()
        partitions[0] = true
        assert true.end == 1
    async with rigged(tmp_path, clock) as rig:
        await rig.at(START_MS + 20)
        assert await rig.bodies() == ["a"]


@looped
async def test_it_looks_no_more_often_than_it_has_to(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        sleeping = asyncio.ensure_future(rig.timer._sleep(1000))
        await asyncio.sleep(3 * timer._PAUSE_S)
        assert not sleeping.done()
        sleeping.cancel()


@looped
async def test_who_never_led_gives_up_nothing(tmp_path: Path):
    """A node that cannot lead yet gives up all of its duties, begun or not."""
    await Rig(tmp_path, Clock()).close()


@looped
async def test_no_page_is_given_while_the_index_is_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.timer.timer._CATCH_UP_S", 0.01)
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 1000)
        await rig.settled()
        assert len((await rig.timer.page(b"", None, 9, 9))[0]) == 1
        rig.timer._caught_up.clear()
        with pytest.raises(IndexLostError, match="is being made"):
            await rig.timer.page(b"", None, 9, 9)


@looped
async def test_it_stops_also_where_what_it_delivers_fails_meanwhile(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 10)
        await rig.settled()
        begun = asyncio.Event()

        async def failing(*_: object, **__: object) -> None:
            begun.set()
            await asyncio.sleep(0.05)
            raise LogUnavailableError("down")

        deliver, rig.delivery.deliver = rig.delivery.deliver, failing
        rig.clock.now_ms = START_MS + 10
        rig.timer.wake()
        await begun.wait()
        await rig.timer.give_up()
        assert not at_work()
        rig.delivery.deliver = deliver
        await rig.timer.take_over()
        await rig.at(START_MS + 20)
        assert await rig.bodies() == ["a"]


@looped
async def test_how_far_it_has_come_is_noted_with_what_it_has_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Not when nothing is left to do: after a kill all of it would come again."""
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 1000)
        await rig.settled()
        noted: list[tuple[int, int]] = []
        commit = rig.timer._commit

        def seen(read_to: int) -> None:
            noted.append((rig.timer._done_ms, read_to))
            commit(read_to)

        monkeypatch.setattr(rig.timer, "_commit", seen)
        await rig.at(START_MS + 1000)
        assert await rig.bodies() == ["a"]
        assert noted == [(START_MS + 999, 1), (START_MS + 1000, 1)]
        assert rig.timer.read_to == 1


@looped
async def test_what_stays_is_visited_again_though_later_ones_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.backoff.RETRY_S", 0.01)
    async with rigged(tmp_path) as rig:
        await rig.make("other")
        rig.send("a", START_MS + 1000)
        rig.send("b", START_MS + 2000, topic="other")
        await rig.settled()
        # Nor can it be put off.
        orders = rig.topics.get("orders").partitions
        waiting = rig.timer.topic.partitions
        true = orders[0], waiting[0]
        down = LogUnavailableError("down")
        orders[0], waiting[0] = Refusing(true[0], down), Refusing(true[1], down)
        rig.clock.now_ms = START_MS + 2000
        rig.timer.wake()
        (partition, *_) = rig.topics.get("other").partitions
        await until(lambda: partition.end == 1)
        orders[0], waiting[0] = true
        # By then its topic is tried again.
        await rig.at(START_MS + 4000)
        assert (await rig.bodies(), await rig.bodies("other")) == (["a"], ["b"])


def forget(directory: Path) -> None:
    """Leave of a timer the log alone."""
    shutil.rmtree(directory / "timer")
    for file in directory.glob("offsets*"):
        file.unlink()


@looped
async def test_the_first_of_all_comes_though_nothing_was_noted(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        rig.send("a", START_MS + 10)
        await rig.settled()
    forget(tmp_path)
    clock.now_ms = START_MS + 20
    async with rigged(tmp_path, clock) as rig:
        assert rig.offsets.queues(names.TIMER_GROUP, names.TIMER_TOPIC) == {}
        await rig.at(START_MS + 30)
        assert await rig.bodies() == ["a"]
