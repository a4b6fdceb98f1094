"""Ends are written down together, and tried again until they are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node.transactions import TransactionError, end_records
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.wire import message
from ropeway.storage.api import LogUnavailableError, NotReadyError
from tests.gateway.node.transactions.place import ENDS, HALF, place
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


async def written(one) -> dict[End, set[int]]:
    found: dict[End, set[int]] = {}
    async for ended in end_records.read_from(one.partition(ENDS), 0):
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
@pytest.mark.parametrize("missing", [HALF, ENDS])
async def test_what_the_log_refuses_is_written_later(tmp_path: Path, missing: str):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        half = await one.service.find(offset)
        with capture_logs() as logs:
            one.reach.hidden = missing
            assert one.service.end(half, End.COMMITTED, 1, lambda _: None)
            await until(lambda: any("not written" in each["event"] for each in logs))
        assert not one.service.end(half, End.COMMITTED, 1, lambda _: None)
        one.reach.hidden = ""
        await one.written(1)
        await until(lambda: len(one.service) == 0)
        assert await written(one) == {End.COMMITTED: {offset}}


@looped
async def test_who_gives_up_tries_no_more(tmp_path: Path):
    async with place(tmp_path) as one:
        half = await one.service.find(await one.send_half(b"x"))
        one.reach.hidden = ENDS
        assert one.service.end(half, End.COMMITTED, 1, lambda _: None)
        writer = one.service._writer
        await until(lambda: writer._retrying is not None)
        retrying = writer._retrying
        await one.service.give_up()
        assert retrying.done()
        one.reach.hidden = ""


@looped
async def test_who_gives_up_writes_first(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        assert await one.end(offset, End.ROLLED_BACK)
        assert one.service.is_busy
        await one.service.give_up()
        assert await written(one) == {End.ROLLED_BACK: {offset}}
        await one.service.give_up()
        await one.begin()
        with pytest.raises(TransactionError, match="has ended"):
            await one.end(offset, End.ROLLED_BACK)


class Holding:
    """A partition that keeps appends, and fails them when it is told to."""

    def __init__(self, true: Any) -> None:
        self._true = true
        self.kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    def append(self, _records: Any, _store_ms: int, done: Any) -> None:
        self.kept.append(done)


def at_work() -> set[asyncio.Task[Any]]:
    """The tasks of transactions; other parts of the node have theirs."""
    return {
        one
        for one in asyncio.all_tasks()
        if "/transactions/" in one.get_coro().cr_code.co_filename
    }


@looped
async def test_who_has_given_up_tries_nothing_again(tmp_path: Path):
    async with place(tmp_path) as one:
        offsets = [await one.send_half(b"%d" % number) for number in range(2)]
        partitions = one.app.node.topics.get(ENDS).partitions
        true = partitions[0]
        partitions[0] = holding = Holding(true)
        try:
            before = at_work()
            for count, offset in enumerate(offsets, 1):
                assert await one.end(offset, End.ROLLED_BACK)
                await until(lambda: len(holding.kept) == count)  # noqa: B023
            for done in holding.kept:
                done(-1, LogUnavailableError("no"))
            assert len(at_work() - before) == 1
            giving_up = asyncio.ensure_future(one.service.give_up())
            await until(lambda: len(holding.kept) == 3)
            holding.kept[-1](-1, LogUnavailableError("no"))
            await until(giving_up.done)
            assert at_work() <= before
        finally:
            partitions[0] = true


@looped
async def test_who_has_given_up_writes_nothing_behind_it(tmp_path: Path):
    async with place(tmp_path) as one:
        half = await one.service.find(await one.send_half(b"x"))
        one.service.end(half, End.ROLLED_BACK, 1, lambda _: None)
        one.reach.hidden = ENDS
        await one.service.give_up()
        one.reach.hidden = ""
        # Nobody is left who would.
        assert not at_work()
        assert one.partition(ENDS).end == 0


@looped
async def test_who_gives_up_with_nothing_to_write_writes_nothing(tmp_path: Path):
    async with place(tmp_path) as one:
        assert await one.end(await one.send_half(b"x"), End.ROLLED_BACK)
        await one.written(1)
        partitions = one.app.node.topics.get(ENDS).partitions
        true = partitions[0]
        partitions[0] = holding = Holding(true)
        try:
            await one.service.give_up()
            assert not holding.kept
        finally:
            partitions[0] = true


@looped
async def test_topics_that_are_shut_are_opened_for_what_is_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.transactions.writer._RETRY_S", 0.01)
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        partitions = one.app.node.topics.get(ENDS).partitions
        true = partitions[0]

        class Shut(Holding):
            """A partition that nobody has opened."""

            def append(self, _records: Any, _store_ms: int, _done: Any) -> None:
                raise NotReadyError(ENDS)

        partitions[0] = Shut(true)

        async def ready(topic: str, _: object = None) -> None:
            if topic == ENDS:
                partitions[0] = true

        monkeypatch.setattr(one.app.node.log, "ready", ready)
        assert await one.end(offset, End.ROLLED_BACK)
        await one.written(1)
        assert await written(one) == {End.ROLLED_BACK: {offset}}
