"""Topics of two brokers on Pulsar are deleted: under load, in absence, halfway."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.client import Admin, RemotingError, admin_drains
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from tests.contracts.routes import until
from tests.remoting import looped
from tests.requests import committing, pulling, sending
from tests.ropeway.client.scenario import PATIENT, eventually
from tests.routing.zookeeper.helpers import opened
from tests.system.cluster import Cluster
from tests.system.killed_deletion import STEPS
from tests.system.test_cluster import reach, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.remoting import Remoting
    from tests.system.pulsar import Pulsar
    from tests.system.ropeway import Ropeway
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

PATIENCE_S = 120.0
QUEUES = 2
ROUNDS = 8


@pytest.fixture
def pair(tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper) -> Iterator[Cluster]:
    """Two brokers with a node each."""
    made = Cluster(
        tmp_path,
        pulsar,
        zookeeper.address,
        brokers=("broker-0", "broker-1"),
    )
    with running(made):
        yield made


async def stored(node: Ropeway, topic: str) -> list[bytes]:
    """What all queues that a broker has of a topic hold, from the first on."""
    found: list[bytes] = []
    async with reach(node) as client:
        route = await client.ask(GetRouteInfo(topic=topic))
        if route.code == ResponseCode.TOPIC_NOT_EXIST:
            return found
        data = msgspec.json.decode(route.body, type=bodies.TopicRoute)
        ports = {
            one.broker_name: int(one.broker_addrs["0"].rpartition(":")[2])
            for one in data.broker_datas
        }
        for queues in data.queue_datas:
            if ports[queues.broker_name] != node.broker_port:
                continue
            for number in range(queues.read_queue_nums):
                found += await _queue(client, topic, number)
    return found


async def _queue(client: Remoting, topic: str, number: int) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.ask(
                pulling(topic, offset, queue_id=number, group="auditors")
            )
            messages = answer.messages() if answer.code == 0 else []
            if messages:
                found += [one.body for one in messages]
                offset = messages[-1].queue_offset + 1
            elif answer.code == ResponseCode.PULL_NOT_FOUND:
                return found
            elif answer.code == ResponseCode.PULL_OFFSET_MOVED:
                moved = int(answer.fields["nextBeginOffset"])
                if moved == offset:
                    return found
                offset = moved
            else:
                await asyncio.sleep(0.1)


async def send(client: Remoting, topic: str, body: bytes, queue_id: int = 0) -> None:
    """Send until it is acknowledged."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.ask(sending(topic, queue_id=queue_id), body)
            if answer.code == 0:
                return
            await asyncio.sleep(0.05)


class Senders:
    """Senders to each queue of each broker, who make the topic where it is missing."""

    def __init__(self, topic: str) -> None:
        self.begun: dict[bytes, int] = {}
        """Of what was acknowledged, when its send began: a number that only grows."""
        self.done: dict[bytes, int] = {}
        self.places: dict[bytes, int] = {}
        self._topic = topic
        self._clock = itertools.count()
        self._ends = False

    def now(self) -> int:
        return next(self._clock)

    async def run(self, node: Ropeway, queue_id: int) -> None:
        async with reach(node) as client:
            for number in itertools.count():
                if self._ends:
                    return
                body = b"%d-%d-%d" % (node.broker_port, queue_id, number)
                begun = self.now()
                answer = await client.ask(
                    sending(self._topic, queue_id=queue_id, default_topic_queue_nums=2),
                    body,
                )
                if answer.code == 0:
                    self.begun[body] = begun
                    self.done[body] = self.now()
                    self.places[body] = node.broker_port
                await asyncio.sleep(0.01)

    async def acknowledged_since(self, when: int, nodes: list[Ropeway]) -> None:
        """Return when each broker has acknowledged a send that began later."""
        wanted = {(node.broker_port, number) for node in nodes for number in range(2)}
        async with asyncio.timeout(PATIENCE_S):
            while wanted:
                await asyncio.sleep(0.05)
                for body, begun in list(self.begun.items()):
                    if begun > when:
                        port, queue_id, _ = body.split(b"-")
                        wanted.discard((int(port), int(queue_id)))

    @asynccontextmanager
    async def sending(self, nodes: list[Ropeway]) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            for node, queue_id in itertools.product(nodes, range(QUEUES)):
                tasks.create_task(self.run(node, queue_id))
            yield
            self._ends = True


@looped
async def test_a_topic_that_is_deleted_under_load_is_whole_each_time_it_is_made_again(
    pair: Cluster,
):
    senders = Senders("orders")
    async with (
        Admin(pair.name_server, config=PATIENT) as admin,
        senders.sending(pair.nodes),
    ):
        await senders.acknowledged_since(-1, pair.nodes)
        for _ in range(ROUNDS):
            last_deletion = senders.now()
            await admin.delete_topic("orders")
            await admin.create_topic("orders", QUEUES)
            last_creation = senders.now()
            await senders.acknowledged_since(last_creation, pair.nodes)
    for node in pair.nodes:
        found = await stored(node, "orders")
        assert len(set(found)) == len(found)
        ours = {one for one, port in senders.places.items() if port == node.broker_port}
        new = {one for one in ours if senders.begun[one] > last_creation}
        old = {one for one in ours if senders.done[one] < last_deletion}
        assert new
        assert old
        assert new <= set(found)
        assert not old & set(found)


