"""What comes at a partition's end waits until it is open, and is told once a tick."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.newest import PERMITS, Newest
from tests.remoting import looped


class Source:
    """A client whose reader brings what the test says."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.closed = False
        self.start: object = None

    async def reader(self, _, start, *, inclusive, received, lost, permits):
        self.start = start, inclusive
        self.bring, self.lose = received, lost
        self.asked.append(permits)
        return self

    def more(self, permits: int) -> None:
        self.asked.append(permits)

    async def close(self) -> None:
        self.closed = True


def made(taken: list[object]) -> tuple[Newest, list[int]]:
    told: list[int] = []
    partition = SimpleNamespace(full_name="t", grown=lambda: told.append(len(taken)))
    newest = Newest(partition, taken.append, print)
    return newest, told


@looped
async def test_entries_wait_for_the_opening_and_keep_their_order():
    taken: list[object] = []
    source = Source()
    newest, _ = made(taken)
    await newest.open(source, Position(3, 4))
    assert source.start == (Position(3, 4), False)
    source.bring(1)
    source.bring(2)
    assert taken == []
    newest.begin()
    source.bring(3)
    assert taken == [1, 2, 3]
    await newest.close()
    assert source.closed


@looped
async def test_without_an_entry_to_begin_behind_all_of_them_come():
    source = Source()
    newest, _ = made([])
    await newest.open(source, None)
    assert source.start == ("earliest", True)


@looped
async def test_permits_are_asked_for_by_halves_and_never_run_out():
    taken: list[object] = []
    source = Source()
    newest, _ = made(taken)
    await newest.open(source, None)
    newest.begin()
    for number in range(3 * PERMITS):
        assert sum(source.asked) > number
        source.bring(number)
    assert source.asked == [PERMITS, *[PERMITS // 2] * 6]


@looped
async def test_who_waits_is_told_once_for_all_that_came_in_a_tick():
    taken: list[object] = []
    source = Source()
    newest, told = made(taken)
    await newest.open(source, None)
    newest.begin()
    for turn in range(2):
        for _ in range(5):
            source.bring(turn)
            newest.tell()
        await asyncio.sleep(0)
    assert told == [5, 10]
