"""Producers are asked when it is time, so often, and then no more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node.transactions import records
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.node.transactions.end_transaction import TransactionError
from ropeway.gateway.wire import message, properties
from ropeway.storage.api import Chunk, LogUnavailableError
from tests.gateway.node.transactions.place import (
    GIVEN_UP,
    GROUP,
    HALF,
    Refusing,
    Slow,
    place,
)
from tests.remoting import looped, until
from tests.requests import pulling

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_producer_is_asked_after_6_s_and_then_each_30_s(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.send_half(b"x", KEYS="k", TAGS="t")
        await one.clock.advance(5999)
        assert one.asked == []
        await one.clock.advance(1001)
        (question,) = one.asked
        identity = one.app.node.topics.get(HALF).id_bases[0] | 1
        assert question.tran_state_table_offset == 1
        assert question.commit_log_offset == identity
        assert question.msg_id == question.transaction_id == f"{b'x'.hex():0>32}"
        assert question.offset_msg_id == f"7F00000100002A9F{identity:016X}"
        assert (question.topic, question.bname) == (HALF, "broker-0")
        (shown,) = one.shown
        assert (shown.topic, shown.queue_id, shown.body) == ("orders", 0, b"x")
        assert (shown.queue_offset, shown.message_id) == (1, identity)
        pairs = properties.parse(shown.properties)
        assert (pairs["KEYS"], pairs["TAGS"], pairs["PGROUP"]) == ("k", "t", GROUP)
        assert pairs["TRANSACTION_CHECK_TIMES"] == "1"
        await one.clock.advance(29_000)
        assert len(one.asked) == 1
        await one.clock.advance(2000)
        assert [each.tran_state_table_offset for each in one.asked] == [1, 2]
        pairs = properties.parse(one.shown[1].properties)
        assert pairs["TRANSACTION_CHECK_TIMES"] == "2"
        assert pairs["TRAN_PREPARED_QUEUE_OFFSET"] == "0"


@looped
async def test_what_has_ended_is_not_asked_about(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.end(await one.send_half(b"1"), End.COMMITTED)
        await one.end(await one.send_half(b"2"), End.ROLLED_BACK)
        await one.written(2)
        await one.clock.advance(100_000)
        assert one.asked == []
        assert one.partition(HALF).end == 2


@looped
async def test_a_message_may_want_another_time_and_is_kept_until_then(tmp_path: Path):
    async with place(tmp_path, check_interval_ms=10_000) as one:
        await one.send_half(b"soon", CHECK_IMMUNITY_TIME_IN_SECONDS="2")
        await one.send_half(b"late", CHECK_IMMUNITY_TIME_IN_SECONDS="25")
        await one.send_half(b"none", CHECK_IMMUNITY_TIME_IN_SECONDS="never")
        await one.clock.advance(3000)
        assert [each.body for each in one.shown] == [b"soon"]
        await one.clock.advance(4000)
        assert [each.body for each in one.shown] == [b"soon", b"none"]
        for _ in range(17):
            await one.clock.advance(1000)
        assert b"late" not in [each.body for each in one.shown]
        for _ in range(2):
            await one.clock.advance(1000)
        late = [each for each in one.shown if each.body == b"late"]
        pairs = properties.parse(late[0].properties)
        assert pairs["TRANSACTION_CHECK_TIMES"] == "1"
        # It was stored again twice meanwhile, so that it stays near the end.
        assert pairs["TRAN_PREPARED_QUEUE_OFFSET"] == "1"
        await one.end(1, End.COMMITTED)
        assert await one.bodies() == [b"first", b"late"]


@looped
async def test_after_15_times_it_is_given_up_and_kept_aside(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"lost", KEYS="k")
        await one.clock.advance(7000)
        for _ in range(14):
            await one.clock.advance(31_000)
        assert len(one.asked) == 15
        assert len(one.service) == 1
        await one.clock.advance(31_000)
        await one.written(1)
        assert len(one.asked) == 15
        assert len(one.service) == 0
        (kept,) = (await one.client.ask(pulling(GIVEN_UP))).messages()
        assert (kept.body, kept.sys_flag & message.TRANSACTION_MASK) == (b"lost", 0)
        pairs = properties.parse(kept.properties)
        assert (pairs["REAL_TOPIC"], pairs["REAL_QID"]) == ("orders", "0")
        assert pairs["TRANSACTION_CHECK_TIMES"] == "15"
        found = await one.app.node.log.query(GIVEN_UP, "k", 0, 1 << 62, 10)
        assert len(found) == 1
        half = await one.service.find(offset)
        assert one.service.ended(half.origin) is End.GIVEN_UP
        assert await one.bodies() == [b"first"]


@looped
async def test_one_whose_end_failed_after_the_look_is_asked_about(tmp_path: Path):
    async with place(tmp_path) as one:
        half = await one.service.find(await one.send_half(b"x"))
        partitions = one.app.node.topics.get("orders").partitions
        true = partitions[0]
        partitions[0] = slow = Slow(true)
        one.service.end(half, End.COMMITTED, 1, lambda _: None)
        await one.clock.advance(7000)
        assert one.asked == []
        (done,) = slow.waiting
        done(-1, LogUnavailableError("no"))
        partitions[0] = true
        await one.clock.advance(29_000)
        assert one.asked == []
        await one.clock.advance(2000)
        (question,) = one.asked
        assert await one.end(question.tran_state_table_offset, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x"]


@looped
async def test_one_that_is_just_being_ended_is_left_alone(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        half = await one.service.find(offset)
        await one.clock.advance(6000)
        one.asked.clear()
        one.service.end(half, End.ROLLED_BACK, 1, lambda _: None)
        await one.clock.advance(40_000)
        await one.clock.advance(40_000)
        assert one.asked == []


@looped
@pytest.mark.parametrize("at_once", [True, False])
async def test_one_that_could_not_be_stored_again_is_asked_about_a_second_later(
    tmp_path: Path, at_once: bool
):
    async with place(tmp_path) as one:
        await one.send_half(b"x")
        partitions = one.app.node.topics.get(HALF).partitions
        true = partitions[0]

        partitions[0] = Refusing(true, at_once=at_once)
        await one.clock.advance(7000)
        assert one.asked == []
        partitions[0] = true
        await one.clock.advance(2000)
        await one.clock.advance(2000)
        assert len(one.asked) == 1


@looped
async def test_one_that_ends_just_before_it_is_given_up_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with place(tmp_path, check_max=1) as one:
        half = await one.service.find(await one.send_half(b"x"))
        await one.send_half(b"another", CHECK_IMMUNITY_TIME_IN_SECONDS="35")
        await one.clock.advance(7000)
        partitions = one.app.node.topics.get("orders").partitions
        true = partitions[0]
        partitions[0] = slow = Slow(true)
        make = one.reach.ensure_derived

        async def ends_meanwhile(name: str, queues: int) -> Any:
            one.service.end(half, End.COMMITTED, 1, lambda _: None)
            monkeypatch.undo()
            return await make(name, queues)

        monkeypatch.setattr(one.reach, "ensure_derived", ends_meanwhile)
        await one.clock.advance(31_000)
        assert len(slow.waiting) == 1
        assert one.partition(GIVEN_UP).end == 0
        # Others are asked about all the same.
        assert [each.body for each in one.shown] == [b"x", b"another"]
        # That end fails after all, so nobody knows how it ended.
        slow.waiting[0](-1, LogUnavailableError("no"))
        partitions[0] = true
        await one.clock.advance(2000)
        await one.written(1)
        assert one.partition(GIVEN_UP).end == 1


@looped
async def test_one_that_leaves_no_room_for_a_copy_is_given_up_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As one may be that was stored by a version that did not look at that."""
    monkeypatch.setattr(records, "COPY_ROOM_BYTES", 0)
    async with place(tmp_path) as one:
        first = await one.service.find(await one.send_half(b"short", PAD=""))
        pad = "x" * (message.MAX_PROPERTIES_BYTES - len(first.text))
        await one.send_half(b"stuck", PAD=pad)
        await one.send_half(b"behind")
        await one.clock.advance(7000)
        assert [each.body for each in one.shown] == [b"short", b"behind"]
        await one.written(1)
        assert await one.bodies(GIVEN_UP) == [b"stuck"]
        assert len(one.service) == 2


