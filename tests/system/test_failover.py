"""Nothing is lost, repeated or out of order when a part of a cluster fails."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.clients.harness import Session
from tests.clients.programs import CLIENTS
from tests.system.cluster import Cluster, stopped
from tests.system.faults import Load, Probe
from tests.system.pulsar import Pulsar
from tests.system.zookeeper import Ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
COUNT = 1000
OUTAGE_S = 60
pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]


class Place:
    """A Pulsar and three ZooKeeper servers that a test may do anything to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pulsar = Pulsar(directory / "pulsar")
        self.zookeeper = Ensemble(directory / "zookeeper")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("place"))
    try:
        made.zookeeper.start()
        made.pulsar.start()
        yield made
    finally:
        made.pulsar.kill()
        made.zookeeper.kill()


Fault = "Callable[[Place, Cluster], None]"


def kill_the_master(_: Place, cluster: Cluster) -> None:
    cluster.nodes[0].kill()


def stop_the_master(_: Place, cluster: Cluster) -> None:
    cluster.nodes[0].stop()


def freeze_the_master(_: Place, cluster: Cluster) -> None:
    with stopped(cluster.nodes[0].broker_pid):
        time.sleep(cluster.session_s * 3)


def kill_pulsar(place: Place, _: Cluster) -> None:
    place.pulsar.kill()
    place.pulsar.start()


def kill_a_zookeeper(place: Place, _: Cluster) -> None:
    place.zookeeper.leader.kill()


def kill_all_zookeepers(place: Place, _: Cluster) -> None:
    place.zookeeper.kill()
    time.sleep(OUTAGE_S)


def kill_both_nodes(_: Place, cluster: Cluster) -> None:
    cluster.kill()
    cluster.start()


FAULTS = [
    kill_the_master,
    stop_the_master,
    freeze_the_master,
    kill_pulsar,
    kill_a_zookeeper,
    kill_all_zookeepers,
    kill_both_nodes,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_repeated_or_out_of_order(
    place: Place,
    agents: Agents,
    topic: str,
    fault: Fault,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = Cluster(
        place.directory / fault.__name__, place.pulsar, place.zookeeper.address
    )
    try:
        cluster.start()
        load = Load(Session(agents.of(JAVA), cluster.name_server), topic, COUNT)
        before = load.flows()
        probe = Probe(cluster, f"{topic}-probe")
        fault(place, cluster)
        load.flows(before)
        # What was killed comes back, and must not disturb.
        place.zookeeper.start()
        cluster.start()
        repeats = load.check(cluster)
        gap_s = probe.stop()
    finally:
        cluster.kill()
    record_property("without service, s", round(gap_s, 2))
    record_property("received again", len(repeats))
    print(f"{fault.__name__}: {gap_s:.2f} s without service, {len(repeats)} repeats")
