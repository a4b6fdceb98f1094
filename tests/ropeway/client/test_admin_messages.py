"""Finding messages by id and by time, and sending them again."""

import asyncio
import time

import msgspec
import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    ResponseError,
    admin_messages,
)
from ropeway.client.admin import MAX_TIME_MS
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import (
    PATIENT,
    PRODUCER,
    numbered,
    scenario,
    send_all,
)


@scenario
async def test_a_message_is_found_by_either_of_its_ids(ropeway_gateway, topic):
    name_server = ropeway_gateway.name_server
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        sent = await sender.send(Message(topic, b"this"))
    async with Admin(name_server, config=PATIENT) as admin:
        for found in (
            await admin_messages.find(admin, sent.offset_msg_id),
            await admin_messages.find(admin, sent.offset_msg_id, topic),
            await admin_messages.find(admin, sent.msg_id, topic),
        ):
            assert (found.body, found.msg_id) == (b"this", sent.msg_id)
        with pytest.raises(AdminError, match="name its topic"):
            await admin_messages.find(admin, "nonsense")
        with pytest.raises(AdminError, match=f"topic {topic} has none"):
            await admin_messages.find(admin, "nonsense", topic)
        with pytest.raises(AdminError, match="can not find message"):
            await admin_messages.find(admin, sent.offset_msg_id[:-4] + "FFFF")


@scenario
async def test_messages_of_a_time_come_oldest_first_over_all_queues(
    ropeway_gateway, topic
):
    name_server = ropeway_gateway.name_server
    await send_all(name_server, topic, numbered(40, "before"))
    async with Admin(name_server, config=PATIENT) as admin:
        await asyncio.sleep(0.01)
        middle_ms = time.time_ns() // 1_000_000
        await asyncio.sleep(0.01)
        await send_all(name_server, topic, numbered(40, "after"))

        async def bodies(begin_ms: int, end_ms: int) -> list[bytes]:
            found = admin_messages.by_time(admin, topic, begin_ms, end_ms)
            messages = [one async for one in found]
            times = [one.store_ms for one in messages]
            assert times == sorted(times)
            return sorted(one.body for one in messages)

        both = numbered(40, "after"), numbered(40, "before")
        assert await bodies(0, MAX_TIME_MS) == sorted(both[0] + both[1])
        assert await bodies(middle_ms, MAX_TIME_MS) == sorted(both[0])
        assert await bodies(0, middle_ms) == sorted(both[1])
        assert await bodies(middle_ms + 3_600_000, MAX_TIME_MS) == []


@scenario
async def test_a_copy_has_what_the_sender_meant_and_nothing_of_its_first_life(
    ropeway_gateway, topic
):
    name_server = ropeway_gateway.name_server
    message = Message(
        topic, b"this", tags="paid", keys=("a", "b"), properties={"x": "y"}, flag=7
    )
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        first = await sender.send(message)
        async with Admin(name_server, config=PATIENT) as admin:
            found = await admin_messages.find(admin, first.offset_msg_id)
        copy = admin_messages.copy_of(found)
        assert copy == message
        assert admin_messages.copy_of(found, "other").topic == "other"
        # Only of a dead letter has a broker written where it was sent first.
        told = {**found.properties, "RETRY_TOPIC": "bank"}
        told = msgspec.structs.replace(found, properties=told)
        assert admin_messages.copy_of(told).topic == topic
        dead = msgspec.structs.replace(told, topic="%DLQ%g")
        assert admin_messages.copy_of(dead).topic == "bank"
        second = await sender.send(copy)
        assert second.msg_id != first.msg_id


@scenario
async def test_only_a_connected_consumer_is_handed_a_message(ropeway_gateway, topic):
    name_server = ropeway_gateway.name_server
    await send_all(name_server, topic, [b"x"])
    async with Admin(name_server, config=PATIENT) as admin:
        found = admin_messages.by_time(admin, topic, 0, MAX_TIME_MS)
        message = await anext(found)
        await found.aclose()
        with pytest.raises(ResponseError, match="not online"):
            await admin_messages.hand_to(admin, "kitchen", "nobody", message)
