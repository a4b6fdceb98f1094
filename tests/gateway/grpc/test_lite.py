"""Lite topics, as a client of the gRPC service has them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.grpc.protocol import (
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
    Duration,
    ForwardMessageToDeadLetterQueueRequest,
    LiteSubscriptionAction,
    MessageType,
    OffsetOption,
    Resource,
    SyncLiteSubscriptionRequest,
)
from ropeway.routing.api import Group
from tests.gateway.grpc.test_receipts import ack
from tests.gateway.grpc.thin import Thin, consumer, create, serving
from tests.remoting import looped, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App

PARENT = "rooms"
ADD = LiteSubscriptionAction.PARTIAL_ADD
REMOVE = LiteSubscriptionAction.PARTIAL_REMOVE
ALL = LiteSubscriptionAction.COMPLETE_ADD


@asynccontextmanager
async def lite(
    path: Path,
    *,
    group: dict[str, str] | None = None,
    kind: ClientType = ClientType.LITE_PUSH_CONSUMER,
    **changes: Any,
) -> AsyncIterator[tuple[App, Thin]]:
    """A node with a parent topic, and a client that consumes its lite topics."""
    async with serving(path, **changes) as (app, client):
        await create(app, PARENT, "LITE", queues=4)
        given = {"lite.bind.topic": PARENT, **(group or {})}
        await app.node.groups.put(
            Group(name="readers", attributes=given, retry_max_times=1)
        )
        async with joined(client, kind):
            yield app, client


@asynccontextmanager
async def joined(
    client: Thin, kind: ClientType = ClientType.LITE_PUSH_CONSUMER
) -> AsyncIterator[Any]:
    """The settings of a consumer of lite topics."""
    stream, answer = await client.telemetry(consumer(PARENT, kind=kind))
    assert answer.status.code == Code.OK
    yield stream
    stream.cancel()


async def sync(
    client: Thin, action: LiteSubscriptionAction, *names: str, **more: Any
) -> Code:
    """Say what is wanted; how that went."""
    request = SyncLiteSubscriptionRequest(
        action=action,
        topic=Resource(name=PARENT),
        group=Resource(name="readers"),
        lite_topic_set=names,
        **more,
    )
    answer = await client.call("SyncLiteSubscription", request)
    return answer.status.code


async def send(app: App, client: Thin, name: str, *bodies: str) -> None:
    """Send messages of a lite topic, and wait until they are noted."""
    for body in bodies:
        answer = await client.send(
            PARENT, body.encode(), message_type=MessageType.LITE, lite_topic=name
        )
        assert answer.status.code == Code.OK, answer.status
    await until(app.node.lite.is_idle)


async def take(client: Thin, count: int, **more: Any) -> list[Any]:
    """Receive so many messages."""
    found: list[Any] = []
    while len(found) < count:
        found += await client.receive(PARENT, wait_s=10, **more)
    assert len(found) == count
    return found


def handle(of: Any) -> str:
    return str(of.system_properties.receipt_handle)


async def done(client: Thin, of: Any) -> Code:
    """Acknowledge a message; how that went."""
    (code,) = await ack(client, handle(of), topic=PARENT)
    return code


async def give_back(client: Thin, of: Any) -> None:
    """Have a message come again at once."""
    request = ChangeInvisibleDurationRequest(
        group=Resource(name="readers"),
        topic=Resource(name=PARENT),
        receipt_handle=handle(of),
        message_id="m",
        invisible_duration=Duration(nanos=1_000_000),
    )
    answer = await client.call("ChangeInvisibleDuration", request)
    assert answer.status.code == Code.OK


def bodies(found: list[Any]) -> list[str]:
    return [one.body.decode() for one in found]


@pytest.mark.parametrize(
    "kind",
    [ClientType.LITE_PUSH_CONSUMER, ClientType.LITE_SIMPLE_CONSUMER],
    ids=["Lite Push consumer", "Lite Simple consumer"],
)
@looped
async def test_a_client_gets_its_lite_topics_in_order_and_no_others(
    tmp_path: Path, kind: ClientType
):
    async with lite(tmp_path, kind=kind) as (app, client):
        await send(app, client, "a", "a0", "a1")
        assert await sync(client, ADD, "a", "b") == Code.OK
        await send(app, client, "b", "b0")
        await send(app, client, "c", "c0")
        await send(app, client, "a", "a2")
        found = await take(client, 4)
        assert bodies([one for one in found if one.body[:1] == b"a"]) == [
            "a0",
            "a1",
            "a2",
        ]
        system = found[0].system_properties
        assert system.message_type == MessageType.LITE
        assert (system.lite_topic, system.delivery_attempt) == ("a", 1)


@looped
async def test_a_lite_topic_waits_for_what_is_in_hand(tmp_path: Path):
    async with lite(tmp_path) as (app, client):
        await sync(client, ADD, "a")
        await send(app, client, "a", "0", "1")
        (first,) = await take(client, 1, batch_size=1)
        assert not await client.receive(PARENT)
        assert await done(client, first) == Code.OK
        (second,) = await take(client, 1)
        assert second.body == b"1"
        assert await done(client, first) == Code.INVALID_RECEIPT_HANDLE


@looped
async def test_what_is_given_back_comes_again_and_is_a_dead_letter_in_the_end(
    tmp_path: Path,
):
    async with lite(tmp_path) as (app, client):
        await sync(client, ADD, "a")
        await send(app, client, "a", "refused", "next")
        for attempt in (1, 2):
            (found,) = await take(client, 1, batch_size=1)
            system = found.system_properties
            assert (found.body, system.delivery_attempt) == (b"refused", attempt)
            await give_back(client, found)
        assert bodies(await take(client, 1, batch_size=1)) == ["next"]
        dead = app.node.topics.get("%DLQ%readers")
        assert [partition.end for partition in dead.partitions] == [1]


@looped
async def test_a_client_can_call_a_message_a_dead_letter(tmp_path: Path):
    async with lite(tmp_path) as (app, client):
        await sync(client, ADD, "a")
        await send(app, client, "a", "bad", "good")
        (found,) = await take(client, 1, batch_size=1)
        request = ForwardMessageToDeadLetterQueueRequest(
            topic=Resource(name=PARENT),
            group=Resource(name="readers"),
            receipt_handle=handle(found),
            message_id=found.system_properties.message_id,
        )
        answer = await client.call("ForwardMessageToDeadLetterQueue", request)
        assert answer.status.code == Code.OK
        assert bodies(await take(client, 1)) == ["good"]
        assert app.node.topics.get("%DLQ%readers").partitions[0].end == 1


@looped
async def test_an_unsubscribed_lite_topic_is_silent(tmp_path: Path):
    async with lite(tmp_path) as (app, client):
        await sync(client, ADD, "a", "b")
        await sync(client, REMOVE, "a")
        await send(app, client, "a", "a0")
        await send(app, client, "b", "b0")
        assert bodies(await take(client, 1)) == ["b0"]
        # All that is wanted, said again: so after a restart.
        assert await sync(client, ALL, "a") == Code.OK
        assert bodies(await take(client, 1)) == ["a0"]


@looped
async def test_who_subscribes_last_has_an_exclusive_lite_topic(tmp_path: Path):
    group = {
        "lite.sub.model": "Exclusive",
        "lite.sub.reset.offset.exclusive": "true",
    }
    async with lite(tmp_path, group=group) as (app, client):
        address = app.server.listeners[0].advertised
        first, other = Thin(address, "first"), Thin(address, "other")
        async with joined(first) as stream, joined(other):
            await sync(first, ADD, "a")
            await send(app, client, "a", "0")
            (found,) = await take(first, 1)
            await done(first, found)
            assert await sync(other, ADD, "a") == Code.OK
            told = await stream.read()
            assert told.notify_unsubscribe_lite_command.lite_topic == "a"
            assert bodies(await take(other, 1)) == ["0"]
            # It has not heard of it yet, and takes nothing back.
            assert await sync(first, ALL, "a") == Code.OK
            assert not await first.receive(PARENT)
        await first.close()
        await other.close()


@looped
@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (OffsetOption(policy=OffsetOption.MIN), ["0", "1", "2"]),
        (OffsetOption(policy=OffsetOption.LAST), ["2"]),
        (OffsetOption(policy=OffsetOption.MAX), []),
        (OffsetOption(tail_n=1), ["1", "2"]),
        (OffsetOption(offset=1), ["1", "2"]),
        (OffsetOption(timestamp=0), ["0", "1", "2"]),
    ],
)
async def test_a_subscription_begins_where_it_says(
    tmp_path: Path, option: OffsetOption, expected: list[str]
):
    async with lite(tmp_path) as (app, client):
        await sync(client, ADD, "a")
        await send(app, client, "a", "0", "1", "2")
        for one in await take(client, 2, batch_size=2):
            await done(client, one)
        await sync(client, REMOVE, "a")
        assert await sync(client, ADD, "a", offset_option=option) == Code.OK
        await send(app, client, "a", "new")
        found = await take(client, len(expected) + 1)
        assert bodies(found) == [*expected, "new"]


@looped
async def test_an_unsubscription_sends_the_group_back_where_that_is_set(
    tmp_path: Path,
):
    group = {"lite.sub.reset.offset.unsubscribe": "true"}
    async with lite(tmp_path, group=group) as (app, client):
        await sync(client, ADD, "a")
        await send(app, client, "a", "0")
        (found,) = await take(client, 1)
        await done(client, found)
        await sync(client, REMOVE, "a")
        await sync(client, ADD, "a")
        assert bodies(await take(client, 1)) == ["0"]


@looped
async def test_a_client_that_ends_wants_nothing_any_more(tmp_path: Path):
    async with lite(tmp_path) as (app, client):
        other = Thin(app.server.listeners[0].advertised, "other")
        async with joined(other):
            await sync(other, ADD, "a")
            assert app.node.lite.subscribers.of(PARENT, "a")
        await until(lambda: not app.node.lite.subscribers.of(PARENT, "a"))
        await other.close()
        await sync(client, ADD, "a")
        await send(app, client, "a", "0")
        assert bodies(await take(client, 1)) == ["0"]


@looped
@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["x" * 65], Code.ILLEGAL_LITE_TOPIC),
        (["a b"], Code.ILLEGAL_LITE_TOPIC),
        (["größe"], Code.ILLEGAL_LITE_TOPIC),
        ([" "], Code.ILLEGAL_LITE_TOPIC),
        (["a", "b", "c"], Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED),
    ],
)
async def test_what_cannot_be_subscribed_to_is_refused(
    tmp_path: Path, names: list[str], code: Code
):
    group = {"lite.sub.client.quota": "2"}
    async with lite(tmp_path, group=group) as (app, client):
        for action in (ADD, ALL):
            assert await sync(client, action, *names) == code
        assert not any(one.lites for one in app.node.lite.subscribers)


@looped
async def test_one_lite_topic_too_many_is_refused(tmp_path: Path):
    limits = LimitsConfig(lite_topics=1)
    async with lite(tmp_path, limits=limits) as (app, client):
        await send(app, client, "a", "0")
        await until(app.node.lite.is_idle)
        await until(lambda: app.node.lite.count() == 1)
        answer = await client.send(
            PARENT, message_type=MessageType.LITE, lite_topic="b"
        )
        assert answer.status.code == Code.LITE_TOPIC_QUOTA_EXCEEDED
        await send(app, client, "a", "1")


@looped
async def test_groups_of_lite_topics_and_others_are_kept_apart(tmp_path: Path):
    async with lite(tmp_path) as (app, client):
        kind = ClientType.LITE_PUSH_CONSUMER
        _, said = await client.refused(consumer(PARENT, "others", kind))
        assert "ILLEGAL_CONSUMER_GROUP" in said
        _, said = await client.refused(consumer(PARENT))
        assert "ILLEGAL_CONSUMER_GROUP" in said
        _, said = await client.refused(consumer("orders", kind=kind))
        assert "ILLEGAL_TOPIC" in said
        await app.node.groups.put(
            Group(name="readers", attributes={"lite.bind.topic": "other"})
        )
        assert await sync(client, ADD, "a") == Code.BAD_REQUEST


@looped
async def test_messages_of_lite_topics_and_others_are_kept_apart(tmp_path: Path):
    async with lite(tmp_path) as (app, client):
        await create(app, "orders")
        conflict = Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        for topic, given in (
            (PARENT, {}),
            (PARENT, {"message_type": MessageType.LITE}),
            ("orders", {"message_type": MessageType.LITE, "lite_topic": "a"}),
        ):
            answer = await client.send(topic, **given)
            assert answer.status.code == conflict


@looped
@pytest.mark.parametrize(
    "kind",
    [ClientType.LITE_PUSH_CONSUMER, ClientType.LITE_SIMPLE_CONSUMER],
    ids=["Lite Push consumer", "Lite Simple consumer"],
)
async def test_a_client_of_a_group_that_wants_all_gets_all_and_names_none(
    tmp_path: Path, kind: ClientType
):
    group = {"lite.sub.wildcard": "true"}
    async with lite(tmp_path, group=group, kind=kind) as (app, client):
        await send(app, client, "a", "a0")
        assert await sync(client, ADD, "a") == Code.BAD_REQUEST
        assert await sync(client, ALL) == Code.OK
        await send(app, client, "b", "b0")
        found = await take(client, 2)
        assert sorted(bodies(found)) == ["a0", "b0"]
        for one in found:
            assert await done(client, one) == Code.OK
