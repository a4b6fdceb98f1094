"""Native clients and RocketMQ's work on one topic at once, over restarts of nodes."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.client import ConsumeFrom, Message, Producer, PushConsumer
from ropeway.gateway.wire.codes import ResponseCode
from tests.clients.harness import WAIT_SECONDS, AgentError, Event, Session, numbered
from tests.clients.programs import CLIENTS
from tests.remoting import connect, looped
from tests.requests import pulling, sending
from tests.ropeway.client.scenario import CONSUMER, PRODUCER, until
from tests.system.cluster import SHORT_SESSION_MS, Cluster
from tests.system.native import (
    TOPIC,
    full_name,
    native_client,
    native_reader,
    node_on,
    pulled,
    share,
)
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.remoting import Remoting
    from tests.system.zookeeper import ZooKeeper

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
pytestmark = [pytest.mark.jvm, pytest.mark.server]


@looped
async def test_offsets_have_no_gap_whoever_writes_and_whenever_the_node_restarts(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    rounds, each = 3, 300
    acknowledged: dict[int, bytes] = {}

    def produce(name: str) -> None:
        with native_client(pulsar) as client:
            producer = client.create_producer(
                full_name(pulsar_namespace), batching_enabled=name.endswith("batched")
            )
            for number in range(each):
                body = f"{name} {number}".encode()
                producer.send_async(body, lambda *_: None)
                if number % 50 == 0:
                    producer.flush()
            producer.flush()

    async def send(client: Remoting, name: str) -> None:
        for number in range(each):
            body = f"{name} {number}".encode()
            answer = await client.ask(sending(TOPIC), body)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            acknowledged[int(answer.fields["queueOffset"])] = body

    names = []
    for turn in range(rounds):
        async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
            if turn == 0:
                await share(client)
            theirs = [f"{turn}-single", f"{turn}-batched"]
            ours = [f"{turn}-ours-{one}" for one in range(4)]
            names += theirs + ours
            await asyncio.gather(
                *(asyncio.to_thread(produce, name) for name in theirs),
                *(send(client, name) for name in ours),
            )
        # Nobody serves the topic, and native clients do not mind.
        names.append(f"{turn}-alone")
        await asyncio.to_thread(produce, f"{turn}-alone")
    total = len(names) * each
    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        messages = await pulled(client, total)
        end = (await client.ask(pulling(TOPIC, total))).read_end()
    assert [one.queue_offset for one in messages] == list(range(total))
    assert end == total
    for offset, body in acknowledged.items():
        assert messages[offset].body == body, "acknowledged with another offset"
    for name in names:
        numbers = [
            int(one.body.split()[1])
            for one in messages
            if one.body.split()[0] == name.encode()
        ]
        assert numbers == list(range(each)), "out of order, lost or doubled"


@looped
async def test_what_cannot_be_shared_is_refused_by_name(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        wrong = await share(client, entries="AVRO")
        await share(client)
        changed = await share(client, entries="PACKED")
    assert wrong.code == changed.code == ResponseCode.SYSTEM_ERROR
    assert "not in set: [PACKED, PULSAR]; entry.format is 'AVRO'" in wrong.remark
    assert "allowed: at creation" in (changed.remark or "")


@looped
async def test_brokers_that_do_not_count_are_refused_with_the_setting(
    tmp_path: Path,
) -> None:
    server = Pulsar(
        tmp_path / "pulsar", settings={"brokerEntryMetadataInterceptors": ""}
    )
    try:
        server.start()
        async with node_on(server, "public/plain", tmp_path / "node") as (_, client):
            refused = await share(client)
            packed = await share(client, entries="PACKED")
    finally:
        server.kill()
    assert refused.code == ResponseCode.INVALID_PARAMETER
    assert "AppendIndexMetadataInterceptor" in (refused.remark or "")
    assert "exposingBrokerEntryMetadataToClientEnabled" in (refused.remark or "")
    assert packed.code == ResponseCode.SUCCESS


@looped
async def test_the_python_client_reads_what_native_producers_send(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    def produce() -> None:
        with native_client(pulsar) as client:
            producer = client.create_producer(full_name(pulsar_namespace))
            producer.send(b"native", properties={"TAGS": "T"}, partition_key="k")

    async with node_on(pulsar, pulsar_namespace, tmp_path) as (app, client):
        await share(client)
        address = app.server.listeners[0].advertised
        seen: list[tuple[bytes, str | None, tuple[str, ...]]] = []

        async def handle(message: Any) -> None:
            seen.append((message.body, message.tags, message.keys))

        async with Producer(address, "producers", config=PRODUCER) as producer:
            await producer.send(Message(TOPIC, b"ours", tags="T", keys=("a", "b")))
        await asyncio.to_thread(produce)
        consumer = PushConsumer(
            address, "readers", consume_from=ConsumeFrom.FIRST_OFFSET, config=CONSUMER
        )
        consumer.subscribe(TOPIC, "T", handle)
        async with consumer:
            await until(lambda: len(seen) == 2)
    assert seen == [(b"ours", "T", ("a", "b")), (b"native", "T", ("k",))]


def test_java_clients_and_native_ones_share_a_topic_over_a_failover(
    pulsar: Pulsar, zookeeper: ZooKeeper, agents: Agents, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, pulsar, zookeeper.address, session_ms=SHORT_SESSION_MS)
    try:
        cluster.start()
        asyncio.run(_share_on(cluster.broker_port))
        session = Session(agents.of(JAVA), cluster.name_server)
        consumer = session.start("consume", topic=TOPIC, group="java-readers")
        namespace = f"public/{cluster.namespace}"
        with native_client(pulsar) as theirs:
            producer = theirs.create_producer(full_name(namespace))
            for number in range(5):
                producer.send(b"native %d" % number, properties={"TAGS": "T"})
            for one in numbered(5, "java", tags="T", keys="k1 k2"):
                produce_at_last(session, one)
            consumer.wait(lambda events: has_all(events, 10))
            cluster.nodes[0].kill()
            for number in range(5, 10):
                producer.send(b"native %d" % number, properties={"TAGS": "T"})
            consumer.wait(lambda events: has_all(events, 15))
            for one in numbered(5, "again", tags="T", keys="k1 k2"):
                produce_at_last(session, one)
            received = consumer.wait(lambda events: has_all(events, 20))
            offsets = {one["offset"]: one["body"] for one in received}
            with native_reader(pulsar, namespace) as get:
                found = [get() for _ in offsets]
        consumer.stop()
    finally:
        cluster.kill()
    assert [offsets[n] for n in range(len(offsets))] == [
        one.data().decode() for one in found
    ]
    java = next(one for one in found if one.data() == b"java 0")
    assert java.partition_key() == "k1"
    assert java.properties()["TAGS"] == "T"


def has_all(received: list[Event], count: int) -> bool:
    """Whether so many messages came, and all that stand before them in the topic.

    Some may come twice, or stand there twice, which were sent again at the failover.
    """
    offsets = {one["offset"] for one in received}
    bodies = {one["body"] for one in received}
    return len(bodies) >= count and len(offsets) == max(offsets) + 1


def produce_at_last(session: Session, message: dict[str, Any]) -> None:
    """Send when the producer has heard of the new master, half a minute at most."""
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            session.produce(TOPIC, [message])
        except AgentError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)
        else:
            return


async def _share_on(port: int) -> None:
    address: Any = SimpleNamespace(host="127.0.0.1", port=port)
    async with connect(address) as client:
        assert (await share(client)).code == ResponseCode.SUCCESS