@pytest.mark.parametrize("is_gone", [False, True])
@looped
async def test_a_topic_that_was_deleted_while_a_broker_was_away_does_not_come_back(
    pair: Cluster, is_gone: bool
):
    """Nor where an administrator said that the broker never would."""
    first, second = pair.nodes
    async with Admin(pair.name_server, config=PATIENT) as admin:
        await admin.create_topic("orders", QUEUES)
        for node in pair.nodes:
            async with reach(node) as client:
                for number in range(20):
                    await send(client, "orders", b"old %d" % number)
                assert (await client.ask(committing("orders", 0, 20))).code == 0
    await asyncio.to_thread(second.stop)
    async with Admin(first.name_server, config=PATIENT) as admin:
        await admin.delete_topic("orders")
        if is_gone:
            # It is forgotten a moment after its end.
            await eventually(
                admin.clusters,
                lambda found: "broker-1" not in found.get("DefaultCluster", ()),
            )
            removed = await admin_drains.remove(admin, "broker-1", gone=True)
            assert (removed.deletions, removed.left) == (1, {})
    async with reach(first) as client:
        await send(client, "orders", b"new")
    assert await stored(first, "orders") == [b"new"]
    await asyncio.to_thread(second.start)
    assert await stored(second, "orders") == []
    async with reach(second) as client:
        await send(client, "orders", b"new")
        asked = {"consumerGroup": "readers", "topic": "orders", "queueId": "0"}
        answer = await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=asked)
        assert answer.fields.get("offset") in (None, "0")
    assert await stored(second, "orders") == [b"new"]
    assert await stored(first, "orders") == [b"new"]


def of_orders(pulsar: Pulsar, cluster: Cluster) -> set[str]:
    """The Pulsar topics that a cluster has of the topic."""
    names = pulsar.admin("GET", f"persistent/public/{cluster.namespace}")
    local = {one.rpartition("/")[2].rpartition("-partition-")[0] for one in names}
    return {one for one in local if one.partition("@")[0] == "orders"}


@pytest.mark.parametrize("step", STEPS)
@looped
async def test_a_broker_that_is_killed_while_it_deletes_goes_on_with_it_when_it_starts(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper, step: str
):
    brokers = ("broker-0", "broker-1")
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=brokers)
    doomed, other = made.nodes
    killed = "tests.system.killed_deletion"
    doomed._python = [sys.executable, "-m", killed, step]
    with running(made):
        async with Admin(made.name_server, config=PATIENT) as admin:
            await admin.create_topic("orders", QUEUES)
            for node in made.nodes:
                async with reach(node) as client:
                    await send(client, "orders", b"old")
                    assert (await client.ask(committing("orders", 0, 1))).code == 0
            # The last broker deletes what is stored, so the other one is asked first.
            async with reach(other) as client:
                answer = await client.ask(
                    RequestCode.DELETE_TOPIC_IN_BROKER, fields={"topic": "orders"}
                )
                assert answer.code == 0
            with pytest.raises((RemotingError, TimeoutError)):
                await admin.delete_topic("orders")
        ended = await asyncio.to_thread(doomed._process._process.wait, PATIENCE_S)
        assert ended == -signal.SIGKILL
        doomed.kill()
        doomed._python = [sys.executable]
        await asyncio.to_thread(doomed.start)
        for node in made.nodes:
            assert await stored(node, "orders") == []
            async with reach(node) as client:
                asked = {"consumerGroup": "readers", "topic": "orders", "queueId": "0"}
                await send(client, "orders", b"new")
                answer = await client.ask(
                    RequestCode.QUERY_CONSUMER_OFFSET, fields=asked
                )
                assert answer.fields.get("offset") in (None, "0")
            assert await stored(node, "orders") == [b"new"]
        async with opened(made.routes) as (routes,):
            await until(lambda: not routes.topics["orders"].deletions)
        assert len(of_orders(pulsar, made)) == 1


@looped
async def test_a_topic_that_is_shared_with_native_clients_keeps_its_name(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=["broker-0"])
    (node,) = made.nodes
    with running(made):
        async with (
            Admin(made.name_server, config=PATIENT) as admin,
            reach(node) as client,
        ):
            for body in (b"first", b"second"):
                shared = {"entry.format": "PULSAR"}
                await admin.create_topic("orders", QUEUES, attributes=shared)
                await send(client, "orders", body)
                assert await stored(node, "orders") == [body]
                assert of_orders(pulsar, made) == {"orders"}
                await admin.delete_topic("orders")
            await send(client, "orders", b"packed")
            assert await stored(node, "orders") == [b"packed"]
        async with opened(made.routes) as (routes,):
            await until(lambda: not routes.topics["orders"].deletions)
        assert of_orders(pulsar, made) == {"orders@2"}
