"""Who may not see a topic or group is answered by gRPC as if it were not there.

Every method of the service is called with what exists and is forbidden, and with what
does not exist; a new method fails until it is here.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ropeway.gateway.grpc import protocol
from ropeway.gateway.grpc.protocol import ClientType, Code, MessageType, Resource
from ropeway.gateway.wire.message_id import parse_offset_msg_id, unpack
from ropeway.routing.api import Group
from tests.gateway.grpc.thin import (
    Thin,
    consumer,
    create,
    message,
    producer,
    receives,
    sends,
    serving,
    sign,
)
from tests.guarded import ALICE, ROOT, acl_of, allow, populate
from tests.remoting import looped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from ropeway.gateway.app import App

SECRET, ABSENT, MINE = "secret", "absent", "mine"
RECEIPT = "0 1795000000000 60000 0 0 broker-0 0 0"
KINDS = (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY)


class Target(NamedTuple):
    """What is called with."""

    topic: str
    group: str
    transaction_id: str

    def hidden(self, said: str) -> str:
        """An answer without what was asked for."""
        offset = unpack(parse_offset_msg_id(self.transaction_id).message_id).offset
        for one in (self.transaction_id, SECRET, ABSENT, f"offset {offset}"):
            said = said.replace(one, "<it>")
        return said


def request(name: str, **fields: Any) -> Any:
    """A request of a method."""
    method = protocol.SERVICE.methods_by_name[name]
    return protocol.message_class(method.input_type)(**fields)


def named(target: Target) -> dict[str, Resource]:
    return {
        "topic": Resource(name=target.topic),
        "group": Resource(name=target.group),
    }


def queue(target: Target) -> protocol.MessageQueue:
    return protocol.MessageQueue(topic=Resource(name=target.topic), id=0)


def of_receipt(name: str, target: Target, **more: Any) -> Any:
    for handle in (RECEIPT, RECEIPT.replace("0 0 broker", "1 0 broker")):
        yield request(name, **named(target), receipt_handle=handle, **more)


def _sent(target: Target) -> Iterator[Any]:
    for kind in KINDS:
        more: dict[str, Any] = {}
        if kind == MessageType.FIFO:
            more["message_group"] = "g"
        if kind == MessageType.DELAY:
            more["delivery_timestamp"] = protocol.Timestamp(seconds=1)
        one = message(target.topic, message_type=kind, message_id="m", **more)
        yield sends(one)
        yield sends(one, one)


def _acked(target: Target) -> Iterator[Any]:
    entry = {"message_id": "m", "receipt_handle": RECEIPT}
    for count in (1, 2):
        yield request("AckMessage", **named(target), entries=[entry] * count)


CALLS: dict[str, Callable[[Target], Iterator[Any]]] = {
    "QueryRoute": lambda one: iter(
        [request("QueryRoute", topic=Resource(name=one.topic))]
    ),
    "QueryAssignment": lambda one: iter([request("QueryAssignment", **named(one))]),
    "SendMessage": _sent,
    "ReceiveMessage": lambda one: iter([receives(one.topic, one.group)]),
    "AckMessage": _acked,
    "ForwardMessageToDeadLetterQueue": lambda one: of_receipt(
        "ForwardMessageToDeadLetterQueue", one, message_id="m"
    ),
    "ChangeInvisibleDuration": lambda one: of_receipt(
        "ChangeInvisibleDuration",
        one,
        invisible_duration=protocol.Duration(seconds=30),
    ),
    "PullMessage": lambda one: iter(
        [
            request(
                "PullMessage",
                group=Resource(name=one.group),
                message_queue=queue(one),
                batch_size=1,
            )
        ]
    ),
    "UpdateOffset": lambda one: iter(
        [
            request(
                "UpdateOffset",
                group=Resource(name=one.group),
                message_queue=queue(one),
                offset=1,
            )
        ]
    ),
    "GetOffset": lambda one: iter(
        [request("GetOffset", group=Resource(name=one.group), message_queue=queue(one))]
    ),
    "QueryOffset": lambda one: iter([request("QueryOffset", message_queue=queue(one))]),
    "EndTransaction": lambda one: iter(
        [
            request(
                "EndTransaction",
                topic=Resource(name=topic),
                message_id="m",
                transaction_id=one.transaction_id,
                resolution=protocol.TransactionResolution.COMMIT,
            )
            for topic in (one.topic, MINE)
        ]
    ),
    "RecallMessage": lambda one: iter(
        [request("RecallMessage", topic=Resource(name=one.topic), recall_handle="bm8=")]
    ),
    "SyncLiteSubscription": lambda one: iter(
        [request("SyncLiteSubscription", **named(one), lite_topic_set=["l"])]
    ),
    "NotifyClientTermination": lambda one: iter(
        [request("NotifyClientTermination", group=Resource(name=one.group))]
    ),
}
"""Calls that name something, by their method."""
BY_SETTINGS = {"Telemetry", "Heartbeat"}
"""Methods that name by a client's settings, which a stream says."""


