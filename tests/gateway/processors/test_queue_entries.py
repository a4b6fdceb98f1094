"""A queue's index, entry by entry."""

import msgspec

from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import QueryConsumeQueue
from tests.remoting import Remoting, beat, looped, running
from tests.requests import pulling, sending


def asking(index: int, count: int, **changes) -> QueryConsumeQueue:
    fields = {"topic": "orders", "queue_id": 0, **changes}
    return QueryConsumeQueue(index=index, count=count, **fields)


async def look(client: Remoting, *args, **changes) -> dict:
    return msgspec.json.decode((await client.ask(asking(*args, **changes))).body)


async def send_three(client: Remoting) -> list[message.Message]:
    for tag in ("A", "", "B"):
        pairs = {properties.TAGS: tag} if tag else {}
        await client.ask(sending("orders", pairs=pairs), b"one")
    return (await client.ask(pulling("orders"))).messages()


@looped
async def test_entries_say_where_messages_are_and_how_long(tmp_path):
    async with running(tmp_path) as (_, client):
        sent = await send_three(client)
        found = await look(client, 1, 5)
        assert (found["minQueueIndex"], found["maxQueueIndex"]) == (0, 3)
        assert [
            (one["physicOffset"], one["physicSize"], one["tagsCode"])
            for one in found["queueData"]
        ] == [
            (one.message_id, len(message.encode(one)), code)
            for one, code in zip(sent[1:], (0, properties.tag_hash("B")), strict=True)
        ]
        for count in (1, 2):
            assert len((await look(client, 0, count))["queueData"]) == count


@looped
async def test_there_are_no_entries_outside_of_the_queue(tmp_path):
    async with running(tmp_path) as (_, client):
        await send_three(client)
        for index, count in ((3, 1), (-1, 5), (0, 0), (0, -1), (1 << 62, 1)):
            assert (await look(client, index, count))["queueData"] == []


@looped
async def test_what_a_group_wants_comes_with_them(tmp_path):
    async with running(tmp_path) as (_, client):
        await send_three(client)
        offline = await look(client, 0, 1, consumer_group="readers")
        assert offline["filterData"] == "readers@orders is not online!"
        await beat(client, "me", "readers", expression="A || B")
        online = await look(client, 0, 1, consumer_group="readers")
        assert online["subscriptionData"]["subString"] == "A || B"
        assert online["filterData"] == "null"


@looped
async def test_queues_that_are_not_there_are_refused(tmp_path):
    async with running(tmp_path) as (_, client):
        await send_three(client)
        answer = await client.ask(asking(0, 1, queue_id=99))
        assert answer.code == ResponseCode.INVALID_PARAMETER
        for topic in ("none", None):
            answer = await client.ask(asking(0, 1, topic=topic))
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST
