"""Messages that nobody acknowledged: where they go, what they say, and how often."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.pop import upkeep
from ropeway.gateway.pop.revive import back_off_ms, original_topic
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.routing.api import Group
from ropeway.storage.api import LogBusyError
from tests.gateway.pop.rig import (
    GROUP,
    INVISIBLE_MS,
    RETRY_V1,
    RETRY_V2,
    TOPIC,
    Popped,
    another,
    popped,
    rigged,
)
from tests.remoting import looped, until
from tests.requests import pulling

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.pop.rig import Rig

DLQ = "%DLQ%readers"


async def next_one(rig: Rig) -> Popped:
    """What is popped when the time of all that is in hand is over."""
    waiting = rig.consumer.client.send(rig.consumer.header(poll_time=60_000))
    await until(lambda: len(rig.pop.polling) == 1)
    rig.pass_time(INVISIBLE_MS + 100)
    return popped(await waiting)


async def stored(rig: Rig, topic: str) -> list[message.Message]:
    """All messages of a topic with one queue."""
    answer = await rig.consumer.client.ask(pulling(topic, group="lookers"))
    return answer.messages()


@looped
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
async def test_what_is_not_acknowledged_comes_again_with_all_that_it_had(
    tmp_path: Path, old
):
    """Visible again after its time; who waits is woken."""
    async with rigged(tmp_path) as rig:
        pairs = {"TAGS": "t", "KEYS": "a b", "user": "ü"}
        await rig.consumer.send(2, pairs=pairs, flag=7)
        found = await rig.consumer.take(2)
        if old:
            await rig.to_ledger()
        assert await rig.consumer.ack(found, 0) == 0
        again = await next_one(rig)
        (one,) = again.messages
        before = found.messages[1]
        assert (one.topic, one.body, one.flag) == (TOPIC, b"1", 7)
        assert (one.reconsume_times, one.born_ms) == (1, before.born_ms)
        told = properties.parse(one.properties)
        assert told.pop("POP_CK") == again.receipt(0, retry=1)
        assert told.pop("1ST_POP_TIME") == str(found.reply.pop_time)
        assert told == properties.parse(before.properties)
        assert again.reply.msg_offset_info == "1 0 0"
        assert await rig.consumer.ack(again, 0, retry=1) == 0
        assert sum(rig.in_hand(RETRY_V1)) == 0
        await until(lambda: rig.committed(RETRY_V1) == 1)
        assert rig.committed() == 2


@looped
@pytest.mark.parametrize("v2", [False, True])
async def test_retries_go_where_the_switch_says_and_stay_there(tmp_path: Path, v2):
    async with rigged(tmp_path, retry_topic_v2=v2) as rig:
        await rig.consumer.send(1)
        await rig.consumer.take(1)
        kind, topic = (2, RETRY_V2) if v2 else (1, RETRY_V1)
        for times in range(1, 4):
            again = await next_one(rig)
            assert again.messages[0].reconsume_times == times
            assert again.reply.start_offset_info == f"{kind} 0 {times - 1}"
        assert len(await stored(rig, topic)) == 3
        first = {
            properties.parse(one.properties)["1ST_POP_TIME"]
            for one in await stored(rig, topic)
        }
        assert len(first) == 1
        # The other kind is read all the same.
        assert await rig.consumer.ack(again, 2, retry=kind) == 0


@looped
async def test_what_came_too_often_is_a_dead_letter(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.app.node.groups.put(Group(name=GROUP, retry_max_times=2))
        # Where a message was sent to, its producer does not say.
        forged = {"RETRY_TOPIC": "bank", "DLQ_ORIGIN_TOPIC": "bank"}
        await rig.consumer.send(1, pairs={"KEYS": "k", **forged})
        found = await rig.consumer.take(1)
        for _ in range(2):
            again = await next_one(rig)
        assert again.messages[0].reconsume_times == 2
        await rig.pass_time_until_done(INVISIBLE_MS + 100)
        (dead,) = await stored(rig, DLQ)
        assert (dead.body, dead.reconsume_times) == (b"0", 3)
        told = properties.parse(dead.properties)
        assert told["RETRY_TOPIC"] == told["DLQ_ORIGIN_TOPIC"] == TOPIC
        assert told["KEYS"] == "k"
        assert "POP_CK" not in told
        rig.pass_time(10 * INVISIBLE_MS)
        assert (await rig.consumer.pop()).messages == []
        assert found.offsets == [0]


@looped
async def test_a_group_without_retries_has_dead_letters_at_once(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.app.node.groups.put(Group(name=GROUP, retry_max_times=0))
        await rig.consumer.send(1)
        await rig.consumer.take(1)
        await rig.pass_time_until_done(INVISIBLE_MS + 100)
        assert len(await stored(rig, DLQ)) == 1


@looped
@pytest.mark.parametrize("at_once", [False, True], ids=["later", "at once"])
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
async def test_what_cannot_be_stored_again_now_is_tried_again_later(
    tmp_path: Path, monkeypatch, old, at_once
):
    async with rigged(tmp_path) as rig:
        await rig.app.node.topics.ensure_derived(RETRY_V1, 1)
        (partition,) = rig.app.node.topics.get(RETRY_V1).partitions
        kind, append, refused = type(partition), type(partition).append, []

        def refuse(to, *more):
            if to is not partition:
                append(to, *more)
                return
            refused.append(rig.clock())
            error = LogBusyError("too much waits")
            if at_once:
                raise error
            asyncio.get_running_loop().call_soon(more[-1], -1, error)

        await rig.consumer.send(1)
        found = await rig.consumer.take(1)
        if old:
            await rig.to_ledger()
        monkeypatch.setattr(kind, "append", refuse)
        await rig.pass_time_until_done(INVISIBLE_MS + 100)
        assert len(refused) == 1
        for attempt in range(1, 4):
            await rig.pass_time_until_done(back_off_ms(attempt - 1) - 1000)
            assert len(refused) == attempt
            await rig.pass_time_until_done(2000)
            assert len(refused) == attempt + 1
        assert sum(rig.in_hand()) == 1
        monkeypatch.setattr(kind, "append", append)
        rig.pass_time(back_off_ms(3) + 1000)
        await until(lambda: rig.in_hand() == (0, 0))
        assert len(await stored(rig, RETRY_V1)) == 1
        assert found.offsets == [0]


def test_waits_grow_and_never_end():
    """The original gives a message up after 16 attempts."""
    waits = [back_off_ms(attempts) for attempts in range(20)]
    assert waits[:3] == [10_000, 30_000, 60_000]
    assert waits == sorted(waits)
    assert waits[16:] == [7_200_000] * 4


@looped
@pytest.mark.parametrize("what", ["group", "topic", "message"])
async def test_what_nobody_can_have_any_more_is_dropped(
    tmp_path: Path, monkeypatch, what
):
    async with rigged(tmp_path) as rig:
        node = rig.app.node
        await rig.consumer.send(2)
        await rig.consumer.take(2)
        await rig.to_ledger()
        if what == "group":
            await node.groups.delete(GROUP)
        elif what == "topic":
            await node.topics.delete(TOPIC)
        else:
            (partition,) = node.topics.get(TOPIC).partitions
            read = type(partition).read_now

            def gone(at, offset, *more):
                return read(at, at.end if at is partition else offset, *more)

            monkeypatch.setattr(type(partition), "read_now", gone)
        await rig.pass_time_until_done(INVISIBLE_MS)
        await until(lambda: not rig.pop.ledger.is_writing())
        assert node.topics.get(RETRY_V1) is None or not await stored(rig, RETRY_V1)
        await rig.until_empty()


@looped
async def test_properties_that_leave_no_room_are_stored_without_notes(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1, pairs={"user": "x"})
        (short,) = await stored(rig, TOPIC)
        room = message.MAX_PROPERTIES_BYTES - len(short.properties) + 1
        await rig.consumer.send(1, pairs={"user": "x" * room})
        await rig.consumer.take(2)
        await rig.pass_time_until_done(INVISIBLE_MS + 100)
        found = [
            properties.parse(one.properties) for one in await stored(rig, RETRY_V1)
        ]
        assert [len(one["user"]) for one in found] == [1, room]
        assert ["1ST_POP_TIME" in one for one in found] == [True, False]


def test_a_retry_topic_is_that_of_its_group():
    assert original_topic("g", "%RETRY%g_t_u") == "t_u"
    assert original_topic("g", "%RETRY%g+t") == "t"
    assert original_topic("g", "t") == "t"
    assert original_topic("g", "%RETRY%g") == "%RETRY%g"
    assert original_topic("h", "%RETRY%g_t") == "%RETRY%g_t"


@looped
async def test_a_roll_back_takes_all_however_much_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upkeep, "DUE_COUNT", 2)
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(5)
        for _ in range(5):
            await rig.consumer.take(1)
        await rig.to_ledger()
        assert rig.in_hand() == (0, 5)
        assert (await rig.consumer.client.ask(200056, fields={})).code == 0
        assert rig.in_hand() == (0, 0)


@looped
async def test_receipts_are_too_late_from_the_beginning_of_a_roll_back(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        found = await rig.consumer.take(1)
        await rig.retried(RETRY_V1, 1)
        bringing = asyncio.Event()
        go_on = asyncio.Event()
        bring = rig.pop._upkeep._revive.bring

        async def slow(*args):
            bringing.set()
            await go_on.wait()
            return await bring(*args)

        rig.pop._upkeep._revive.bring = slow
        async with another(rig) as other:
            rolled_back = other.client.send(200056, fields={})
            await bringing.wait()
            assert await rig.consumer.ack(found, 0) == ResponseCode.NO_MESSAGE
            go_on.set()
            assert (await rolled_back).code == 0


@looped
async def test_a_roll_back_leaves_retries_that_come_in_time(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        old = await rig.consumer.take(2)
        await rig.to_ledger()
        young = await rig.consumer.take(2)
        assert rig.in_hand() == (2, 2)
        assert (await rig.consumer.client.ask(200056, fields={})).code == 0
        assert rig.in_hand() == (0, 0)
        for found in (old, young):
            assert await rig.consumer.ack(found, found.offsets[0]) == 208
        await until(lambda: rig.committed() == 4)
        assert rig.app.node.topics.get(RETRY_V1) is not None
        assert await stored(rig, RETRY_V1) == []
        rig.clock.now_ms += INVISIBLE_MS - 10_000
        rig.app.node.timer.wake()
        await until(lambda: rig.app.node.topics.get(RETRY_V1).partitions[0].end == 2)
        rig.clock.now_ms += 20_000
        rig.app.node.timer.wake()
        await until(lambda: rig.app.node.topics.get(RETRY_V1).partitions[0].end == 4)
        found = await rig.consumer.take(4)
        assert sorted(found.bodies) == [b"0", b"1", b"2", b"3"]
        assert {one.reconsume_times for one in found.messages} == {1}
