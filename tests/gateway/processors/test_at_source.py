"""gRPC clients of a node that migrates have the topics of its source, too."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ropeway.gateway.app import App
from ropeway.gateway.grpc.protocol import (
    Code,
    MessageQueue,
    MessageType,
    Permission,
    QueryAssignmentRequest,
    QueryRouteRequest,
    Resource,
)
from ropeway.gateway.processors import at_source
from ropeway.gateway.topics_config import MigrationConfig
from ropeway.routing.api import (
    AT_SOURCE,
    PASSED_ON,
    PERM_READ,
    RETURNED,
    SENT_BACK,
    STORED,
    Topic,
)
from tests.gateway.grpc.test_receipts import ack
from tests.gateway.grpc.thin import Thin, consumer, create, in_order, serving
from tests.remoting import config, looped
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

QUEUES = 8
THERE, HERE = "source-0", "broker-0"


@asynccontextmanager
async def migrating(folder: Path) -> AsyncIterator[tuple[App, App, Thin]]:
    """A source, a node that migrates from it, and a client of that one alone."""
    async with App(config(folder / "source", broker=THERE, cluster="Old")) as source:
        (listener,) = source.server.listeners
        migration = MigrationConfig(name_server=listener.advertised)
        async with serving(folder / "here", migration=migration) as (app, client):
            yield source, app, client


@asynccontextmanager
async def consuming(folder: Path) -> AsyncIterator[tuple[App, App, Thin]]:
    """Likewise, of a client that consumes a topic of the source in order."""
    async with migrating(folder) as (source, app, client):
        await create(source, "orders", "FIFO", queues=QUEUES)
        for one in (source, app):
            await in_order(one, "readers", retry_max_times=1)
        stream, _ = await client.telemetry(consumer("orders"))
        yield source, app, client
        stream.cancel()


async def route(client: Thin) -> dict[tuple[str, int], str]:
    """Where a client is led, by broker and what it may do."""
    asked = QueryRouteRequest(topic=Resource(name="orders"))
    answer = await client.call("QueryRoute", asked)
    assert answer.status.code == Code.OK, answer.status
    found = {}
    for one in answer.message_queues:
        (address,) = one.broker.endpoints.addresses
        found[one.broker.name, one.permission] = f"{address.host}:{address.port}"
    return found


async def assigned(client: Thin) -> set[str]:
    """The brokers that a consumer is to ask."""
    asked = QueryAssignmentRequest(
        topic=Resource(name="orders"), group=Resource(name="readers")
    )
    answer = await client.call("QueryAssignment", asked)
    assert answer.status.code == Code.OK, answer.status
    return {one.message_queue.broker.name for one in answer.assignments}


def mirror(**more: Any) -> Topic:
    return Topic(
        name="orders",
        read_queue_nums=QUEUES,
        write_queue_nums=QUEUES,
        perm=PERM_READ,
        attributes={"message.type": "FIFO"},
        mirrored=True,
        **more,
    )


async def send(client: Thin, *bodies: str) -> None:
    """Send messages of one group."""
    for body in bodies:
        answer = await client.send(
            "orders",
            body.encode(),
            message_type=MessageType.FIFO,
            message_group="account/4711/eur",
        )
        assert answer.status.code == Code.OK, answer.status
        (entry,) = answer.entries
        assert entry.status.code == Code.OK


async def receive(client: Thin, broker: str, wait_s: float = 1) -> list[Any]:
    """Receive what a broker has, as a client does that was led there."""
    of = MessageQueue(topic=Resource(name="orders"))
    of.broker.name = broker
    return await client.receive("orders", wait_s=wait_s, message_queue=of)


def stored(app: App) -> dict[int, int]:
    """How many messages each queue has got."""
    served = app.node.topics.get("orders")
    return {
        number: partition.next_offset
        for number, partition in enumerate(served.partitions)
        if partition.next_offset
    }


@looped
async def test_clients_stay_here_for_topics_of_the_source(tmp_path: Path):
    async with migrating(tmp_path) as (source, app, client):
        here = app.server.listeners[0].advertised
        await create(source, "orders", queues=QUEUES)
        assert await route(client) == {(THERE, Permission.READ_WRITE): here}
        assert await assigned(client) == {THERE}
        for writes in (AT_SOURCE, RETURNED):
            await app.node.topics.put(mirror(writes=writes))
            assert await route(client) == {(THERE, Permission.READ_WRITE): here}
        await app.node.topics.put(mirror(writes=PASSED_ON))
        assert await route(client) == {
            (HERE, Permission.WRITE): here,
            (THERE, Permission.READ): here,
        }
        assert await assigned(client) == {THERE}
        await create(app, "orders", queues=QUEUES)
        assert await route(client) == {(HERE, Permission.READ_WRITE): here}
        assert await assigned(client) == {HERE}


@looped
async def test_messages_go_to_the_source_and_come_from_there(tmp_path: Path):
    async with consuming(tmp_path) as (source, app, client):
        await send(client, "first", "second")
        # The queue that RocketMQ's proxy takes for that group.
        (queue_id,) = stored(source)
        assert queue_id == 5
        await app.node.topics.put(mirror())
        await send(client, "third")
        await app.node.topics.put(mirror(writes=PASSED_ON))
        await send(client, "fourth")
        assert stored(source) == {queue_id: 4}
        found = await receive(client, THERE)
        bodies = [one.body.decode() for one in found]
        assert bodies == ["first", "second", "third", "fourth"]
        handles = [one.system_properties.receipt_handle for one in found]
        assert await ack(client, *handles) == [Code.OK] * 4
        assert await receive(client, THERE) == []
        assert source.node.offsets.get("readers", "orders", queue_id) == 4


@looped
async def test_no_pop_waits_at_the_source_for_what_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(at_source, "_MOVING_POLL_MS", 7)
    async with consuming(tmp_path) as (_, app, client):
        polls_ms: list[int] = []
        ask = app.node.source.ask

        async def noted(broker: str, header: Any, wait_s: float) -> Any:
            polls_ms.append(header.poll_time)
            return await ask(broker, replace(header, poll_time=0), wait_s)

        monkeypatch.setattr(app.node.source, "ask", noted)

        async def waits_ms() -> list[int]:
            polls_ms.clear()
            assert await receive(client, THERE, wait_s=20) == []
            return polls_ms

        for writes in (AT_SOURCE, RETURNED):
            await app.node.topics.put(mirror(writes=writes))
            (wait_ms,) = await waits_ms()
            assert wait_ms > 10_000
        for writes in (PASSED_ON, STORED):
            await app.node.topics.put(mirror(writes=writes))
            assert await waits_ms() == [7]
        await app.node.topics.put(mirror(writes=SENT_BACK))
        assert await waits_ms() == []
        await app.node.topics.put(replace(mirror(), mirrored=False))
        assert await waits_ms() == []


@looped
async def test_transactions_and_unknown_topics_are_refused(tmp_path: Path):
    async with migrating(tmp_path) as (source, _, client):
        await create(source, "orders", "TRANSACTION")
        sent = await client.send("orders", message_type=MessageType.TRANSACTION)
        assert sent.status.code == Code.TOO_MANY_REQUESTS
        assert "transactions begin after that" in sent.status.message
        sent = await client.send("nowhere")
        assert sent.status.code == Code.TOPIC_NOT_FOUND


@looped
async def test_a_source_that_does_not_answer_takes_no_route_away(tmp_path: Path):
    (port,) = free_ports(1)
    at = f"127.0.0.1:{port}"
    migration = MigrationConfig(name_server=at)
    async with serving(tmp_path, migration=migration) as (_, client):
        asked = QueryRouteRequest(topic=Resource(name="orders"))
        answer = await client.call("QueryRoute", asked)
        assert answer.status.code == Code.HA_NOT_AVAILABLE
        assert f"migration's source {at} does not say" in answer.status.message