def settings_of(target: Target) -> Iterator[Any]:
    """What streams begin with."""
    for kind in (
        ClientType.SIMPLE_CONSUMER,
        ClientType.PUSH_CONSUMER,
        ClientType.PULL_CONSUMER,
        ClientType.LITE_PUSH_CONSUMER,
    ):
        yield consumer(target.topic, target.group, kind)
    yield producer(target.topic)


async def said(client: Thin, name: str, asked: Any) -> str:
    """All that is answered."""
    if protocol.SERVICE.methods_by_name[name].server_streaming:
        answers = await client.stream(name, asked)
        # The end says when it was.
        return "".join(str(one) for one in answers if one.HasField("status"))
    return str(await client.call(name, asked))


@asynccontextmanager
async def hiding(data: Path) -> AsyncIterator[tuple[App, Thin, Thin]]:
    """A node with what `alice` may not see: ordered, delayed, lite; two clients."""
    async with serving(data, acl=acl_of(data)) as (app, _):
        await populate(app, allow(f"Topic:{MINE}"), allow(f"Group:{MINE}"))
        for kind in (MessageType.Name(one) for one in (*KINDS, MessageType.LITE)):
            await create(app, f"{SECRET}-{kind}", kind)
            await app.node.groups.put(
                Group(name=f"{SECRET}-{kind}", consume_message_orderly=kind == "FIFO")
            )
        await app.node.groups.put(
            Group(
                name=f"{SECRET}-LITE",
                attributes={"lite.bind.topic": f"{SECRET}-LITE"},
            )
        )
        await create(app, f"{SECRET}-TRANSACTION", "TRANSACTION")
        await create(app, MINE)
        await app.node.groups.put(Group(name=MINE))
        address = app.server.listeners[0].advertised
        client, root = sign(Thin(address, "a"), ALICE), sign(Thin(address, "r"), ROOT)
        yield app, root, client
        await client.close()
        await root.close()


async def targets(root: Thin) -> Iterator[tuple[Target, Target]]:
    """What exists, each beside what does not."""
    sent = await root.send(
        f"{SECRET}-TRANSACTION", message_type=MessageType.TRANSACTION
    )
    half = sent.entries[0].transaction_id
    nowhere = parse_offset_msg_id(half).message_id + 0x7000
    none = f"{half[:-16]}{nowhere:016X}"
    kinds = [MessageType.Name(one) for one in (*KINDS, MessageType.LITE)]
    pairs = []
    for kind in kinds:
        for topic, group in (("{}", "{}"), (MINE, "{}"), ("{}", MINE)):
            there, absent = f"{SECRET}-{kind}", f"{ABSENT}-{kind}"
            pairs.append(
                (
                    Target(topic.format(there), group.format(there), half),
                    Target(topic.format(absent), group.format(absent), none),
                )
            )
    return iter(pairs)


def test_every_method_is_called():
    assert set(CALLS) | BY_SETTINGS == set(protocol.SERVICE.methods_by_name)


@looped
@pytest.mark.parametrize("name", sorted(CALLS))
async def test_what_is_forbidden_is_answered_as_what_is_not_there(
    tmp_path: Path, name: str
):
    async with hiding(tmp_path) as (_, root, client):
        stream, _ = await client.telemetry(consumer(MINE, MINE))
        for there, absent in await targets(root):
            calls = zip(CALLS[name](there), CALLS[name](absent), strict=True)
            for first, second in calls:
                if first == second:
                    # It names only what is the caller's own.
                    continue
                seen = there.hidden(await said(client, name, first))
                # A half message is found by its id: it is as if there were none.
                assert "code: FORBIDDEN" in seen or name == "EndTransaction", seen
                assert "code: OK" not in seen
                assert seen == absent.hidden(await said(client, name, second))
        stream.cancel()


@looped
async def test_settings_of_what_is_forbidden_are_refused_as_of_what_is_not_there(
    tmp_path: Path,
):
    async with hiding(tmp_path) as (_, root, client):
        for there, absent in await targets(root):
            for first, second in zip(
                settings_of(there), settings_of(absent), strict=True
            ):
                if first == second:
                    continue
                seen = await client.refused(first)
                unseen = await client.refused(second)
                assert seen[0] == unseen[0]
                # Of a group of one's own it is told that it consumes no lite topics.
                refusals = ("FORBIDDEN: ", "ILLEGAL_CONSUMER_GROUP: regular group")
                assert seen[1].startswith(refusals)
                assert there.hidden(seen[1]) == absent.hidden(unseen[1])


@looped
async def test_who_may_see_it_is_told_the_truth(tmp_path: Path):
    async with hiding(tmp_path) as (_, root, _client):
        stream, _ = await root.telemetry(producer(f"{SECRET}-FIFO"))
        wrong = await root.send(f"{SECRET}-FIFO")
        assert wrong.status.code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        gone = await root.call(
            "ForwardMessageToDeadLetterQueue",
            request(
                "ForwardMessageToDeadLetterQueue",
                **named(Target(ABSENT, MINE, "")),
                receipt_handle=RECEIPT,
            ),
        )
        assert gone.status.code == Code.INVALID_RECEIPT_HANDLE
        stream.cancel()
