"""One of two servers, as the differential test of gRPC asks it, and what it answers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Self

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToDict

from ropeway.gateway.grpc.protocol import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
    Duration,
    ForwardMessageToDeadLetterQueueRequest,
    Message,
    Resource,
)
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import CreateGroup, CreateTopic
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, UpdateConsumerOffset
from tests.gateway.grpc.thin import Thin, consumer, receives
from tests.remoting import Frame, Remoting
from tests.system.process import route_code

if TYPE_CHECKING:
    from ropeway.gateway.wire.header import Header

BROKER = "broker-0"
WAIT_S = 90
_CHANCE = {
    # Addresses, times, and what is made of them.
    "born_host",
    "born_timestamp",
    "delivery_timestamp",
    "endpoints",
    "receipt_handle",
    "recall_handle",
    "store_host",
    "store_timestamp",
    "transaction_id",
}
_LITE = {"lite_subscription_quota", "max_lite_topic_size"}
"""Of clients of lite topics, which these tests have none of."""
Seen = dict[str, Any]


def seen(answer: Any) -> Any:
    """What an answer says, without what differs from run to run.

    Of that it is told whether it is there; of a status only the code: its sentence is
    for people.
    """
    return _comparable(MessageToDict(answer, preserving_proto_field_name=True))


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [_comparable(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() <= {"code", "message"} and "code" in value:
        return value["code"]
    return {
        name: "is there" if name in _CHANCE else _comparable(value[name])
        for name in sorted(value.keys() - _LITE)
    }


def code(answer: Any) -> str:
    """How a call went."""
    return Code.Name(answer.status.code)


def codes(answer: Any) -> list[str]:
    """How a call went, and each of its parts."""
    return [code(answer), *map(code, answer.entries)]


def note(told: Seen, what: str, message: Message) -> None:
    """Note what a message is, and apart from that its user's properties."""
    told[what] = seen(message)
    told[f"{what}, properties"] = told[what].pop("user_properties", {})


class Side:
    """A server, and a test's own topics, groups and clients on it.

    Args:
        endpoint: Where it speaks gRPC.
        broker_port: Where administrators ask it.
        name_port: Where routes are asked for.
        name: What the names of all that is the test's begin with.
    """

    def __init__(
        self, endpoint: str, broker_port: int, name_port: int, name: str
    ) -> None:
        self._endpoint = endpoint
        self._broker_port = broker_port
        self._name_port = name_port
        self._name = name
        self._clients: list[Thin] = []
        self._streams: list[Any] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.cancel()
        for client in self._clients:
            await client.close()

    async def admin(self, header: Header, body: bytes = b"") -> Frame:
        """Ask the broker as administrators do."""
        client = Remoting(
            *await asyncio.open_connection("127.0.0.1", self._broker_port)
        )
        try:
            return await client.ask(header, body)
        finally:
            await client.close()

    async def topic(
        self, kind: str | None = "NORMAL", queues: int = 1, **changes: Any
    ) -> str:
        """Make a topic that takes messages of a type, and see that it is known."""
        name = f"{self._name}-{(kind or 'none').lower()}-{len(changes)}"
        given = {
            "read_queue_nums": queues,
            "write_queue_nums": queues,
            "perm": 6,
            "attributes": f"+message.type={kind}" if kind else None,
            **changes,
        }
        header = CreateTopic(topic=name, default_topic="", **given)
        answer = await self.admin(header)
        assert answer.code == 0, answer.remark
        async with asyncio.timeout(WAIT_S):
            # A proxy would remember that it was not there.
            port = self._name_port
            while await asyncio.to_thread(route_code, port, name) != 0:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        return name

    async def group(self, topic: str, suffix: str = "", **config: Any) -> str:
        """Make a group that begins at the first message of a topic's first queue."""
        name = f"{topic}-{suffix}{len(config)}"
        body = bodies.encode(bodies.GroupConfig(group_name=name, **config))
        assert (await self.admin(CreateGroup(), body)).code == 0
        begin = UpdateConsumerOffset(name, topic, 0, 0, BROKER)
        assert (await self.admin(begin)).code == 0
        return name

    async def stored(self, topic: str, count: int) -> None:
        """Wait until the first queue of a topic has had so many messages."""
        async with asyncio.timeout(WAIT_S):
            while await self.end(topic) != count:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)

    async def end(self, topic: str) -> int:
        """How many messages the first queue of a topic has had; -1: there is none."""
        answer = await self.admin(GetMaxOffset(topic=topic, queue_id=0))
        return int(answer.fields["offset"]) if answer.code == 0 else -1

    def client(self, client_id: str | None = "client") -> Thin:
        """A client, on a connection of its own."""
        name = None if client_id is None else f"{self._name}-{client_id}"
        client = Thin(self._endpoint, name)
        self._clients.append(client)
        return client

    async def settled(self, client: Thin, wanted: Any) -> Any:
        """What a client is told of its settings; its stream stays open."""
        stream, told = await client.telemetry(wanted)
        self._streams.append(stream)
        return told

    async def consumer(
        self,
        topic: str,
        group: str,
        kind: ClientType = ClientType.SIMPLE_CONSUMER,
    ) -> Consumer:
        """A client that consumes."""
        return await self.joined(self.client(f"of-{group}"), topic, group, kind)

    async def joined(
        self, client: Thin, topic: str, group: str, kind: ClientType
    ) -> Consumer:
        """Have a client consume."""
        await self.settled(client, consumer(topic, group, kind))
        return Consumer(client, topic, group)