@looped
async def test_what_is_due_while_the_topic_is_not_served_is_asked_about_after_it(
    tmp_path: Path,
):
    async with place(tmp_path) as one:
        await one.send_half(b"x")
        one.reach.hidden = HALF
        await one.clock.advance(7000)
        assert one.asked == []
        one.reach.hidden = ""
        await one.clock.advance(1000)
        assert len(one.asked) == 1


@looped
@pytest.mark.parametrize("instead", ["nothing", "damage", "another"])
async def test_one_that_the_log_has_lost_is_forgotten_and_others_are_asked_about(
    tmp_path: Path, instead: str
):
    async with place(tmp_path) as one:
        await one.send_half(b"lost")
        await one.send_half(b"there")
        partitions = one.app.node.topics.get(HALF).partitions
        true = partitions[0]

        class Lossy(Slow):
            """A partition that has not got its first record any more."""

            append = property(lambda _: true.append)

            async def read(self, offset: int, *limits: Any) -> Chunk:
                if offset:
                    return await true.read(offset, *limits)
                if instead == "nothing":
                    return Chunk([], 0, 1)
                if instead == "damage":
                    return Chunk([bytes(200)], 1, 1)
                return await true.read(1, *limits)

        partitions[0] = Lossy(true)
        with capture_logs() as logs:
            await one.clock.advance(7000)
        assert [each.body for each in one.shown] == [b"there"]
        assert len(one.service) == 1
        assert [each["event"] for each in logs].count("open transaction lost") == 1
        partitions[0] = true


