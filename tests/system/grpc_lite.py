"""What the differential test of gRPC does in groups that want all lite topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ropeway.gateway.grpc.protocol import (
    ClientType,
    MessageType,
    Resource,
    SyncLiteSubscriptionRequest,
)
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import CreateGroup
from ropeway.gateway.wire.commands.lite import (
    PARTIAL_ADD,
    LiteSubscription,
    LiteSubscriptionCtl,
    LiteSubscriptions,
)
from ropeway.gateway.wire.commands.lite_views import GetLiteClientInfo, GetLiteTopicInfo
from ropeway.gateway.wire.lite_bodies import LiteClientInfo, LiteTopicInfo
from tests.gateway.grpc.thin import Thin, message, sends
from tests.system.grpc_side import WAIT_S, Seen, Side, code, codes

if TYPE_CHECKING:
    from ropeway.gateway.grpc.protocol import Message
    from tests.system.grpc_scenarios import Scenario
    from tests.system.grpc_side import Consumer

WORDS = "subscribe lite operation is not supported for this group"
WILDCARD = "lite.sub.wildcard"


async def _send(client: Thin, topic: str, lite: str, *texts: str) -> None:
    for text in texts:
        one = message(
            topic, text.encode(), message_type=MessageType.LITE, lite_topic=lite
        )
        assert code(await client.call("SendMessage", sends(one))) == "OK"


async def _sync(reader: Consumer, action: str, *lites: str) -> Any:
    request = SyncLiteSubscriptionRequest(
        action=action,
        topic=Resource(name=reader.topic),
        group=Resource(name=reader.group),
        lite_topic_set=lites,
    )
    return await reader.client.call("SyncLiteSubscription", request)


async def _bound(side: Side, topic: str, **attributes: str) -> Consumer:
    """A consumer of lite topics, of a group with attributes."""
    given = {"+lite.bind.topic": topic, **attributes}
    group = await side.group(topic, str(len(attributes)), attributes=given)
    return await side.consumer(topic, group, ClientType.LITE_PUSH_CONSUMER)


def _by_lite(found: list[Message]) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for one in found:
        lite = one.system_properties.lite_topic
        told.setdefault(lite, []).append(one.body.decode())
    return {lite: told[lite] for lite in sorted(told)}


async def all_lite_topics(side: Side) -> Seen:
    """A group that wants all lite topics: what it gets, and what it is refused."""
    topic = await side.topic("LITE", queues=4)
    sender = side.client("sender")
    await _send(sender, topic, "a", "a0", "a1")
    await _send(sender, topic, "b", "b0")
    # The attribute counts, whatever it says.
    reader = await _bound(side, topic, **{f"+{WILDCARD}": "false"})
    refused = await _sync(reader, "PARTIAL_ADD", "a")
    told: Seen = {
        "subscribes to one": code(refused),
        "subscribes to one, words": WORDS in refused.status.message,
        "ends one that it never had": code(await _sync(reader, "PARTIAL_REMOVE", "a")),
        "names nothing": code(await _sync(reader, "COMPLETE_ADD")),
    }
    found = await reader.receive(3, auto_renew=True)
    told["got what there was"] = _by_lite(found)
    told["acknowledged"] = [codes(await reader.ack(one)) for one in found]
    await _send(sender, topic, "a", "a2")
    await _send(sender, topic, "new", "new0")
    found = await reader.receive(2, auto_renew=True)
    told["got what came"] = _by_lite(found)
    for one in found:
        await reader.ack(one)
    told["names some"] = code(await _sync(reader, "COMPLETE_ADD", "a"))
    await _send(sender, topic, "b", "b1")
    found = await reader.receive(1, auto_renew=True)
    told["got what it did not name"] = _by_lite(found)
    await reader.ack(*found)
    told |= await _told_administrators(side, reader)
    change = bodies.GroupConfig(
        group_name=reader.group, attributes={f"-{WILDCARD}": ""}
    )
    assert (await side.admin(CreateGroup(), bodies.encode(change))).code == 0
    # RocketMQ remembers for half a minute who wants all, and sends on so long.
    told["the attribute is gone"] = code(await _sync(reader, "COMPLETE_ADD", "a"))
    told |= await _client_told(side, reader, "client, the attribute is gone")
    return told


def _client_id(reader: Consumer) -> str:
    return str(dict(reader.client.metadata)["x-mq-client-id"])


async def _client_told(side: Side, reader: Consumer, what: str = "client") -> Seen:
    asked = GetLiteClientInfo(reader.topic, reader.group, _client_id(reader))
    client = bodies.decode(LiteClientInfo, (await side.admin(asked)).body)
    return {what: [client.lite_topic_count, client.lite_topic_set]}


async def _told_administrators(side: Side, reader: Consumer) -> Seen:
    told = await _client_told(side, reader)
    lite = GetLiteTopicInfo(parent_topic=reader.topic, lite_topic="a")
    topic = bodies.decode(LiteTopicInfo, (await side.admin(lite)).body)
    told["subscribers"] = [(one.client_id, one.group) for one in topic.subscriber]
    wanted = LiteSubscription(
        action=PARTIAL_ADD,
        client_id=_client_id(reader),
        group=reader.group,
        topic=reader.topic,
        lite_topic_set=["a"],
    )
    body = bodies.encode(LiteSubscriptions([wanted]))
    answer = await side.admin(LiteSubscriptionCtl(), body)
    told["refused by the broker"] = [answer.code, WORDS in (answer.remark or "")]
    return told


async def lite_patterns(side: Side) -> Seen:
    """Names of lite topics are no patterns."""
    topic = await side.topic("LITE")
    reader = await _bound(side, topic)
    return {
        name: code(await _sync(reader, "PARTIAL_ADD", name))
        for name in ("a", "*", "a*", "a.b", "a|b", "a?")
    }


async def wanted_by_two(side: Side) -> Seen:
    """Two clients of a group that wants all: each message goes to one of them."""
    topic = await side.topic("LITE", queues=4)
    readers = [await _bound(side, topic, **{f"+{WILDCARD}": "true"})]
    other = side.client("other")
    group, kind = readers[0].group, ClientType.LITE_PUSH_CONSUMER
    readers.append(await side.joined(other, topic, group, kind))
    told: Seen = {
        "both": [code(await _sync(reader, "COMPLETE_ADD")) for reader in readers]
    }
    names = [f"room-{number}" for number in range(10)]
    for name in names:
        await _send(side.client("sender"), topic, name, name)
    found: list[str] = []

    async def read(reader: Consumer) -> None:
        while len(found) < len(names):
            taken = await reader.client.receive(
                reader.topic, reader.group, wait_s=2, auto_renew=True
            )
            found.extend(one.body.decode() for one in taken)
            for one in taken:
                await reader.ack(one)

    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        for reader in readers:
            tasks.create_task(read(reader))
    told["got"] = sorted(found)
    return told


LITE: list[Scenario] = [all_lite_topics, lite_patterns, wanted_by_two]
