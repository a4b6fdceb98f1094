"""The loop that processes run on, and the signals that end them."""

import asyncio
import gc
import os
import signal
import sys

import pytest

from ropeway.gateway import process


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
        seen.append((gc.get_threshold()[0], gc.get_freeze_count() > 0))

    process.run(work())
    assert seen == [(process.COLLECT_AFTER, True)]
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


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
        await asyncio.wait_for(stop.wait(), 20)
        assert {signal.getsignal(one) for one in process.ENDING} == {signal.SIG_DFL}

    try:
        process.run(work())
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
