"""A client of the gRPC service that does what a test says, and nothing by itself."""

from __future__ import annotations

import asyncio
import hmac
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from ropeway.gateway.app import App
from ropeway.gateway.grpc import protocol
from ropeway.gateway.grpc.protocol import (
    ClientType,
    Duration,
    FilterExpression,
    Message,
    MessageQueue,
    MessageType,
    ReceiveMessageRequest,
    Resource,
    SendMessageRequest,
    Settings,
    SubscriptionEntry,
    SystemProperties,
    TelemetryCommand,
)
from ropeway.gateway.grpc.setup import messaging
from ropeway.routing.api import Group, Topic
from tests.guarded import PASSWORD
from tests.remoting import config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CALL_S = 60
INVISIBLE_S = 30


class Thin:
    """One client on one connection.

    Args:
        address: Where the node listens.
        client_id: What it calls itself; None: it does not say.
        far: Take no more before it is read than HTTP/2 allows from the first.
    """

    def __init__(
        self, address: str, client_id: str | None = "thin", *, far: bool = False
    ) -> None:
        # Or else channels to one address share a connection.
        options = [("grpc.use_local_subchannel_pool", 1)]
        if far:
            options.append(("grpc.http2.bdp_probe", 0))
        self.channel = grpc.aio.insecure_channel(address, options=options)
        self.metadata = [("x-mq-language", "PYTHON")]
        if client_id is not None:
            self.metadata.append(("x-mq-client-id", client_id))

    def _method(self, name: str) -> Any:
        method = protocol.SERVICE.methods_by_name[name]
        request = protocol.message_class(method.input_type)
        answer = protocol.message_class(method.output_type)
        ways = ["unary_unary", "unary_stream", None, "stream_stream"]
        way = ways[method.server_streaming + 2 * method.client_streaming]
        return getattr(self.channel, way)(
            f"/{protocol.SERVICE.full_name}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )

    async def call(self, name: str, request: Any) -> Any:
        """Make a call that is answered once."""
        return await self._method(name)(request, metadata=self.metadata, timeout=CALL_S)

    def stream_of(self, name: str, request: Any, timeout_s: float = CALL_S) -> Any:
        """Make a call that is answered by a stream, of which nothing is read yet."""
        return self._method(name)(request, metadata=self.metadata, timeout=timeout_s)

    async def stream(self, name: str, request: Any, timeout_s: float = CALL_S) -> Any:
        """Make a call that is answered by a stream, to its end."""
        return [one async for one in self.stream_of(name, request, timeout_s)]

    async def telemetry(self, wanted: Settings) -> tuple[Any, TelemetryCommand]:
        """Open a stream and say settings; the stream, and what was answered."""
        stream = self._method("Telemetry")(metadata=self.metadata)
        await stream.write(TelemetryCommand(settings=wanted))
        return stream, await stream.read()

    async def refused(
        self, wanted: Settings, after_s: float = 0.0
    ) -> tuple[grpc.StatusCode, str]:
        """Say settings that are refused, a time after coming; how the stream ends."""
        stream = self._method("Telemetry")(metadata=self.metadata)
        await asyncio.sleep(after_s)
        await stream.write(TelemetryCommand(settings=wanted))
        async with asyncio.timeout(CALL_S):
            return await stream.code(), await stream.details()

    async def send(self, topic: str, body: bytes = b"hello", **system: Any) -> Any:
        """Send one message."""
        return await self.call("SendMessage", sends(message(topic, body, **system)))

    async def receive(
        self, topic: str, group: str = "readers", *, wait_s: float = 0, **more: Any
    ) -> list[Message]:
        """Receive messages of a topic, or none."""
        responses = await self.stream(
            "ReceiveMessage", receives(topic, group, wait_s, **more)
        )
        return [one.message for one in responses if one.HasField("message")]

    async def close(self) -> None:
        """Close the connection."""
        await self.channel.close()


def sends(*messages: Message) -> SendMessageRequest:
    """A request to store messages."""
    return SendMessageRequest(messages=messages)


def message(topic: str, body: bytes = b"hello", **system: Any) -> Message:
    """A message to be sent."""
    pairs = system.pop("pairs", {})
    given = {
        "message_id": uuid.uuid4().hex,
        "message_type": MessageType.NORMAL,
        **system,
    }
    return Message(
        topic=Resource(name=topic),
        user_properties=pairs,
        system_properties=SystemProperties(**given),
        body=body,
    )


def receives(
    topic: str, group: str = "readers", wait_s: float = 0, **more: Any
) -> ReceiveMessageRequest:
    """A request for messages."""
    given = {
        "invisible_duration": Duration(seconds=INVISIBLE_S),
        "batch_size": 32,
        "message_queue": MessageQueue(topic=Resource(name=topic)),
        **more,
    }
    return ReceiveMessageRequest(
        group=Resource(name=group),
        long_polling_timeout=Duration(
            seconds=int(wait_s), nanos=int(wait_s % 1 * 1_000_000_000)
        ),
        **given,
    )


def consumer(
    topic: str, group: str = "readers", kind: ClientType = ClientType.SIMPLE_CONSUMER
) -> Settings:
    """The settings of a consumer."""
    wanted = Settings(client_type=kind)
    wanted.subscription.group.name = group
    wanted.subscription.subscriptions.append(
        SubscriptionEntry(
            topic=Resource(name=topic), expression=FilterExpression(expression="*")
        )
    )
    return wanted


def producer(*topics: str) -> Settings:
    """The settings of a producer."""
    wanted = Settings(client_type=ClientType.PRODUCER)
    wanted.publishing.topics.extend(Resource(name=topic) for topic in topics)
    return wanted


@asynccontextmanager
async def serving(data: Path, **changes: Any) -> AsyncIterator[tuple[App, Thin]]:
    """A node in this process that serves gRPC, and one client of it."""
    async with App(config(data, grpc=True, **changes)) as app, messaging(app):
        client = Thin(app.server.listeners[0].advertised)
        try:
            yield app, client
        finally:
            await client.close()


@asynccontextmanager
async def consuming(
    data: Path, topic: str = "orders", **changes: Any
) -> AsyncIterator[tuple[App, Thin]]:
    """Likewise, with a topic that a client consumes."""
    async with serving(data, **changes) as (app, client):
        await create(app, topic)
        stream, _ = await client.telemetry(consumer(topic))
        yield app, client
        stream.cancel()


async def create(app: App, name: str, kind: str | None = None, queues: int = 1) -> None:
    """Make a topic, which takes messages of a type."""
    attributes = {"message.type": kind} if kind else {}
    await app.node.topics.put(
        Topic(
            name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            attributes=attributes,
        )
    )


async def in_order(app: App, name: str, **more: Any) -> None:
    """Make a group that consumes in order."""
    await app.node.groups.put(Group(name=name, consume_message_orderly=True, **more))


def sign(client: Thin, user: str, password: str = PASSWORD) -> Thin:
    """Have a client say who it is, as RocketMQ's clients do."""
    date = "20261122T050000Z"
    signature = hmac.digest(password.encode(), date.encode(), "sha1").hex()
    said = f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, "
    client.metadata += [
        ("authorization", f"{said}Signature={signature.upper()}"),
        ("x-mq-date-time", date),
    ]
    return client