class Consumer:
    """A client that consumes a topic."""

    def __init__(self, client: Thin, topic: str, group: str) -> None:
        self.client = client
        self.topic = topic
        self.group = group
        self._of = {"topic": Resource(name=topic), "group": Resource(name=group)}

    async def receive(self, count: int = 1, **more: Any) -> list[Message]:
        """Receive until there are so many messages."""
        found: list[Message] = []
        async with asyncio.timeout(WAIT_S):
            while len(found) < count:
                found += await self.client.receive(
                    self.topic, self.group, wait_s=5, **more
                )
        return found

    async def look(self, **more: Any) -> list[Any]:
        """All that is answered where nothing is waited for."""
        request = receives(self.topic, self.group, 0.2, **more)
        return seen_all(await self.client.stream("ReceiveMessage", request))

    async def ack(self, *messages: Message, handle: str | None = None) -> Any:
        """Acknowledge messages, or one by another handle."""
        entries = [
            AckMessageEntry(
                message_id=one.system_properties.message_id,
                receipt_handle=handle or one.system_properties.receipt_handle,
                lite_topic=one.system_properties.lite_topic or None,
            )
            for one in messages
        ]
        request = AckMessageRequest(entries=entries, **self._of)
        return await self.client.call("AckMessage", request)

    async def change(self, handle: str, after_ms: int) -> Any:
        """Have a message come again after a time."""
        request = ChangeInvisibleDurationRequest(
            receipt_handle=handle,
            invisible_duration=Duration(
                seconds=after_ms // 1000, nanos=after_ms % 1000 * 1_000_000
            ),
            **self._of,
        )
        return await self.client.call("ChangeInvisibleDuration", request)

    async def bury(self, message: Message, handle: str | None = None) -> Any:
        """Send a message to the dead letters."""
        system = message.system_properties
        request = ForwardMessageToDeadLetterQueueRequest(
            receipt_handle=handle or system.receipt_handle,
            message_id=system.message_id,
            delivery_attempt=system.delivery_attempt,
            max_delivery_attempts=1,
            **self._of,
        )
        return await self.client.call("ForwardMessageToDeadLetterQueue", request)


def seen_all(answers: list[Any]) -> list[Any]:
    """What the answers of a stream say, but for the times alone."""
    return [
        one for one in map(seen, answers) if one != {"delivery_timestamp": "is there"}
    ]


async def ended(call: Any) -> str:
    """How a call ends that gRPC itself refuses."""
    with contextlib.suppress(grpc.aio.AioRpcError):
        await call
        return "OK"
    return str((await call.code()).name)
