"""Several nodes on Pulsar and ZooKeeper, seen by raw clients and administrators."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.client import Message, Producer, PushConsumer
from ropeway.gateway.node import names
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.namesrv import GetBrokerClusterInfo, GetRouteInfo
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import TIMEOUT_S, Remoting, connect, looped
from tests.requests import committing, pulling, sending
from tests.ropeway.client.scenario import PATIENT_CONSUMER
from tests.ropeway.client.scenario import PATIENT_PRODUCER as PATIENT
from tests.system.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.ropeway import Ropeway
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


def reach(node: Ropeway) -> Remoting:
    return connect(SimpleNamespace(host="127.0.0.1", port=node.broker_port))


@pytest.fixture
def cluster(tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper) -> Iterator[Cluster]:
    """Two nodes of one broker."""
    with running(Cluster(tmp_path, pulsar, zookeeper.address)) as made:
        yield made


async def brokers(node: Ropeway) -> dict[str, dict[str, str]]:
    """The brokers' nodes by their ids, as a node tells them."""
    async with reach(node) as client:
        answer = await client.ask(GetBrokerClusterInfo())
    info = msgspec.json.decode(answer.body, type=bodies.ClusterInfo)
    return {
        name: dict(broker.broker_addrs)
        for name, broker in info.broker_addr_table.items()
    }


async def until_told(node: Ropeway, wanted: dict[str, dict[str, str]]) -> None:
    """Return when a node has heard of the others what it is to tell of them."""
    async with asyncio.timeout(TIMEOUT_S):
        while await brokers(node) != wanted:  # noqa: ASYNC110 - whoever tells
            await asyncio.sleep(0.05)


@looped
async def test_every_node_answers_for_its_broker(cluster: Cluster):
    first, second = cluster.nodes
    both = {"broker-0": {"0": first.name_server, "1": second.name_server}}
    for node in cluster.nodes:
        await until_told(node, both)
    async with reach(first) as master, reach(second) as slave:
        for number, client in enumerate([slave, master, slave]):
            sent = await client.ask(sending("orders"), b"%d" % number)
            reply = sent.read(SendReply)
            assert (sent.code, reply.queue_offset) == (0, number)
            # Whoever took it, the id has the address of who keeps it.
            port = int(reply.msg_id[8:16], 16)
            assert port == first.broker_port
        for client in (master, slave):
            found = await client.ask(pulling("orders"))
            assert [one.body for one in found.messages()] == [b"0", b"1", b"2"]
        await slave.ask(committing("orders", 0, 2))


@looped
async def test_offsets_go_on_where_the_master_stopped(cluster: Cluster):
    first, second = cluster.nodes
    asked = {"consumerGroup": "readers", "topic": "orders", "queueId": "0"}
    async with reach(first) as client:
        for _ in range(3):
            await client.ask(sending("orders"), b"x")
        await client.ask(committing("orders", 0, 2))
    await asyncio.to_thread(first.stop)
    async with reach(second) as client:
        answer = await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=asked)
        assert answer.fields["offset"] == "2"
        sent = await client.ask(sending("orders"), b"x")
        assert sent.read(SendReply).queue_offset == 3
    await until_told(second, {"broker-0": {"0": second.name_server}})
    # Who comes back is the last in line.
    await asyncio.to_thread(first.start)
    both = {"broker-0": {"0": second.name_server, "1": first.name_server}}
    await until_told(first, both)


@looped
async def test_a_topic_grows_under_its_consumers(cluster: Cluster):
    seen: dict[bytes, int] = {}
    first, _ = cluster.nodes
    create = CreateTopic(
        topic="orders",
        default_topic="TBW102",
        read_queue_nums=2,
        write_queue_nums=2,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
    )
    wider = msgspec.structs.replace(create, read_queue_nums=5, write_queue_nums=5)
    async with reach(first) as admin:
        assert (await admin.ask(create)).code == 0
        consumer = PushConsumer(cluster.name_server, "readers", config=PATIENT_CONSUMER)

        async def note(message) -> None:
            seen[message.body] = message.queue.queue_id

        consumer.subscribe("orders", "*", note)
        async with (
            consumer,
            Producer(cluster.name_server, "writers", config=PATIENT) as producer,
        ):
            await producer.send(Message("orders", b"before"))
            await _until_seen(seen, {b"before"})
            before = {
                number: (await admin.ask(GetMaxOffset(topic="orders", queue_id=number)))
                .read(Offset)
                .offset
                for number in range(2)
            }
            assert (await admin.ask(wider)).code == 0
            bodies_sent = set()
            for number in range(5):
                body = b"after %d" % number
                await admin.ask(sending("orders", queue_id=number), body)
                bodies_sent.add(body)
            await _until_seen(seen, bodies_sent)
            assert {seen[body] for body in bodies_sent} == set(range(5))
            for number, end in before.items():
                answer = await admin.ask(GetMaxOffset(topic="orders", queue_id=number))
                assert answer.read(Offset).offset == end + 1


