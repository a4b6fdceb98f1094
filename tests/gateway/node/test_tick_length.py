"""Ticks are shorter while much comes behind them."""

from __future__ import annotations

import asyncio
from collections import Counter

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.node.tick_length import BEHIND_S, LEAST, TickLength
from tests.gateway.node.test_fair_queueing import Asking, Leadership, Log
from tests.remoting import looped, until


class Cpu:
    """CPU time that a test spends."""

    def __init__(self) -> None:
        self.used_s = 5.0

    def __call__(self) -> float:
        return self.used_s


def test_a_tick_shrinks_while_much_comes_behind_it_and_grows_again():
    cpu = Cpu()
    length = TickLength(cpu)
    assert length.begin() == 1.0
    for expected in (0.5, 0.25, 0.125, LEAST, LEAST):
        length.end()
        cpu.used_s += BEHIND_S * 1.5
        assert length.begin() == expected
    found = []
    for _ in range(40):
        length.end()
        cpu.used_s += BEHIND_S / 2
        found.append(length.begin())
    assert found == sorted(found)
    assert found[-1] == 1.0


def test_what_comes_behind_the_last_tick_does_not_count():
    cpu = Cpu()
    length = TickLength(cpu)
    length.end()
    length.ended_s = None
    cpu.used_s += 60
    assert length.begin() == 1.0


def test_what_is_begun_fits_what_comes_behind_it():
    """Of messages with thousands of keys a tick began ten, whose keys took 60 ms."""
    cpu = Cpu()
    length = TickLength(cpu)
    behind = Counter[bool]()
    for number in range(200):
        begun = max(1, round(10 * length.begin()))
        length.end()
        cpu.used_s += begun * 0.006
        if number > 5:
            behind[begun * 0.006 <= 2 * BEHIND_S] += 1
    assert set(behind) == {True}


def test_what_was_taken_from_a_tick_beforehand_does_not_count_again():
    cpu = Cpu()
    length = TickLength(cpu)
    for _ in range(4):
        length.end(owed_s=BEHIND_S)
        cpu.used_s += BEHIND_S * 1.5
        assert length.begin() == 1.0
    length.end(owed_s=BEHIND_S)
    cpu.used_s += BEHIND_S * 2.5
    assert length.begin() == 0.5


class Owing(Asking):
    """A connection whose turns are work that comes behind their tick."""

    work_s = 0.003
    done_s = 0.0

    def take_turn(self, now: float, until: float) -> int:
        self._fair_queue.owed_s += self.work_s
        asyncio.get_running_loop().call_soon(self._work)
        return super().take_turn(now, until)

    def _work(self) -> None:
        self.done_s += self.work_s


@looped
async def test_work_that_was_taken_from_its_tick_does_not_shorten_the_next_one():
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    owing = Owing("owing", fair_queue, 100, taken)
    fair_queue._length = length = TickLength(lambda: owing.done_s)
    shares: set[float] = set()
    while len(taken) < 90:
        await asyncio.sleep(0)
        shares.add(length._share)
    assert shares == {1.0}
    await until(fair_queue.is_free)
