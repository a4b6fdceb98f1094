"""Receipt handles: used once, kept for longer, forged, and of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.gateway.grpc.protocol import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    Code,
    Duration,
    ForwardMessageToDeadLetterQueueRequest,
    Resource,
)
from tests.gateway.grpc.thin import Thin, consuming, create
from tests.remoting import connect, looped
from tests.requests import pulling

if TYPE_CHECKING:
    from pathlib import Path

ORDERS, READERS = Resource(name="orders"), Resource(name="readers")


async def ack(client: Thin, *handles: str, topic: str = "orders") -> list[Code]:
    entries = [AckMessageEntry(message_id="m", receipt_handle=one) for one in handles]
    request = AckMessageRequest(
        group=READERS, topic=Resource(name=topic), entries=entries
    )
    answer = await client.call("AckMessage", request)
    return [one.status.code for one in answer.entries]


async def change(client: Thin, of: str, seconds: float) -> Any:
    request = ChangeInvisibleDurationRequest(
        group=READERS,
        topic=ORDERS,
        receipt_handle=of,
        message_id="m",
        invisible_duration=Duration(
            seconds=int(seconds), nanos=int(seconds % 1 * 1_000_000_000)
        ),
    )
    return await client.call("ChangeInvisibleDuration", request)


@looped
async def test_a_receipt_counts_once(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        await client.send("orders")
        await client.send("orders")
        one, two = [
            found.system_properties.receipt_handle
            for found in await client.receive("orders")
        ]
        assert await ack(client, one, two, "forged") == [
            Code.OK,
            Code.OK,
            Code.INVALID_RECEIPT_HANDLE,
        ]
        assert await ack(client, one) == [Code.INVALID_RECEIPT_HANDLE]
        empty = await client.call(
            "AckMessage", AckMessageRequest(group=READERS, topic=ORDERS)
        )
        assert empty.status.code == Code.BAD_REQUEST


@looped
async def test_a_message_given_back_comes_again_with_another_receipt(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        await client.send("orders", b"again")
        (found,) = await client.receive("orders")
        first = found.system_properties.receipt_handle
        changed = await change(client, first, 0.2)
        assert changed.status.code == Code.OK
        assert changed.receipt_handle != first
        (again,) = await client.receive("orders", wait_s=20)
        assert again.body == b"again"
        assert again.topic.name == "orders"
        assert again.system_properties.delivery_attempt == 2
        # Neither of the first two takes the third's message away.
        stale = await ack(client, first, changed.receipt_handle)
        assert stale == [Code.INVALID_RECEIPT_HANDLE] * 2
        now = again.system_properties.receipt_handle
        assert await ack(client, now) == [Code.OK]


@looped
async def test_a_changed_receipt_can_be_changed_and_acknowledged(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        await client.send("orders")
        (found,) = await client.receive("orders")
        handle = found.system_properties.receipt_handle
        for seconds in (30, 60):
            handle = (await change(client, handle, seconds)).receipt_handle
        assert await ack(client, handle) == [Code.OK]


@looped
async def test_a_dead_letter_is_kept_and_done(tmp_path: Path):
    async with consuming(tmp_path) as (app, client):
        await client.send("orders", b"poison", tag="T")
        (found,) = await client.receive("orders")
        request = ForwardMessageToDeadLetterQueueRequest(
            group=READERS,
            topic=ORDERS,
            receipt_handle=found.system_properties.receipt_handle,
            message_id=found.system_properties.message_id,
        )
        method = "ForwardMessageToDeadLetterQueue"
        assert (await client.call(method, request)).status.code == Code.OK
        twice = await client.call(method, request)
        assert twice.status.code == Code.INVALID_RECEIPT_HANDLE
        async with connect(app.server.listeners[0]) as remoting:
            (dead,) = (await remoting.ask(pulling("%DLQ%readers"))).messages()
        assert dead.body == b"poison"
        assert not await client.receive("orders")


@looped
async def test_receipts_of_other_places_are_refused(tmp_path: Path):
    async with consuming(tmp_path) as (app, client):
        await create(app, "others")
        await client.send("orders")
        (found,) = await client.receive("orders")
        ours = found.system_properties.receipt_handle
        fields = ours.split(" ")
        elsewhere = " ".join([*fields[:6], "9", fields[7]])
        another = " ".join([*fields[:5], "broker-9", *fields[6:]])
        for forged in (elsewhere, another):
            assert (await ack(client, forged)) != [Code.OK]
        assert await ack(client, ours, topic="others") != [Code.OK]
        assert await ack(client, ours) == [Code.OK]
