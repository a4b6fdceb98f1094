"""Open transactions are those that the log says, whenever a node dies."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node.transactions import TransactionError
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.wire import message, properties
from ropeway.storage.api import (
    Chunk,
    LogUnavailableError,
    NoSuchPartitionError,
    NotReadyError,
)
from tests.gateway.node.transactions.place import (
    ENDS,
    GIVEN_UP,
    HALF,
    Refusing,
    Slow,
    place,
)
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.node.transactions.place import Place

GROUP = "CID_RMQ_SYS_TRANS"


async def start_again(one: Place) -> None:
    """Another node takes over from one that is dead."""
    one.kill()
    await one.begin()
    one.asked.clear()


async def ask_all(one: Place) -> list[int]:
    """Let the time come at which every open transaction is asked about."""
    await one.clock.advance(40_000)
    return [question.tran_state_table_offset for question in one.asked]


@looped
async def test_a_kill_after_the_half_message_leaves_it_open(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.send_half(b"x")
        await start_again(one)
        (named,) = await ask_all(one)
        assert await one.end(named, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x"]


@pytest.mark.rule("transactions.md", "what was committed is never lost")
@looped
async def test_a_kill_while_it_is_committed_may_repeat_it_and_not_lose_it(
    tmp_path: Path,
):
    async with place(tmp_path) as one:
        half = await one.service.find(await one.send_half(b"x"))
        one.service.end(half, End.COMMITTED, 1, lambda _: None)
        await start_again(one)
        (named,) = await ask_all(one)
        assert await one.end(named, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x", b"x"]


@looped
async def test_a_kill_before_the_end_is_written_down_may_repeat_it(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        assert await one.end(offset, End.COMMITTED)
        await start_again(one)
        assert one.partition(ENDS).end == 0
        (named,) = await ask_all(one)
        assert await one.end(named, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x", b"x"]


@looped
@pytest.mark.parametrize("how", [End.COMMITTED, End.ROLLED_BACK])
async def test_a_kill_after_that_repeats_nothing(tmp_path: Path, how: End):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        assert await one.end(offset, how)
        await one.written(1)
        assert one.app.node.offsets.get(GROUP, HALF, 0) is None
        await start_again(one)
        assert await ask_all(one) == []
        assert not await one.end(offset, how)
        committed = [b"first", b"x"] if how is End.COMMITTED else [b"first"]
        assert await one.bodies() == committed


@looped
async def test_a_kill_before_a_rollback_is_written_down_asks_again(tmp_path: Path):
    async with place(tmp_path) as one:
        assert await one.end(await one.send_half(b"x"), End.ROLLED_BACK)
        await start_again(one)
        (named,) = await ask_all(one)
        assert await one.end(named, End.ROLLED_BACK)
        assert await one.bodies() == [b"first"]


@looped
async def test_a_kill_at_a_question_leaves_one_transaction(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.send_half(b"x")
        await one.clock.advance(7000)
        assert one.partition(HALF).end == 2
        await start_again(one)
        assert len(one.service) == 1
        (named,) = await ask_all(one)
        assert (named, len(one.service)) == (2, 1)
        assert await one.end(1, End.COMMITTED)
        assert not await one.end(0, End.COMMITTED)
        assert not await one.end(2, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x"]


@looped
async def test_a_kill_while_it_is_given_up_may_keep_it_twice(tmp_path: Path):
    async with place(tmp_path, check_max=1) as one:
        await one.send_half(b"x")
        await one.clock.advance(7000)
        one.reach.hidden = ENDS
        await one.clock.advance(31_000)
        await until(lambda: one.app.node.topics.get(GIVEN_UP) is not None)
        await until(lambda: one.partition(GIVEN_UP).end == 1)
        await start_again(one)
        await one.clock.advance(40_000)
        await one.written(1)
        assert one.partition(GIVEN_UP).end == 2
        await start_again(one)
        assert await ask_all(one) == []


@looped
async def test_a_start_reads_from_the_oldest_open_transaction(tmp_path: Path):
    async with place(tmp_path) as one:
        for number in range(300):
            offset = await one.send_half(b"%d" % number)
            if number != 200:
                assert await one.end(offset, End.COMMITTED)
        await until(lambda: len(one.service) == 1)
        await one.clock.advance(1000)
        assert one.app.node.offsets.get(GROUP, HALF, 0) == 200
        await start_again(one)
        assert await ask_all(one) == [300]
        assert await one.end(300, End.COMMITTED)
        await until(lambda: len(one.service) == 0)
        await one.service.give_up()
        assert one.app.node.offsets.get(GROUP, HALF, 0) == 301


@looped
@pytest.mark.parametrize("floor", [0, 7, 10, 10_000])
async def test_a_stale_floor_changes_nothing(tmp_path: Path, floor: int):
    async with place(tmp_path) as one:
        offsets = [await one.send_half(b"%d" % number) for number in range(10)]
        for offset in offsets[:9]:
            assert await one.end(offset, End.ROLLED_BACK)
        await until(lambda: len(one.service) == 1)
        await one.clock.advance(7000)
        assert one.partition(HALF).end == 11
        one.kill()
        one.app.node.offsets.commit(GROUP, HALF, 0, floor)
        await one.begin()
        one.asked.clear()
        # One that is ahead of the log is from before a backup was restored.
        assert await ask_all(one) == [11]


@looped
async def test_what_is_ended_twice_is_told_so_and_stored_once(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        assert await one.end(offset, End.COMMITTED)
        assert not await one.end(offset, End.COMMITTED)
        with pytest.raises(TransactionError, match="was committed before"):
            await one.end(offset, End.ROLLED_BACK)
        await one.written(1)
        with pytest.raises(TransactionError, match="was committed before"):
            await one.end(offset, End.ROLLED_BACK)
        assert await one.bodies() == [b"first", b"x"]


@looped
async def test_one_end_at_a_time(tmp_path: Path):
    async with place(tmp_path) as one:
        half = await one.service.find(await one.send_half(b"x"))
        done = asyncio.get_running_loop().create_future()
        assert one.service.end(half, End.COMMITTED, 1, done.set_result)
        with pytest.raises(TransactionError, match="just being ended"):
            one.service.end(half, End.COMMITTED, 1, done.set_result)
        assert await done is None
        assert await one.bodies() == [b"first", b"x"]


@looped
@pytest.mark.parametrize("offset", [1, 12345, 1 << 51])
async def test_what_is_not_there_is_not_found(tmp_path: Path, offset: int):
    async with place(tmp_path) as one:
        with pytest.raises(TransactionError, match="Find prepared transaction message"):
            await one.service.find(offset)
        await one.send_half(b"x")
        with pytest.raises(TransactionError, match=f"none at offset {offset}"):
            await one.service.find(offset)


@looped
async def test_a_topic_that_was_deleted_keeps_its_transaction_open(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x", topic="gone")
        with pytest.raises(NoSuchPartitionError, match="gone"):
            await one.end(offset, End.COMMITTED)
        assert len(one.service) == 1
        assert await one.end(offset, End.ROLLED_BACK)


@looped
async def test_a_committed_message_waits_for_its_delay(tmp_path: Path):
    async with place(tmp_path) as one:
        assert await one.end(await one.send_half(b"x", DELAY="18"), End.COMMITTED)
        assert await one.bodies() == [b"first"]
        waiting = one.app.node.topics.get("SCHEDULE_TOPIC_XXXX").partitions[17]
        chunk = await waiting.read(0, 1, 1)
        pairs = properties.parse(message.decode(chunk.data[0]).properties)
        assert (pairs["REAL_TOPIC"], pairs["REAL_QID"]) == ("orders", "0")
        assert await one.end(await one.send_half(b"y", DELAY="0"), End.COMMITTED)
        assert await one.bodies() == [b"first", b"y"]


@looped
async def test_one_that_was_given_up_can_be_begun_anew(tmp_path: Path):
    async with place(tmp_path, check_max=1) as one:
        offset = await one.send_half(b"x")
        await one.clock.advance(7000)
        await one.clock.advance(31_000)
        await one.written(1)
        half = await one.service.find(offset)
        one.asked.clear()
        await one.service.resume(half)
        assert len(one.service) == 1
        await one.clock.advance(7000)
        (question,) = one.asked
        assert await one.end(question.tran_state_table_offset, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x"]


@looped
async def test_an_end_waits_until_it_is_known_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        one.kill()
        monkeypatch.setattr("ropeway.gateway.node.transactions.service._KNOWN_S", 0.05)
        await one.service.give_up()
        assert one.service.find_now(offset) is None
        with pytest.raises(NotReadyError):
            await one.service.find(offset)


@looped
async def test_a_start_says_what_it_found_and_how_long_that_took(tmp_path: Path):
    async with place(tmp_path) as one:
        for number in range(3):
            offset = await one.send_half(b"%d" % number)
        assert await one.end(offset, End.COMMITTED)
        await one.written(1)
        one.kill()
        began_s = time.monotonic()
        with capture_logs() as logs:
            await one.begin()
        (line,) = (each for each in logs if each["event"] == "transactions known")
        assert (line["open"], line["read"]) == (2, 3)
        assert 0 <= line["took_ms"] <= (time.monotonic() - began_s) * 1000 + 1


@looped
@pytest.mark.parametrize("at_once", [True, False])
async def test_one_that_cannot_be_begun_anew_stays_given_up(
    tmp_path: Path, at_once: bool
):
    async with place(tmp_path) as one:
        half = await one.service.find(await one.send_half(b"x"))
        assert await one.end(half.offset, End.ROLLED_BACK)
        await until(lambda: len(one.service) == 0)
        partitions = one.app.node.topics.get(HALF).partitions
        true = partitions[0]
        partitions[0] = Refusing(true, at_once=at_once)
        with pytest.raises(LogUnavailableError, match="disk full"):
            await one.service.resume(half)
        partitions[0] = true
        assert len(one.service) == 0


@looped
@pytest.mark.parametrize("instead", ["nothing", "another"])
async def test_what_the_log_has_lost_is_not_found(tmp_path: Path, instead: str):
    async with place(tmp_path) as one:
        for number in range(2):
            await one.send_half(b"%d" % number)
        partitions = one.app.node.topics.get(HALF).partitions
        true = partitions[0]

        class Lossy(Slow):
            """A partition that has not got its first record any more."""

            async def read(self, _offset: int, *limits: Any) -> Chunk:
                if instead == "nothing":
                    return Chunk([], 0, 1)
                return await true.read(1, *limits)

        partitions[0] = Lossy(true)
        with pytest.raises(TransactionError, match="none at offset 0"):
            await one.service.find(0)
        partitions[0] = true
