"""Stored messages are sent elsewhere as their producers sent them, and no more."""

from __future__ import annotations

import asyncio

from ropeway.client import Admin, Message, Producer, admin_copies, admin_trims
from ropeway.gateway.wire import properties
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_mirrors import target

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