async def _until_seen(seen: dict[bytes, int], wanted: set[bytes]) -> None:
    async with asyncio.timeout(90):
        while not wanted <= seen.keys():  # noqa: ASYNC110 - whatever comes
            await asyncio.sleep(0.05)


@looped
async def test_a_topic_of_more_than_1024_queues_is_refused(cluster: Cluster):
    create = CreateTopic(
        topic="wide",
        default_topic="TBW102",
        read_queue_nums=1025,
        write_queue_nums=1025,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
    )
    async with reach(cluster.nodes[1]) as client:
        answer = await client.ask(create)
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert "1025; allowed: 0 to 1024" in answer.remark
        answer = await client.ask(GetRouteInfo(topic="wide"))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_nodes_join_brokers_by_themselves(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=[""] * 3)
    with running(made) as cluster:
        addresses = [node.name_server for node in cluster.nodes]
        wanted = {
            "broker-0": {"0": addresses[0], "1": addresses[1]},
            "broker-1": {"0": addresses[2]},
        }
        for node in cluster.nodes:
            await until_told(node, wanted)
        async with Producer(cluster.name_server, "writers", config=PATIENT) as producer:
            results = [await producer.send(Message("orders", b"x")) for _ in range(32)]
        assert {one.queue.broker_name for one in results} == {"broker-0", "broker-1"}


@looped
async def test_tenants_and_namespaces_are_pulsars(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    pulsar.admin("PUT", "tenants/sales", {"allowedClusters": ["standalone"]})
    pulsar.make_namespace("sales/north")
    made = Cluster(tmp_path, pulsar, zookeeper.address, namespaces=["sales/north"])
    with running(made) as cluster:
        async with reach(cluster.nodes[0]) as client:
            sent = await client.ask(sending("sales|north%orders"), b"coffee")
            assert sent.code == 0, sent.remark
            found = await client.ask(pulling("sales|north%orders"))
            assert [one.body for one in found.messages()] == [b"coffee"]
            refused = await client.ask(sending("sales|south%orders"), b"tea")
            assert refused.code != 0
            assert "sales" in refused.remark
            # No topic has two names: one would be guarded, and the other not.
            for named in ("orders", names.SCHEDULE_TOPIC, "%RETRY%bank"):
                alias = f"public|{made.namespace}%{named}"
                refused = await client.ask(sending(alias), b"tea")
                assert refused.code == ResponseCode.MESSAGE_ILLEGAL
                assert f"is called {named} here" in refused.remark
                refused = await client.ask(pulling(alias))
                assert refused.code == ResponseCode.TOPIC_NOT_EXIST
        topics = pulsar.admin("GET", "persistent/sales/north/partitioned")
        assert topics == [
            "persistent://sales/north/__ropeway@cluster-0",
            "persistent://sales/north/orders",
        ]


@looped
async def test_workers_are_brokers_of_their_own_on_pulsar_too(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(
        tmp_path,
        pulsar,
        zookeeper.address,
        brokers=["broker-0"],
        options=["--workers", "2"],
    )
    with running(made) as cluster:
        (node,) = cluster.nodes
        second = f"127.0.0.1:{node.broker_port + 1}"
        both = {"broker-0": {"0": node.name_server}, "broker-1": {"0": second}}
        await until_told(node, both)
        async with Producer(cluster.name_server, "writers", config=PATIENT) as producer:
            results = [await producer.send(Message("orders", b"x")) for _ in range(32)]
        assert {one.queue.broker_name for one in results} == {"broker-0", "broker-1"}
