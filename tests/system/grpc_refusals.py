"""What the differential test of gRPC asks that no server does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ropeway.gateway.grpc.protocol import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    Duration,
    EndTransactionRequest,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    Message,
    MessageType,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    Resource,
    Timestamp,
)
from tests.gateway.grpc.thin import consumer, message, receives, sends
from tests.system.grpc_side import Seen, Side, code, ended, seen_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.grpc_scenarios import Scenario

BODY_BYTES = 4 * 1024 * 1024
HANDLE = f"0 {int(time.time() * 1000)} 43200000 0 0 broker-0 0 0"
"""Of the first message of a queue, for half a day from now."""
NAMES = {
    "of blanks": " ",
    "empty": "",
    "with a blank": "a b",
    "of 128 characters": "t" * 128,
    "of 256 characters": "t" * 256,
    "of the system": "SCHEDULE_TOPIC_XXXX",
    "of the system's groups": "CID_RMQ_SYS_TRANS",
    "unknown": "no-such-topic",
    "with a namespace's sign": "a%b",
    "a retry topic": "%RETRY%nobody",
}


def _of_names(topic: str) -> Iterator[tuple[str, str, Any]]:
    """Calls about topics and groups of all kinds of names."""
    good = Resource(name=topic)
    for what, name in NAMES.items():
        one = Resource(name=name)
        yield f"route of a topic {what}", "QueryRoute", QueryRouteRequest(topic=one)
        yield f"send to a topic {what}", "SendMessage", sends(_plain(name))
        for role, names in (
            ("topic", {"topic": one, "group": good}),
            ("group", {"topic": good, "group": one}),
        ):
            yield (
                f"assignment, {role} {what}",
                "QueryAssignment",
                QueryAssignmentRequest(**names),
            )
            entry = AckMessageEntry(message_id="1", receipt_handle=HANDLE)
            yield (
                f"ack, {role} {what}",
                "AckMessage",
                AckMessageRequest(entries=[entry], **names),
            )


def _plain(topic: str, **more: Any) -> Message:
    return message(topic, **{"message_id": "1", **more})


def _messages(topic: str) -> dict[str, Message]:
    """Messages that cannot be stored, and some that just can."""
    system = {
        "tag with a bar": {"tag": "a|b"},
        "tag of blanks": {"tag": " "},
        "tag with a control character": {"tag": "a\x01"},
        "key of blanks": {"keys": [" "]},
        "key with a control character": {"keys": ["a\x01"]},
        "empty id": {"message_id": ""},
        "id of blanks": {"message_id": "  "},
        "group of blanks": {"message_group": " "},
        "group of 64 bytes": {"message_group": "g" * 64},
        "group of 63 bytes in a normal topic": {"message_group": "g" * 63},
        "delivery in 2 days": {"delivery_timestamp": Timestamp(seconds=4_000_000_000)},
        "no type": {"message_type": MessageType.MESSAGE_TYPE_UNSPECIFIED},
        "FIFO without a group": {"message_type": MessageType.FIFO},
        "DELAY without a time": {"message_type": MessageType.DELAY},
        "recovery after 2 hours": {
            "message_type": MessageType.TRANSACTION,
            "orphaned_transaction_recovery_duration": Duration(seconds=7200),
        },
    }
    pairs: dict[str, dict[str, str]] = {
        "129 properties": {f"p{number}": "" for number in range(129)},
        "128 properties": {f"p{number}": "v" for number in range(128)},
        "properties of 17 KiB": {"p": "x" * 17 * 1024},
        "property of the system": {"UNIQ_KEY": "a"},
        "property with a control character": {"a\x01": "b"},
        "value with a control character": {"a": "b\x02"},
    }
    return {
        **{what: _plain(topic, **given) for what, given in system.items()},
        **{what: _plain(topic, pairs=given) for what, given in pairs.items()},
        "no body": message(topic, b"", message_id="1"),
        "a body of the limit": message(topic, bytes(BODY_BYTES), message_id="1"),
        "a body above the limit": message(topic, bytes(BODY_BYTES + 1), message_id="1"),
        "no topic": Message(body=b"a"),
    }


async def names(side: Side) -> Seen:
    """Codes for topics and groups that cannot be, or are not there."""
    client = side.client()
    topic = await side.topic()
    return {
        what: code(await client.call(method, request))
        for what, method, request in _of_names(topic)
    }


async def bad_messages(side: Side) -> Seen:
    """Codes for messages that cannot be stored."""
    client = side.client()
    return {
        what: code(await client.call("SendMessage", sends(one)))
        for what, one in _messages(await side.topic()).items()
    }


async def strangers(side: Side) -> Seen:
    """Codes for clients that have not said who they are, or too much of it."""
    topic = await side.topic()
    group = await side.group(topic)
    names = {"topic": Resource(name=topic), "group": Resource(name=group)}
    nobody, stranger = side.client(None), side.client("stranger")
    too_much = side.client("too much")
    too_much.metadata.append(("x-mq-namespace", "x" * 100_000))
    route = QueryRouteRequest(topic=names["topic"])
    told: Seen = {
        "metadata of 100 KB": await ended(_call(too_much, "QueryRoute", route)),
        "receive without a client id": seen_all(
            await nobody.stream("ReceiveMessage", receives(topic, group))
        ),
        "receive without settings": seen_all(
            await stranger.stream("ReceiveMessage", receives(topic, group))
        ),
    }
    calls = {
        "QueryRoute": route,
        "QueryAssignment": QueryAssignmentRequest(**names),
        "Heartbeat": HeartbeatRequest(group=names["group"]),
        "SendMessage": sends(_plain(topic)),
        "AckMessage": AckMessageRequest(
            entries=[AckMessageEntry(message_id="1", receipt_handle=HANDLE)], **names
        ),
        "ChangeInvisibleDuration": ChangeInvisibleDurationRequest(
            receipt_handle=HANDLE, invisible_duration=Duration(seconds=10), **names
        ),
        "ForwardMessageToDeadLetterQueue": ForwardMessageToDeadLetterQueueRequest(
            receipt_handle=HANDLE, message_id="1", **names
        ),
        "EndTransaction": EndTransactionRequest(
            topic=names["topic"], message_id="1", transaction_id="1"
        ),
        "RecallMessage": RecallMessageRequest(topic=names["topic"]),
    }
    for method, request in calls.items():
        for who, client in (("nobody", nobody), ("a stranger", stranger)):
            told[f"{method} of {who}"] = await _how(client, method, request)
    return told


def _call(client: Any, method: str, request: Any) -> Any:
    return client._method(method)(request, metadata=client.metadata, timeout=30)


async def _how(client: Any, method: str, request: Any) -> str:
    call = _call(client, method, request)
    how = await ended(call)
    return code(await call) if how == "OK" else how


async def twins(side: Side) -> Seen:
    """Two clients with one id, of which one goes."""
    topic = await side.topic()
    group = await side.group(topic)
    one, two = side.client("twin"), side.client("twin")
    stream, _ = await one.telemetry(consumer(topic, group))
    await side.settled(two, consumer(topic, group))
    beat = HeartbeatRequest(group=Resource(name=group))
    told = {
        "both live": [code(await each.call("Heartbeat", beat)) for each in (one, two)]
    }
    stream.cancel()
    await one.close()
    told["one lives"] = [code(await two.call("Heartbeat", beat))]
    return told


REFUSALS: list[Scenario] = [names, bad_messages, strangers, twins]