@looped
async def test_one_that_ends_while_it_is_stored_again_stays_ended(tmp_path: Path):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        partitions = one.app.node.topics.get(HALF).partitions
        true = partitions[0]
        partitions[0] = slow = Slow(true)
        looking = asyncio.ensure_future(one.clock.advance(7000))
        await until(lambda: slow.waiting)
        assert await one.end(offset, End.ROLLED_BACK)
        await until(lambda: len(one.service) == 0)
        slow.waiting[0](1, None)
        await looking
        partitions[0] = true
        assert len(one.service) == 0
        await one.clock.advance(40_000)
        assert one.asked == []


@looped
async def test_one_that_is_just_being_given_up_is_not_committed(tmp_path: Path):
    async with place(tmp_path, check_max=1) as one:
        offset = await one.send_half(b"x")
        await one.clock.advance(7000)
        topic = await one.reach.ensure_derived(GIVEN_UP, 1)
        true = topic.partitions[0]
        topic.partitions[0] = slow = Slow(true)
        looking = asyncio.ensure_future(one.clock.advance(31_000))
        await until(lambda: slow.waiting)
        with pytest.raises(TransactionError, match="just being ended"):
            await one.end(offset, End.COMMITTED)
        slow.waiting[0](0, None)
        topic.partitions[0] = true
        await looking
        await one.written(1)
        assert await one.bodies() == [b"first"]


@looped
async def test_one_that_could_not_be_given_up_is_given_up_later(tmp_path: Path):
    async with place(tmp_path, check_max=1) as one:
        offset = await one.send_half(b"x")
        await one.clock.advance(7000)
        topic = await one.reach.ensure_derived(GIVEN_UP, 1)
        true = topic.partitions[0]
        topic.partitions[0] = Refusing(true, at_once=False)
        await one.clock.advance(31_000)
        assert len(one.service) == 1
        topic.partitions[0] = true
        await one.clock.advance(2000)
        await one.written(1)
        assert await one.bodies(GIVEN_UP) == [b"x"]
        half = await one.service.find(offset)
        assert one.service.ended(half.origin) is End.GIVEN_UP
