"""Native Pulsar clients, and a node in this process that shares a topic with them."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import pulsar as native

from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.gateway.wire.commands.admin import CreateTopic
from tests.remoting import running
from tests.requests import pulling

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.wire.message import Message
    from tests.remoting import Frame, Remoting
    from tests.system.pulsar import Pulsar

TOPIC = "shared"
PATIENCE_MS = 60_000
COMPRESSIONS = ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"]


@contextlib.contextmanager
def native_client(server: Pulsar) -> Iterator[native.Client]:
    """Pulsar's own client; its calls block."""
    client = native.Client(
        server.service_url, logger=native.ConsoleLogger(native.LoggerLevel.Error)
    )
    try:
        yield client
    finally:
        client.close()


def node_on(
    server: Pulsar, namespace: str, data: Path, **changes: Any
) -> contextlib.AbstractAsyncContextManager[tuple[App, Remoting]]:
    """A node in this process that keeps messages in a namespace."""
    tenant, space = namespace.split("/")
    pulsar = PulsarConfig(
        service_url=server.service_url,
        admin_url=server.admin_url,
        tenant=tenant,
        namespace=space,
    )
    return running(data, pulsar=pulsar, node="node", **changes)


async def share(
    client: Remoting, topic: str = TOPIC, *, queues: int = 1, entries: str = "PULSAR"
) -> Frame:
    """Make a topic that native clients may write to."""
    return await client.ask(
        CreateTopic(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=6,
            attributes=f"+entry.format={entries}",
        )
    )


async def pulled(
    client: Remoting, count: int, *, topic: str = TOPIC, offset: int = 0, **more: Any
) -> list[Message]:
    """So many messages from an offset on, as soon as they are there."""
    found: list[Message] = []
    while len(found) < count:
        answer = await client.ask(pulling(topic, offset, **more))
        found += answer.messages()
        if answer.fields is not None:
            offset = int(answer.fields["nextBeginOffset"])
    return found


def full_name(namespace: str, topic: str = TOPIC) -> str:
    """A shared topic's first partition, as native clients name it."""
    return f"persistent://{namespace}/{topic}-partition-0"


@contextlib.contextmanager
def native_reader(
    server: Pulsar, namespace: str
) -> Iterator[functools.partial[native.Message]]:
    """What reads a shared topic from its beginning, a message a call."""
    with native_client(server) as client:
        reader = client.create_reader(full_name(namespace), native.MessageId.earliest)
        yield functools.partial(reader.read_next, PATIENCE_MS)
