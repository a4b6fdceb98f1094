"""Nodes on a Pulsar of two brokers and three bookies: parts of it move, stand and die.

It speaks TLS alone; nodes show a token of a role that has no more rights than it needs.
And queues are near the brokers that serve them.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from ropeway.client import Admin
from ropeway.storage.pulsar.authentication import Token
from ropeway.storage.pulsar.errors import NotAllowedError
from tests.clients.harness import Session
from tests.clients.programs import CLIENTS
from tests.contracts.routes import until
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT
from tests.routing.zookeeper.helpers import opened
from tests.system.cluster import Cluster
from tests.system.faults import QUEUES, RECOVERY_S, Load, Probe, produce, read_all
from tests.system.process import stopped
from tests.system.pulsar_client import Writer, client_of, on_uvloop
from tests.system.pulsar_cluster import HOSTS, PulsarCluster
from tests.system.secured_pulsar import token
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.system.pulsar_servers import Bookie, Broker
    from tests.system.zookeeper import ZooKeeper

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
COUNT = 600
FEW, MORE = 300, 40
MOVE_SECONDS = 120
PAUSE_S = 0.2
pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
]


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeper
) -> Iterator[PulsarCluster]:
    made = PulsarCluster(tmp_path_factory.mktemp("pair"), zookeeper.address)
    try:
        yield made
    finally:
        made.kill()


@pytest.fixture
def pair(servers: PulsarCluster) -> PulsarCluster:
    """A Pulsar of several processes, all of which run at first."""
    servers.start()
    return servers


@on_uvloop()
async def test_who_shows_no_token_or_has_no_rights_is_let_in_by_no_way(
    pair: PulsarCluster,
) -> None:
    stranger = Token(lambda: token("stranger"))
    for way, who, said in (
        (pair.to_brokers, None, "AuthenticationError"),
        (pair.to_brokers, stranger, "AuthorizationError"),
        (pair.through_proxy, None, "AuthenticationError"),
        (pair.through_proxy, stranger, "AuthorizationError"),
    ):
        async with client_of(
            way.service_url, tls=lambda: pair.trust, authentication=who
        ) as client:
            with pytest.raises(NotAllowedError, match=said):
                await Writer.open(client, "persistent://public/default/orders")


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
    cluster = Cluster(tmp_path, getattr(pair, way), zookeeper.address)
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
    )
    space = f"public/{cluster.namespace}"
    with running(cluster):
        # By itself Pulsar may have one of them serve all of a small namespace.
        for bundle, to in zip(
            pair.bundles(space), itertools.cycle(pair.brokers), strict=False
        ):
            pair.move(space, bundle, to)
        async with (
            Admin(cluster.name_server, config=PATIENT) as admin,
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


def test_bookies_stand_still_die_and_come_back_and_nothing_is_lost_or_stored_too_often(
    pair: PulsarCluster,
    zookeeper: ZooKeeper,
    agents: Agents,
    topic: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = Cluster(
        tmp_path,
        pair.to_brokers,
        zookeeper.address,
        brokers=["broker-0"],
    )
    space = f"public/{cluster.namespace}"
    with running(cluster):
        session = Session(agents.of(JAVA), cluster.name_server)
        load = Load(session, topic, FEW)
        flowing = load.flows()
        probe = Probe(cluster, f"{topic}-probe")
        try:
            probed = f"{space}/{topic}-probe-partition-0"
            frozen, dead = pair.bookies_of(probed)
            with stopped(frozen.pid):
                # It keeps its connections: only time tells.
                wait_until_it_is_left(pair, frozen, probed)
                flowing = load.flows(flowing)
                # One that goes on as its session ends is forgotten, and stays so.
                wait_until_it_is_known(zookeeper, frozen, known=False)
            wait_until_it_is_known(zookeeper, frozen)
        finally:
            still_s = probe.stop()
        probe = Probe(cluster, f"{topic}-probe")
        try:
            # From here on, who stood still is needed: there are no other two.
            dead.kill()
            wait_until_it_is_left(pair, dead, probed)
            load.flows(flowing)
            load.acknowledged()
        finally:
            dead_s = probe.stop()
        cluster.stop()
        # Nothing is in the memory of nodes and brokers now: all comes from bookies.
        pair.unload(space)
        cluster.start()
        repeats = load.check(cluster)
        stored = asyncio.run(read_all(cluster, topic))

        cluster.stop()
        wait_until_it_is_known(zookeeper, dead, known=False)
        pair.start()
        wait_until_it_is_known(zookeeper, dead)
        # What came while one stood still is on the other two: one has just come back.
        (third,) = {*pair.bookies} - {frozen, dead}
        third.kill()
        pair.unload(space)
        cluster.start()
        assert asyncio.run(read_all(cluster, topic)) == stored
        more = produce(session, topic, range(FEW, FEW + MORE))
        more.wait_for(1, "done", seconds=RECOVERY_S)
        assert len(more.events("sent")) == MORE
        stored_then = asyncio.run(read_all(cluster, topic))
        for one in more.events("sent"):
            assert stored_then[one["queue"]][one["offset"]] == one["body"]
        for before, after in zip(stored, stored_then, strict=True):
            assert after[: len(before)] == before
    record_property("without service as one stood still, s", round(still_s, 2))
    record_property("without service as one died, s", round(dead_s, 2))
    record_property("received again", len(repeats))


def wait_until_it_is_known(
    zookeeper: ZooKeeper, bookie: Bookie, *, known: bool = True
) -> None:
    """Return when brokers may choose a bookie; or may not, its session being over."""
    client = KazooClient(zookeeper.address)
    client.start(RECOVERY_S)
    try:
        give_up = time.monotonic() + RECOVERY_S
        while (client.exists(f"/ledgers/available/{bookie.name}") is not None) != known:
            assert time.monotonic() < give_up, f"{bookie.name}: known is not {known}"
            time.sleep(PAUSE_S)
    finally:
        client.stop()
        client.close()


def wait_until_it_is_left(pair: PulsarCluster, bookie: Bookie, topic: str) -> None:
    """Return when what is sent to a topic is written to other bookies."""
    give_up = time.monotonic() + RECOVERY_S
    while bookie in pair.bookies_of(topic):
        assert time.monotonic() < give_up, f"{topic} is still written to {bookie.name}"
        time.sleep(PAUSE_S)
