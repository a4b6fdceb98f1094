"""Cold reads get a share of the event loop, and all of it when nobody else works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import Chunk
from ropeway.storage.tiered.loop_share import (
    ANSWER_S,
    BYTE_S,
    HOT_S,
    IDLE_TURN_S,
    LONGEST_S,
    SHARE,
    LoopShare,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TURN_S = 2 * IDLE_TURN_S
"""Of a loop that has work."""


class Loop:
    """A log that is written to in each turn of the loop, which takes a while."""

    def __init__(self) -> None:
        self.now = 100.0
        self.written = 0
        self.fair_queue = 0
        self.turn_s = TURN_S
        self.writes = True
        self.done: list[str] = []
        self.share = LoopShare(lambda: self.written, lambda: self.now)
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self.fair_queue += 1
        self.now += self.turn_s
        self.written += self.writes
        asyncio.get_running_loop().call_soon(self._turn)

    def reading(self, name: str, size: int = 0, takes_s: float = 0.0):
        def read() -> Chunk:
            self.now += takes_s
            self.done.append(name)
            return Chunk([bytes(size)], 1, 1)

        return read

    async def until(self, is_so: Callable[[], object]) -> None:
        while not is_so():  # noqa: ASYNC110 - turn by turn is what is tested
            await asyncio.sleep(0)

    async def turns_for(self, *reads) -> int:
        """How many turns it takes until all have been done."""
        before = self.fair_queue
        await asyncio.gather(*map(self.share.take, reads))
        return self.fair_queue - before


def run(test) -> None:
    """Run a test in a loop that is written to."""

    async def main() -> None:
        loop = Loop()
        await loop.until(lambda: loop.written)
        await test(loop)

    asyncio.run(main())


@pytest.mark.parametrize(("size", "takes_s"), [(0, 0.0), (100_000, 0.0), (0, 2e-4)])
def test_beside_hot_work_reads_take_their_share(size, takes_s) -> None:
    async def test(loop) -> None:
        count, began = 20, loop.now
        await loop.turns_for(*[loop.reading("cold", size, takes_s)] * count)
        taken_s = count * (ANSWER_S + size * BYTE_S + takes_s)
        assert taken_s / (loop.now - began) == pytest.approx(SHARE, rel=0.2)

    run(test)


def test_who_came_first_reads_first() -> None:
    async def test(loop) -> None:
        names = [f"{number}" for number in range(9)]
        await loop.turns_for(*map(loop.reading, names))
        assert loop.done == names

    run(test)


def test_a_turn_without_work_lets_the_next_one_read() -> None:
    async def test(loop) -> None:
        loop.turn_s = IDLE_TURN_S / 2
        reads = [loop.reading("large", 1_000_000)] * 5
        assert await loop.turns_for(*reads) <= len(reads) + 4

    run(test)


def test_while_nothing_is_written_reads_do_not_wait() -> None:
    async def test(loop) -> None:
        loop.writes = False
        loop.share.do(loop.reading("hot still"))
        assert not loop.share.is_free
        loop.now += HOT_S
        for _ in range(5):
            assert loop.share.is_free
            loop.share.do(loop.reading("at once", 1_000_000))
        loop.written += 1
        assert not loop.share.is_free

    run(test)


def test_those_who_wait_read_when_writing_ends() -> None:
    async def test(loop) -> None:
        loop.writes = False
        loop.turn_s = HOT_S
        loop.share.do(loop.reading("first", 100_000_000))
        assert await loop.turns_for(*[loop.reading("then", 100_000_000)] * 50) <= 5

    run(test)


def test_reads_after_a_long_turn_are_no_longer_than_they_may_be() -> None:
    async def test(loop) -> None:
        loop.share.do(loop.reading("first"))
        reads = [loop.share.take(loop.reading("then")) for _ in range(200)]
        waiting = asyncio.gather(*reads)
        loop.turn_s = 1.0
        before = len(loop.done)
        await loop.until(lambda: len(loop.done) > before + 1)
        assert len(loop.done) - before <= LONGEST_S / ANSWER_S + 2
        await waiting

    run(test)


def test_what_a_read_raises_is_raised_to_who_waits_for_it() -> None:
    async def test(loop) -> None:
        def fail() -> Chunk:
            raise LookupError("missing")

        loop.share.do(loop.reading("first"))
        assert not loop.share.is_free
        failing = asyncio.ensure_future(loop.share.take(fail))
        await loop.share.take(loop.reading("then"))
        with pytest.raises(LookupError, match="missing"):
            await failing
        assert loop.done == ["first", "then"]

    run(test)


def test_a_read_that_nobody_waits_for_any_more_is_not_done() -> None:
    async def test(loop) -> None:
        loop.share.do(loop.reading("first"))
        left = asyncio.ensure_future(loop.share.take(loop.reading("left")))
        await asyncio.sleep(0)
        left.cancel()
        await loop.share.take(loop.reading("then"))
        assert loop.done == ["first", "then"]

    run(test)


def test_a_debt_is_looked_at_no_longer_than_there_is_one() -> None:
    async def main() -> None:
        now = iter(range(10**6))
        looks = 0

        def clock() -> float:
            nonlocal looks
            looks += 1
            return float(next(now))

        share = LoopShare(lambda: looks, clock)
        share.do(lambda: Chunk([b""], 1, 1))
        while True:
            before = looks
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if looks == before:
                break
        assert share.is_free

    asyncio.run(main())
