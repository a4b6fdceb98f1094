"""Nodes on a Pulsar of two brokers: topics move, a broker dies, and queues are near."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin
from tests.clients.harness import Session
from tests.clients.programs import CLIENTS
from tests.contracts.routes import until
from tests.remoting import looped
from tests.routing.zookeeper.helpers import opened
from tests.system.cluster import Cluster
from tests.system.faults import QUEUES, Load, Probe
from tests.system.pulsar_cluster import HOSTS, Broker, PulsarCluster
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.system.zookeeper import ZooKeeper

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
COUNT = 600
MOVE_SECONDS = 120
SESSION_MS = 10_000
"""No node is taken for dead because the machine is busy with Pulsar's."""
pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeper
) -> Iterator[PulsarCluster]:
    """A Pulsar of two brokers, and its proxy; who kills one starts it again."""
    made = PulsarCluster(tmp_path_factory.mktemp("pair"), zookeeper.address)
    try:
        made.start()
        yield made
    finally:
        made.kill()


def move(
    pair: PulsarCluster, space: str, bundle: str, to: Broker, served: list[str]
) -> None:
    """Have a broker serve a bundle's topics.

    Pulsar forgets where it is to go when the first look-up behind comes too early.
    """
    give_up = time.monotonic() + MOVE_SECONDS
    pair.move(space, bundle, to)
    while {pair.owner(one) for one in served} != {to}:
        assert time.monotonic() < give_up, f"{bundle} does not move to {to.name}"
        pair.move(space, bundle, to)


@pytest.mark.parametrize("way", ["to_brokers", "through_proxy"])
def test_topics_move_and_a_broker_dies_and_nothing_is_lost_or_stored_too_often(
    pair: PulsarCluster,
    zookeeper: ZooKeeper,
    agents: Agents,
    topic: str,
    tmp_path: Path,
    way: str,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = Cluster(
        tmp_path, getattr(pair, way), zookeeper.address, session_ms=SESSION_MS
    )
    space = f"public/{cluster.namespace}"
    partitions = [f"{space}/{topic}-partition-{number}" for number in range(QUEUES)]
    with running(cluster):
        load = Load(Session(agents.of(JAVA), cluster.name_server), topic, COUNT)
        flowing = load.flows()
        probe = Probe(cluster, f"{topic}-probe")
        try:
            for bundle in {pair.bundle(one) for one in partitions}:
                served = [one for one in partitions if pair.bundle(one) == bundle]
                other = next(
                    one for one in pair.brokers if one is not pair.owner(served[0])
                )
                move(pair, space, bundle, other, served)
            pair.split(space, pair.bundle(partitions[0]))
            flowing = load.flows(flowing)
            pair.owner(partitions[0]).kill()
            load.flows(flowing)
            # What was killed comes back, and must not disturb.
            pair.start()
            repeats = load.check(cluster)
        finally:
            gap_s = probe.stop()
    record_property("without service, s", round(gap_s, 2))
    record_property("received again", len(repeats))


@looped
async def test_queues_are_on_the_node_beside_the_broker_that_serves_them(
    pair: PulsarCluster, zookeeper: ZooKeeper, tmp_path: Path
):
    brokers = ["broker-0", "broker-1"]
    cluster = Cluster(
        tmp_path,
        pair.to_brokers,
        zookeeper.address,
        brokers=brokers,
        machines=HOSTS,
        session_ms=SESSION_MS,
    )
    space = f"public/{cluster.namespace}"
    with running(cluster):
        # By itself Pulsar may have one of them serve all of a small namespace.
        for bundle, to in zip(
            pair.bundles(space), itertools.cycle(pair.brokers), strict=False
        ):
            pair.move(space, bundle, to)
        async with (
            Admin(cluster.name_server) as admin,
            opened(cluster.routes) as (routes,),
        ):
            await admin.create_topic("orders", 16)
            await until(lambda: "orders" in routes.topics)
            route = routes.topics["orders"].route
        serving = {
            number: pair.owner(f"{space}/orders-partition-{number}").host
            for number in range(32)
        }
    assert set(serving.values()) == set(HOSTS)
    assert sorted(itertools.chain(*route.values())) == list(range(32))
    for broker, host in zip(brokers, HOSTS, strict=True):
        near = [number for number in route[broker] if serving[number] == host]
        assert len(near) == min(16, list(serving.values()).count(host))
