"""The loop that processes run on, and the signals that end them."""

import asyncio
import gc
import os
import signal
import sys
import weakref

import pytest

from ropeway.gateway import process
from tests.remoting import until


@pytest.fixture(autouse=True)
def collector():
    """Have Python's own thresholds; what the tests' run had frozen is so again then."""
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)
    gc.freeze()


def test_work_runs_on_uvloop(monkeypatch):
    names = []

    async def work() -> None:
        names.append(type(asyncio.get_running_loop()).__module__)

    process.run(work())
    monkeypatch.setitem(sys.modules, "uvloop", None)
    process.run(work())
    assert names[0].startswith("uvloop")
    assert names[1].startswith("asyncio")


def test_python_seldom_looks_for_cycles_while_work_runs():
    before = gc.get_threshold()
    seen = []

    async def work() -> None:
        seen.append((gc.get_threshold(), gc.get_freeze_count() > 0))

    process.run(work())
    often = process.COLLECT_AFTER, process.OLDER_AFTER, process.NEVER
    assert seen == [(often, True)]
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


class Cycle:
    """It knows itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(
    ("most_more", "calm_s"), [(process.MOST_MORE, 3600.0), (-(1 << 60), -1.0)]
)
def test_all_is_looked_at_when_little_goes_on_or_much_has_come(
    monkeypatch, most_more, calm_s
):
    """Either alone does, and Python itself has not."""
    monkeypatch.setattr(process, "LOOK_S", 0.001)
    monkeypatch.setattr(process, "GROWTH", 0.0)
    monkeypatch.setattr(process, "MOST_MORE", most_more)
    monkeypatch.setattr(process, "CALM_S", calm_s)

    async def work() -> None:
        cycle = Cycle()
        gc.collect(1)
        lost = weakref.ref(cycle)
        del cycle
        assert lost() is not None, "it is old by now"
        await until(lambda: lost() is None)

    process.run(work())


def test_nobody_counts_objects_where_nothing_was_done(monkeypatch):
    """It took most of the CPU of an idle node: it touches all of Python's memory."""
    counted, looks = [], []
    count, sleep = sys.getallocatedblocks, asyncio.sleep

    async def look(seconds: float) -> None:
        looks.append(seconds)
        await sleep(0)

    monkeypatch.setattr(sys, "getallocatedblocks", lambda: counted.append(1) or count())
    monkeypatch.setattr(process.asyncio, "sleep", look)
    monkeypatch.setattr(process, "CALM_LOOKS", 1 << 30)

    async def work(most: int) -> None:
        while len(looks) < most:
            await sleep(0)

    process.run(work(100))
    assert len(counted) <= 2
    monkeypatch.setattr(process, "COUNT_AFTER_S", 0.0)
    process.run(work(200))
    assert len(counted) >= 100


def test_looks_are_rare_where_little_goes_on_for_long(monkeypatch):
    looks, sleep = [], asyncio.sleep

    async def look(seconds: float) -> None:
        looks.append(seconds)
        await sleep(0)

    monkeypatch.setattr(process.asyncio, "sleep", look)

    async def work() -> None:
        while len(looks) < 1000:
            await sleep(0)

    process.run(work())
    assert looks.index(process.RARELY_S) >= process.CALM_LOOKS


@pytest.mark.slow
def test_no_look_is_at_much_while_much_is_made(monkeypatch):
    """10,000 queues that were first used held up everybody for 0.7 s, once."""
    made, ages = [], []

    def note(phase: str, facts: dict[str, int]) -> None:
        if phase == "start":
            ages.append(facts["generation"])

    async def work() -> None:
        gc.callbacks.append(note)
        made.extend([number] for number in range(1_600_000))
        gc.callbacks.remove(note)

    process.run(work())
    assert set(ages) == {0, 1}
    assert ages.count(1) * (process.OLDER_AFTER + 1) * process.COLLECT_AFTER > 1_000_000


def test_what_is_there_when_a_process_has_settled_is_not_looked_at_again():
    """80,000 queues held up everybody for a quarter of a second at each look."""
    queues = [[number] for number in range(10_000)]
    seen = []

    async def work() -> None:
        more = [[queue] for queue in queues]
        gc.collect()
        before = gc.get_freeze_count()
        process.settled()
        seen.append(gc.get_freeze_count() - before >= len(more))

    process.run(work())
    assert seen == [True]


@pytest.mark.parametrize("number", process.ENDING)
def test_the_first_signal_asks_to_stop_and_the_next_is_not_caught(number):
    before = {one: signal.getsignal(one) for one in process.ENDING}

    async def work() -> None:
        stop = process.stop_on_signal()
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 120)
        assert {signal.getsignal(one) for one in process.ENDING} == {signal.SIG_DFL}

    try:
        process.run(work())
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
