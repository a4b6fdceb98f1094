"""The loop that processes run on, and the signals that end them."""

import asyncio
import os
import signal
import sys

import pytest

from gateway import process


def test_work_runs_on_uvloop(monkeypatch):
    names = []

    async def work() -> None:
        names.append(type(asyncio.get_running_loop()).__module__)

    process.run(work())
    monkeypatch.setitem(sys.modules, "uvloop", None)
    process.run(work())
    assert names[0].startswith("uvloop")
    assert names[1].startswith("asyncio")


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
