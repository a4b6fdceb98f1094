"""Receiving: at once, after a wait, again, in order, and what nobody took."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest
from msgspec import structs

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.grpc.protocol import (
    Code,
    Duration,
    FilterExpression,
    FilterType,
    MessageType,
)
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.send import SendBatchMessage
from tests.gateway.grpc.test_receipts import ack
from tests.gateway.grpc.thin import (
    Thin,
    consumer,
    consuming,
    create,
    in_order,
    receives,
    serving,
)
from tests.remoting import ROOMY, connect, looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.grpc.protocol import Message


@looped
async def test_what_is_sent_by_remoting_is_received_by_grpc(tmp_path: Path):
    async with consuming(tmp_path) as (app, client):
        async with connect(app.server.listeners[0]) as remoting:
            pairs = {"TAGS": "T", "KEYS": "k", "color": "blue", "TRACE_CONTEXT": "x"}
            await remoting.ask(sending("orders", pairs=pairs), b"hello")
        (found,) = await client.receive("orders")
        system = found.system_properties
        assert (found.body, found.topic.name) == (b"hello", "orders")
        assert (system.tag, list(system.keys)) == ("T", ["k"])
        assert dict(found.user_properties) == {"color": "blue"}
        assert system.trace_context == "x"
        assert system.delivery_attempt == 1
        assert not await client.receive("orders")


@looped
async def test_a_handle_that_a_message_was_sent_with_harms_nobody(tmp_path: Path):
    async with consuming(tmp_path) as (app, client):
        partition = app.node.topics.get("orders").partitions[0]
        async with connect(app.server.listeners[0]) as remoting:
            entries = [BatchEntry(0, b"hello", "POP_CK\x01none\x02KEYS\x01k\x02")]
            header = SendBatchMessage(**structs.asdict(sending("orders", batch=True)))
            assert (await remoting.ask(header, encode_batch(entries))).code == 0
        await until(lambda: partition.end == 1)
        (found,) = await client.receive("orders")
        assert (found.body, list(found.system_properties.keys)) == (b"hello", ["k"])
        assert await ack(client, found.system_properties.receipt_handle) == [Code.OK]


@looped
async def test_a_waiting_client_gets_a_message_as_it_comes(tmp_path: Path):
    async with consuming(tmp_path) as (app, client):
        waiting = asyncio.create_task(client.receive("orders", wait_s=20))
        await until(lambda: app.node.pop.polling.count(("readers", "orders"), -1) == 1)
        await client.send("orders", b"late")
        (found,) = await waiting
        assert found.body == b"late"


@looped
async def test_filters_are_the_brokers(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        for tag in ("a", "b", "c"):
            await client.send("orders", tag.encode(), tag=tag, pairs={"n": tag})
        tags = FilterExpression(type=FilterType.TAG, expression="a || c")
        found = await client.receive("orders", filter_expression=tags)
        assert [one.body for one in found] == [b"a", b"c"]
        sql = FilterExpression(type=FilterType.SQL, expression="n = 'b'")
        found = await client.receive("orders", "others", filter_expression=sql)
        assert [one.body for one in found] == [b"b"]
        wrong = FilterExpression(type=FilterType.SQL, expression="n = = 'b'")
        (refused,) = await client.stream(
            "ReceiveMessage", receives("orders", filter_expression=wrong)
        )
        assert refused.status.code == Code.ILLEGAL_FILTER_EXPRESSION


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"batch_size": 0}, Code.BAD_REQUEST),
        ({"invisible_duration": Duration(seconds=1)}, Code.ILLEGAL_INVISIBLE_TIME),
        ({"invisible_duration": Duration(seconds=-5)}, Code.ILLEGAL_INVISIBLE_TIME),
        (
            {"invisible_duration": Duration(seconds=1 << 40)},
            Code.ILLEGAL_INVISIBLE_TIME,
        ),
    ],
)
@looped
async def test_what_cannot_be_received_is_refused(tmp_path: Path, given, code):
    async with consuming(tmp_path) as (_, client):
        (refused,) = await client.stream("ReceiveMessage", receives("orders", **given))
        assert refused.status.code == code


@looped
async def test_a_topic_that_is_not_there_is_not_found(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        (refused,) = await client.stream("ReceiveMessage", receives("nowhere"))
        assert refused.status.code == Code.TOPIC_NOT_FOUND


@looped
async def test_who_gives_up_waiting_takes_no_message(tmp_path: Path):
    async with consuming(tmp_path) as (app, client):
        polling = app.node.pop.polling
        call = client._method("ReceiveMessage")(
            receives("orders", wait_s=20), metadata=client.metadata
        )
        await until(lambda: polling.count(("readers", "orders"), -1) == 1)
        call.cancel()
        assert await call.code() == grpc.StatusCode.CANCELLED
        await until(lambda: polling.count(("readers", "orders"), -1) == 0)
        await client.send("orders", b"kept")
        (found,) = await client.receive("orders", wait_s=10)
        assert (found.body, found.system_properties.delivery_attempt) == (b"kept", 1)


@looped
async def test_messages_of_a_queue_come_one_after_the_other_in_order(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", "FIFO")
        await in_order(app, "readers")
        stream, _ = await client.telemetry(consumer("orders"))
        fifo = {"message_type": MessageType.FIFO, "message_group": "g"}
        for number in range(2):
            await client.send("orders", b"%d" % number, **fifo)
        (first,) = await client.receive("orders", batch_size=1)
        assert (first.body, first.system_properties.message_group) == (b"0", "g")
        assert not await client.receive("orders", batch_size=1)
        other = Thin(app.server.listeners[0].advertised, "other")
        again, _ = await other.telemetry(consumer("orders"))
        assert not await other.receive("orders", batch_size=1)
        again.cancel()
        stream.cancel()
        await other.close()


@looped
async def test_messages_come_by_their_priorities(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "urgent", "PRIORITY", queues=3)
        stream, _ = await client.telemetry(consumer("urgent"))
        for priority in (0, 2, 1, 99, 0):
            sent = await client.send(
                "urgent",
                b"%d" % priority,
                message_type=MessageType.PRIORITY,
                priority=priority,
            )
            assert sent.status.code == Code.OK
        found = [one async for one in _one_by_one(client, "urgent", 5)]
        assert [one.body for one in found] == [b"2", b"99", b"1", b"0", b"0"]
        first = found[0].system_properties
        assert (first.message_type, first.priority) == (MessageType.PRIORITY, 2)
        assert first.queue_id != found[2].system_properties.queue_id
        plain = await client.send("urgent")
        assert plain.status.code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        stream.cancel()


async def _one_by_one(client: Thin, topic: str, count: int) -> AsyncIterator[Message]:
    for _ in range(count):
        (one,) = await client.receive(topic, batch_size=1)
        yield one


@looped
async def test_of_too_many_who_take_nothing_the_slowest_goes(tmp_path: Path):
    # A client is given three messages at a time: what two of them have is too much.
    limits = LimitsConfig(slow_readers_bytes=7 << 19)
    async with consuming(tmp_path, limits=limits, log=ROOMY) as (app, client):
        for _ in range(8):
            await client.send("orders", bytes(1 << 20))
        streams = []
        calls = []
        address = app.server.listeners[0].advertised
        slow = [Thin(address, name, far=True) for name in ("one", "two")]
        for one in slow:
            stream, _ = await one.telemetry(consumer("orders"))
            streams.append(stream)
            call = one.stream_of("ReceiveMessage", receives("orders", batch_size=4))
            assert (await call.read()).status.code == Code.OK
            calls.append(call)
        assert await calls[0].code() == grpc.StatusCode.UNAVAILABLE
        found: list[Message] = []
        while len(found) < 4:
            found += await client.receive("orders", wait_s=5)
        for stream in (*calls, *streams):
            stream.cancel()
        for one in slow:
            await one.close()
        await until(lambda: app.server.http2.budget.used_bytes == 0)
