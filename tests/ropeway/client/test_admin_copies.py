"""Stored messages are sent elsewhere as their producers sent them, and no more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from ropeway.client import Admin, Message, Producer, admin_copies, admin_trims
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire import properties
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_mirrors import target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["target"]


@scenario
async def test_what_its_sender_said_is_sent_and_what_brokers_did_is_not_done_again(
    name_server, topic, target
):
    async with (
        Admin(name_server, config=PATIENT) as there,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await there.create_topic(topic, 1)
        await here.create_topic(topic, 1)
        (source,) = (await there.route(topic)).read_queues
        (ours,) = (await here.route(topic)).read_queues
        big = Message(topic, b"x" * 10_000, tags="t", keys=("a", "b"), flag=7)
        sent = [await producer.send(big)]
        sent += [await producer.send(Message(topic, b"y", delay_level=1))]
        while (await there.span(source)).end < 2:  # noqa: ASYNC110 - it is due soon
            await asyncio.sleep(0.05)
        read = [one async for one in admin_copies.messages(there, source, 0, 2)]
        for number, one in enumerate(read):
            assert await admin_copies.send(here, ours, one, {"MORE": "1"}) == number
        copies = [one async for one in admin_copies.messages(here, ours, 0, 2)]
        for theirs, mine, result in zip(read, copies, sent, strict=True):
            pairs = properties.parse(mine.properties)
            assert (pairs["MORE"], pairs["UNIQ_KEY"]) == ("1", result.msg_id)
            assert not {"DELAY", "REAL_TOPIC", "REAL_QID"} & pairs.keys()
            assert (mine.body, mine.flag) == (theirs.body, theirs.flag)
            assert mine.born_ms == theirs.born_ms
        (found,) = await here.query(topic, "b")
        assert (found.body, found.tags) == (big.body, "t")


@scenario
async def test_messages_of_one_moment_go_together_each_with_what_is_its_own(
    name_server, topic, target
):
    async with (
        Admin(name_server, config=PATIENT) as there,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(target.name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await there.create_topic(topic, 1)
        await here.create_topic(topic, 1)
        (theirs,) = (await there.route(topic)).read_queues
        (ours,) = (await here.route(topic)).read_queues
        sent = [
            await producer.send(
                Message(topic, b"%d" % number, tags=f"t{number}", flag=number)
            )
            for number in range(5)
        ]
        read = [one async for one in admin_copies.messages(here, ours, 0, 5)]
        first_ms = read[0].born_ms
        given = [(one, {"AT": str(one.queue_offset)}) for one in read]
        assert await admin_copies.send_all(there, theirs, given) == 0
        while (await there.span(theirs)).end < 5:  # noqa: ASYNC110 - a moment later
            await asyncio.sleep(0.05)
        copies = [one async for one in admin_copies.messages(there, theirs, 0, 5)]
        for number, (one, result) in enumerate(zip(copies, sent, strict=True)):
            pairs = properties.parse(one.properties)
            assert (one.body, one.flag) == (b"%d" % number, number)
            assert (pairs["TAGS"], pairs["AT"]) == (f"t{number}", str(number))
            assert (pairs["UNIQ_KEY"], one.born_ms) == (result.msg_id, first_ms)


MESSAGE = stored.Message(**dict.fromkeys(stored.Message.__struct_fields__, 0))


def at(born_ms: int, **more: object) -> stored.Message:
    return structs.replace(MESSAGE, **{"body": b"x", "born_ms": born_ms, **more})


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ([], []),
        ([at(5), at(5), at(6)], [3]),
        ([at(5), at(15), at(16), at(26), at(1)], [2, 2, 1]),
        ([at(20), at(10), at(9)], [2, 1]),
        ([at(0)] * 300, [128, 128, 44]),
        ([at(0, body=bytes(100 << 10))] * 3, [2, 1]),
        ([at(0, body=bytes(300 << 10))] * 2, [1, 1]),
        ([at(0), at(0, sys_flag=stored.COMPRESSED_FLAG), at(0)], [1, 1, 1]),
    ],
)
@scenario
async def test_what_goes_in_one_request_was_born_within_some_milliseconds(given, sizes):
    async def found() -> AsyncIterator[stored.Message]:
        for one in given:
            yield one

    groups = [group async for group in admin_copies.together(found())]
    assert [len(group) for group in groups] == sizes
    assert [one for group in groups for one in group] == given


@scenario
async def test_what_is_gone_is_passed_over(ropeway_gateway, topic):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as admin,
        Producer(where, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await admin.create_topic(topic, 1)
        (queue,) = (await admin.route(topic)).read_queues
        for number in range(40):
            await producer.send(Message(topic, b"%d" % number))
        await admin_trims.trim(admin, topic, queue_id=0, offset=3)
        read = [one async for one in admin_copies.messages(admin, queue, 1, 38)]
        assert [one.queue_offset for one in read] == list(range(3, 38))
        assert [one async for one in admin_copies.messages(admin, queue, 40, 40)] == []
