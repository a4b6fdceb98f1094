"""Ends are written down together, and tried again until they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.node.transactions import TransactionError, ends
from gateway.node.transactions.ends import End
from gateway.wire import message
from tests.gateway.node.transactions.place import ENDS, place
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


async def written(one) -> dict[End, set[int]]:
    found: dict[End, set[int]] = {}
    async for ended in ends.read_from(one.partition(ENDS), 0):
        found.setdefault(ended.how, set()).update(ended.origins)
    return found


@looped
async def test_what_ends_at_once_is_written_together(tmp_path: Path):
    async with place(tmp_path) as one:
        halves = [
            await one.service.find(await one.send_half(b"%d" % number))
            for number in range(40)
        ]
        for half in halves:
            how = End.COMMITTED if half.offset % 4 else End.ROLLED_BACK
            one.service.end(half, how, 1, lambda _: None)
        await until(lambda: len(one.service) == 0)
        assert await written(one) == {
            End.COMMITTED: {number for number in range(40) if number % 4},
            End.ROLLED_BACK: set(range(0, 40, 4)),
        }
        assert one.partition(ENDS).end <= 4
        chunk = await one.partition(ENDS).read(0, 1, 1)
        stored = message.decode(chunk.data[0])
        assert stored.topic == ENDS
        assert stored.properties.startswith("TAGS\x01d\x02")


@looped
async def test_what_the_log_refuses_is_written_later(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        one.reach.hidden = ENDS
        assert await one.end(offset, End.COMMITTED)
        assert not await one.end(offset, End.COMMITTED)
        one.reach.hidden = ""
        await one.written(1)
        await until(lambda: len(one.service) == 0)
        assert await written(one) == {End.COMMITTED: {offset}}


@looped
async def test_who_gives_up_writes_first(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        assert await one.end(offset, End.ROLLED_BACK)
        await one.service.give_up()
        assert await written(one) == {End.ROLLED_BACK: {offset}}
        await one.service.give_up()
        await one.begin()
        with pytest.raises(TransactionError, match="has ended"):
            await one.end(offset, End.ROLLED_BACK)
