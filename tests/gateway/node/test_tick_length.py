"""Ticks are shorter while much comes behind them."""

from __future__ import annotations

from collections import Counter

from ropeway.gateway.node.tick_length import BEHIND_S, LEAST, TickLength


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
        length.end(more=True)
        cpu.used_s += BEHIND_S * 1.5
        assert length.begin() == expected
    found = []
    for _ in range(40):
        length.end(more=True)
        cpu.used_s += BEHIND_S / 2
        found.append(length.begin())
    assert found == sorted(found)
    assert found[-1] == 1.0


def test_what_comes_behind_the_last_tick_does_not_count():
    cpu = Cpu()
    length = TickLength(cpu)
    length.end(more=False)
    cpu.used_s += 60
    assert length.begin() == 1.0


def test_what_is_begun_fits_what_comes_behind_it():
    """Of messages with thousands of keys a tick began ten, whose keys took 60 ms."""
    cpu = Cpu()
    length = TickLength(cpu)
    behind = Counter[bool]()
    for number in range(200):
        begun = max(1, round(10 * length.begin()))
        length.end(more=True)
        cpu.used_s += begun * 0.006
        if number > 5:
            behind[begun * 0.006 <= 2 * BEHIND_S] += 1
    assert set(behind) == {True}
