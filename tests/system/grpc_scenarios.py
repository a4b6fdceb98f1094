"""What the differential test of gRPC does as clients come, send and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from ropeway.gateway.grpc.protocol import (
    ClientType,
    EndTransactionRequest,
    FilterExpression,
    FilterType,
    HeartbeatRequest,
    MessageType,
    NotifyClientTerminationRequest,
    Permission,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    Resource,
    Settings,
    SubscriptionEntry,
    Timestamp,
    TransactionResolution,
    TransactionSource,
)
from ropeway.gateway.wire import bodies
from tests.gateway.grpc.thin import consumer, message, producer, sends
from tests.system.grpc_side import WAIT_S, Seen, Side, code, note, seen

if TYPE_CHECKING:
    from ropeway.gateway.grpc.protocol import Message, MessageQueue

Scenario = Callable[[Side], Awaitable[Seen]]

KINDS = {
    "NORMAL": MessageType.NORMAL,
    "FIFO": MessageType.FIFO,
    "DELAY": MessageType.DELAY,
    "TRANSACTION": MessageType.TRANSACTION,
}


def in_time(seconds: float) -> Timestamp:
    """So many seconds from now."""
    return Timestamp(seconds=int(time.time() + seconds))


def of_kind(topic: str, kind: str, number: int = 0, **more: Any) -> Message:
    """A message with what its type needs."""
    needed: dict[str, Any] = {
        "FIFO": {"message_group": "one"},
        "DELAY": {"delivery_timestamp": in_time(3600)},
    }.get(kind, {})
    return message(
        topic,
        message_id=f"{kind}-{number}",
        message_type=KINDS[kind],
        **{**needed, **more},
    )


async def routes(side: Side) -> Seen:
    """Queues, permissions and types; what groups are assigned."""
    client = side.client()
    told: Seen = {}
    topics = [
        *[await side.topic(kind, 2) for kind in (*KINDS, None)],
        await side.topic("NORMAL", perm=4),
        await side.topic("NORMAL", perm=2, order=False),
        await side.topic("NORMAL", read_queue_nums=3, order=False, perm=6),
    ]
    for number, topic in enumerate(topics):
        name = Resource(name=topic)
        group = await side.group(topic)
        orderly = await side.group(topic, "order", consume_message_orderly=True)
        answer = await client.call("QueryRoute", QueryRouteRequest(topic=name))
        told[f"{number}, route"] = [code(answer), *map(_queue, answer.message_queues)]
        for how, one in (("any", group), ("each", orderly)):
            request = QueryAssignmentRequest(topic=name, group=Resource(name=one))
            told[f"{number}, {how}"] = seen(
                await client.call("QueryAssignment", request)
            )
    return told


def _queue(queue: MessageQueue) -> str:
    kinds = map(MessageType.Name, queue.accept_message_types)
    return f"{queue.id} {Permission.Name(queue.permission)} {', '.join(kinds)}"


async def settings(side: Side) -> Seen:
    """What clients are told of their settings."""
    topic = await side.topic()
    plain = await side.group(topic)
    policy = bodies.RetryPolicy(
        customized_retry_policy=bodies.CustomizedRetry([1000, 5000])
    )
    special = await side.group(
        topic,
        "special",
        consume_message_orderly=True,
        retry_max_times=3,
        group_retry_policy=policy,
    )
    wanted = {
        "producer": producer(topic),
        "producer of nothing": producer(),
        "simple consumer": consumer(topic, plain),
        "push consumer": consumer(topic, plain, ClientType.PUSH_CONSUMER),
        "in order": consumer(topic, special, ClientType.PUSH_CONSUMER),
        "unknown group": consumer(topic, f"{plain}-new", ClientType.PUSH_CONSUMER),
        "unknown topic": consumer(f"{topic}-new", plain),
    }
    return {
        name: seen(await side.settled(side.client(f"c{number}"), one))
        for number, (name, one) in enumerate(wanted.items())
    }


async def refused_settings(side: Side) -> Seen:
    """How streams end whose settings are none."""
    topic = await side.topic()
    illegal = consumer(topic, "a b")
    bad_filter = consumer(topic, "readers")
    bad_filter.subscription.subscriptions.append(
        SubscriptionEntry(
            topic=Resource(name=f"{topic}2"),
            expression=FilterExpression(type=FilterType.SQL, expression="a ="),
        )
    )
    wanted = {
        "nothing": Settings(client_type=ClientType.PRODUCER),
        "illegal group": illegal,
        "system group": consumer(topic, "CID_RMQ_SYS_a"),
        "illegal topic of a producer": producer("a b"),
        "system topic of a producer": producer("SCHEDULE_TOPIC_XXXX"),
        "illegal filter": bad_filter,
        "a consumer that says it produces": _mismatched(topic),
        "no client type": Settings(subscription=consumer(topic).subscription),
    }
    told: Seen = {}
    for number, (name, one) in enumerate(wanted.items()):
        client = side.client(f"c{number}")
        try:
            async with asyncio.timeout(WAIT_S):
                told[name] = code(await side.settled(client, one))
        except (AttributeError, grpc.aio.AioRpcError):
            status, _ = await client.refused(one)
            told[name] = status.name
    return told


def _mismatched(topic: str) -> Settings:
    wanted = producer(topic)
    wanted.client_type = ClientType.SIMPLE_CONSUMER
    return wanted


async def types(side: Side) -> Seen:
    """Messages of each type, sent to topics of each type."""
    client = side.client()
    told: Seen = {}
    for topic_kind in (*KINDS, None):
        topic = await side.topic(topic_kind)
        await side.settled(client, producer(topic))
        for number, kind in enumerate(KINDS):
            request = sends(of_kind(topic, kind, number))
            answer = seen(await client.call("SendMessage", request))
            for entry in answer.get("entries", []):
                if kind in ("DELAY", "TRANSACTION"):
                    # Those of all tests are in the same queues for now.
                    entry.pop("offset", None)
            told[f"{kind} to {topic_kind}"] = answer
    return told


async def batches(side: Side) -> Seen:
    """Several messages at once."""
    topic, other = await side.topic(), await side.topic("FIFO")
    client = side.client()

    async def send(*messages: Message) -> Any:
        return seen(await client.call("SendMessage", sends(*messages)))

    several = [of_kind(topic, "NORMAL", number) for number in range(3)]
    return {
        "none": await send(),
        "three": await send(*several),
        "of two topics": await send(several[0], of_kind(other, "NORMAL")),
        "of one group": await send(
            *(of_kind(other, "FIFO", number) for number in range(2))
        ),
        "of two groups": await send(
            *(
                of_kind(other, "FIFO", number, message_group=str(number))
                for number in range(2)
            )
        ),
        "stored": [await side.end(topic), await side.end(other)],
    }


async def recalls(side: Side) -> Seen:
    """Delayed messages that are taken back, and handles that are none."""
    topic, plain = await side.topic("DELAY"), await side.topic()
    client = side.client()

    async def recall(handle: str, of: str = topic) -> Any:
        request = RecallMessageRequest(topic=Resource(name=of), recall_handle=handle)
        return seen(await client.call("RecallMessage", request))

    answer = await client.call("SendMessage", sends(of_kind(topic, "DELAY")))
    handle = answer.entries[0].recall_handle
    return {
        "recalled": await recall(handle),
        "of another topic": await recall(handle, plain),
        "of an unknown topic": await recall(handle, f"{topic}-none"),
        "empty": await recall(""),
        "forged": await recall("abc"),
        "cut off": await recall(handle[:-8]),
    }


async def transactions(side: Side) -> Seen:
    """Half messages and their ends."""
    topic = await side.topic("TRANSACTION")
    group = await side.group(topic)
    client = side.client()
    await side.settled(client, producer(topic))
    told: Seen = {}

    async def end(what: Any, how: Any, **changes: Any) -> str:
        given = {
            "topic": Resource(name=topic),
            "message_id": what.message_id,
            "transaction_id": what.transaction_id,
            "resolution": how,
            "source": TransactionSource.SOURCE_CLIENT,
            **changes,
        }
        request = EndTransactionRequest(**given)
        return code(await client.call("EndTransaction", request))

    halves = []
    for number in range(3):
        half = of_kind(topic, "TRANSACTION", number)
        answer = await client.call("SendMessage", sends(half))
        halves.append(answer.entries[0])
    first, second, third = halves
    told["committed"] = await end(first, TransactionResolution.COMMIT)
    told["rolled back"] = await end(second, TransactionResolution.ROLLBACK)
    told["unknown"] = await end(
        third, TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
    )
    told["empty id"] = await end(third, TransactionResolution.COMMIT, transaction_id="")
    told["forged id"] = await end(
        third, TransactionResolution.COMMIT, transaction_id="A" * 32
    )
    reader = await side.consumer(topic, group)
    (received,) = await reader.receive()
    note(told, "received", received)
    return told


async def lives(side: Side) -> Seen:
    """Heartbeats and terminations, with and without settings."""
    topic = await side.topic()
    group = await side.group(topic)
    kinds = {
        "producer": producer(topic),
        "simple consumer": consumer(topic, group),
        "push consumer": consumer(topic, group, ClientType.PUSH_CONSUMER),
        "stranger": None,
    }
    told: Seen = {}
    for number, (name, wanted) in enumerate(kinds.items()):
        client = side.client(f"c{number}")
        if wanted is not None:
            await side.settled(client, wanted)
        resource = Resource(name=group)
        beat = HeartbeatRequest(group=resource)
        told[f"{name} lives"] = code(await client.call("Heartbeat", beat))
        ends = NotifyClientTerminationRequest(group=resource)
        answer = await client.call("NotifyClientTermination", ends)
        told[f"{name} ends"] = code(answer)
        answer = await client.call("NotifyClientTermination", ends)
        told[f"{name} ends again"] = code(answer)
    client = side.client("cut off")
    stream, _ = await client.telemetry(producer(topic))
    await stream.done_writing()
    await stream.code()
    ends = NotifyClientTerminationRequest()
    told["ends after its stream"] = code(
        await client.call("NotifyClientTermination", ends)
    )
    return told


SENDING: list[Scenario] = [
    routes,
    settings,
    refused_settings,
    types,
    batches,
    recalls,
    transactions,
    lives,
]
