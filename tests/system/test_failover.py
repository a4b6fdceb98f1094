"""Nothing is lost, out of order or stored twice when a part of a cluster fails."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, BulkReader, Message, Producer, RemotingError
from tests.clients.harness import Session
from tests.clients.programs import CLIENTS
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER
from tests.system.cluster import SHORT_SESSION_MS, Cluster
from tests.system.faults import Load, Probe
from tests.system.process import stopped
from tests.system.pulsar import Pulsar
from tests.system.zookeeper import Ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
COUNT = 600
"""Sent in 12 s at least, without the time in which nobody leads: longer than any node
stands still here."""
OUTAGE_S = 30
"""Ten times as long as a node may lead without ZooKeeper."""
PATIENCE_S = 60
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
def test_nothing_is_lost_or_out_of_order_or_stored_twice_unless_sent_twice(
    place: Place,
    agents: Agents,
    topic: str,
    fault: Fault,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = Cluster(
        place.directory / fault.__name__,
        place.pulsar,
        place.zookeeper.address,
        session_ms=SHORT_SESSION_MS,
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


def test_the_next_master_ends_what_was_open(
    place: Place, agents: Agents, topic: str
) -> None:
    cluster = Cluster(
        place.directory / "transactions",
        place.pulsar,
        place.zookeeper.address,
        session_ms=SHORT_SESSION_MS,
        check_ms=1000,
    )
    wanted = ["committed", "asked", "held"]
    try:
        cluster.start()
        session = Session(agents.of(JAVA), cluster.name_server)
        session.produce(topic, [{"body": "first"}], retry_for_ms=PATIENCE_S * 1000)
        consumer = session.start(
            "consume", topic=topic, group=topic, poll_routes_ms=1000
        )
        consumer.wait_for_bodies(["first"])
        producer = session.call(
            "transact",
            topic=topic,
            group=f"{topic}-producers",
            poll_routes_ms=1000,
            messages=[
                {"body": body, "properties": properties}
                for body, properties in (
                    ("committed", {"local": "commit"}),
                    ("rolled back", {"local": "rollback"}),
                    ("asked", {"check": "commit"}),
                    ("held", {"local": "commit", "check": "commit", "hold_ms": "5000"}),
                )
            ],
        )
        producer.wait_for(4, "executing")
        cluster.nodes[0].kill()
        consumer.wait_for_bodies(wanted)
        producer.finish().stop()
        received = [one["body"] for one in consumer.stop()]
    finally:
        cluster.kill()
    assert set(received) == {"first", *wanted}


def test_the_next_master_serves_a_table_that_was_being_compacted(
    place: Place, topic: str
) -> None:
    cluster = Cluster(
        place.directory / "compaction",
        place.pulsar,
        place.zookeeper.address,
        session_ms=SHORT_SESSION_MS,
    )
    last = {f"key-{n}": (90 + n, b"%d" % (90 + n)) for n in range(10)}

    async def main() -> None:
        async with (
            Admin(cluster.name_server, config=PATIENT) as admin,
            Producer(cluster.name_server, "p", config=PATIENT_PRODUCER) as producer,
        ):
            await admin.create_topic(
                topic, 1, attributes={"cleanup.policy": "COMPACTION"}
            )
            for n in range(100):
                message = Message(topic, b"%d" % n, keys=(f"key-{n % 10}",))
                # A Pulsar that lost its session may be slow for good (its issue 17759).
                await producer.send(message, timeout_s=PATIENCE_S)
            asked = asyncio.create_task(admin.compaction(topic, force=True))
            # Pulsar has begun, or will have: the node dies while it waits for that.
            await asyncio.sleep(0.1)
            await asyncio.to_thread(cluster.nodes[0].kill)
            await asyncio.gather(asked, return_exceptions=True)

        async def look() -> None:
            async with Admin(cluster.nodes[1].name_server, config=PATIENT) as admin:
                for key, (_, body) in last.items():
                    found = await admin.latest(topic, key)
                    assert found is not None
                    assert found.body == body
                (broker,) = await admin.compaction(topic, force=True)
                assert [(one.clean_end, one.messages) for one in broker.queues] == [
                    (100, 10)
                ]

        async def read() -> None:
            async with BulkReader(
                cluster.nodes[1].name_server, "r", config=PATIENT
            ) as reader:
                (queue,) = await reader.queues(topic)
                found = [
                    one
                    async for columns in reader.read(queue, 0, 100, must_be_whole=False)
                    for one in zip(columns.offsets, columns.bodies, strict=True)
                ]
                assert found == [*last.values()]

        for step in (look, read):
            async with asyncio.timeout(PATIENCE_S * 5):
                while True:
                    try:
                        await step()
                    except RemotingError:
                        await asyncio.sleep(0.5)  # nobody leads yet
                    else:
                        break

    try:
        cluster.start()
        asyncio.run(main())
    finally:
        cluster.kill()
