"""Looking at topics, groups and messages, and changing topics."""

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    ResponseError,
    TopicNotFoundError,
)
from tests.ropeway.client.scenario import (
    PATIENT,
    PRODUCER,
    Inbox,
    consumer,
    eventually,
    numbered,
    scenario,
    send_all,
)


@scenario
async def test_a_topic_is_created_listed_and_described(name_server, topic):
    async with Admin(name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 3)
        await eventually(admin.topics, lambda topics: topic in topics)
        spans = await admin.describe_topic(topic)
        assert [(s.queue.queue_id, s.begin, s.end) for s in spans] == [
            (0, 0, 0),
            (1, 0, 0),
            (2, 0, 0),
        ]


@scenario
async def test_a_deleted_topic_is_gone(ropeway_gateway, topic):
    """Only with ours: the real broker of these tests has no timers, and fails there."""
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 3)
        await admin.delete_topic(topic)
        await eventually(admin.topics, lambda topics: topic not in topics)
        with pytest.raises(TopicNotFoundError):
            await admin.describe_topic(topic)


@scenario
async def test_a_message_is_found_by_its_id_and_its_keys(name_server, topic):
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        result = await sender.send(Message(topic, b"this", keys=("order-7", "blue")))
        await sender.send(Message(topic, b"that", keys=("order-8",)))
    async with Admin(name_server, config=PATIENT) as admin:
        assert (await admin.view(result.offset_msg_id)).body == b"this"
        found = await eventually(lambda: admin.query(topic, "order-7"), bool)
        assert [message.body for message in found] == [b"this"]
        found = await eventually(
            lambda: admin.query(topic, result.msg_id, is_unique_key=True), bool
        )
        assert [message.msg_id for message in found] == [result.msg_id]
        assert await admin.query(topic, "order") == []


@scenario
async def test_a_message_that_is_not_there_is_an_error(name_server, topic):
    await send_all(name_server, topic, [b"x"])
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        result = await sender.send(Message(topic, b"x"))
    async with Admin(name_server, config=PATIENT) as admin:
        with pytest.raises(ResponseError):
            await admin.view(result.offset_msg_id[:16] + "0000FFFFFFFFFFFF")
        with pytest.raises(ValueError, match="offsetMsgId"):
            await admin.view("nonsense")


@scenario
async def test_a_groups_members_and_lag_are_told(name_server, topic, group):
    await send_all(name_server, topic, numbered(8))
    inbox = Inbox()
    reader = consumer(name_server, group)
    reader.subscribe(topic, "*", inbox)
    async with Admin(name_server, config=PATIENT) as admin:
        async with reader:
            await inbox.wait_for(*numbered(8))
            assert await admin.consumers(group) == [reader.client_id]
        await send_all(name_server, topic, numbered(4, "more"))
        assert group in await admin.groups()
        lags = await eventually(
            lambda: admin.describe_group(group),
            lambda lags: sum(lag.lag for lag in lags if lag.queue.topic == topic) == 4,
        )
        assert sum(lag.committed for lag in lags if lag.queue.topic == topic) == 8
        assert await admin.consumers(group) == []
