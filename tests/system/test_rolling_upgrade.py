"""A cluster whose nodes are replaced, one by one, by ones of another version."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import uvloop

from benchmarks.faults import kinds
from benchmarks.faults.kinds import FIRST, SECOND, Hit, Kind
from benchmarks.faults.place import BROKERS
from benchmarks.faults.soak import Soak
from ropeway.client import Admin, admin_nodes
from tests.clients.harness import Session, bodies
from tests.clients.programs import JAVA_5
from tests.formats.earlier import earlier_version
from tests.formats.test_formats import files_in
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.rolling import Rounds
from tests.system.ropeway import ROOT, Ropeway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.faults.kinds import Scene
    from tests.clients.fixtures import Agents
    from tests.clients.harness import Call, Event
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
CHECK_MS = 2000
NEWER = [sys.executable, "-m", "tests.system.newer_format"]
REFUSED = r"has format \d; this program reads up to \d: use a newer one"
REFUSED_EARLIER = rf"{REFUSED}|has version 3; this program knows up to 2"
"""The earlier version had other words for routes."""
PATIENCE_S = 120.0
PAUSE_S = 0.2


class Node:
    """A node, as the soak knows it."""

    def __init__(self, name: str, server: Ropeway) -> None:
        self.name = name
        self.broker = BROKERS[name]
        self.address = server.name_server
        self._server = server

    def replace(self, program: Path) -> None:
        """Stop it in order, and start that program with its data."""
        self._server.stop()
        self._server.program = program
        self._server.start()


class Place:
    """A cluster, as the soak knows it."""

    def __init__(self, cluster: Cluster) -> None:
        self.name_server = cluster.name_server
        self.nodes = [*map(Node, BROKERS, cluster.nodes)]


def replaced(broker: str, rank: int, program: Path) -> Kind:
    """A broker's node of a rank, replaced; rank 0 leads."""

    async def act(scene: Scene) -> Hit:
        node = (await scene.in_order(broker))[rank]
        await asyncio.to_thread(node.replace, program)
        return Hit(broker)

    return Kind(f"{broker}'s node {rank} replaced", 1, act)


MOVED = Kind("queue moved", 1, kinds.move_queue)
MADE_ANEW = Kind("topic deleted and made again", 1, kinds.make_anew)
LED = Kind("master moved", 1, kinds.move_master)


@asynccontextmanager
async def under_load(place: Place) -> AsyncIterator[Soak]:
    """Senders, readers and a group that account for every message."""
    soak = Soak(place, seed=20, probes=1)
    await soak.prepare()
    async with asyncio.TaskGroup() as group:
        group.create_task(soak.load())
        try:
            yield soak
        finally:
            soak.stop_sends.set()
            soak.stop.set()


async def is_earlier(place: Place, broker: str) -> bool:
    """Whether an earlier version leads a broker: it tells of no derived stores."""
    async with (
        asyncio.timeout(PATIENCE_S),
        Admin(place.name_server, config=PATIENT) as admin,
    ):
        while True:
            for node in await admin_nodes.nodes(admin, broker):
                if node.status and node.leads:
                    return not node.status.derived_stores
            await asyncio.sleep(PAUSE_S)


@pytest.mark.jvm
@pytest.mark.server
def test_nothing_is_lost_while_nodes_of_two_versions_serve(
    tmp_path: Path, agents: Agents, pulsar: Pulsar, zookeeper: ZooKeeper
) -> None:
    earlier = earlier_version()
    cluster = Cluster(
        tmp_path,
        pulsar,
        zookeeper.address,
        brokers=[*BROKERS.values()],
        check_ms=CHECK_MS,
    )
    for node in cluster.nodes:
        node.program = earlier
    place = Place(cluster)
    steps = {
        "the standby": [replaced(FIRST, 1, ROOT)],
        "its master": [MADE_ANEW, replaced(FIRST, 0, ROOT)],
        "the other broker": [MOVED, MADE_ANEW, replaced(SECOND, 0, ROOT)],
        "and back": [replaced(SECOND, 0, earlier)],
        "the standby back": [MOVED, MADE_ANEW, replaced(FIRST, 1, earlier), LED],
    }
    # Who leads each broker then; the standby is left as the one that is newer.
    wanted = [(True, True), (False, True), (False, False), (False, True), (True, True)]

    async def main() -> None:
        turns = itertools.cycle((0, -1))
        async with under_load(place) as soak:
            rounds = Rounds(
                Session(agents.of(JAVA_5), cluster.name_server),
                dict.fromkeys(BROKERS.values()),
                lambda broker: soak.router.brokers[broker][next(turns)],
            )
            try:
                await rounds.prepare(cluster.name_server)
                seen = []
                for name, kinds_of in steps.items():
                    began_s = time.monotonic()
                    await rounds.begin(name)
                    for kind in kinds_of:
                        print(await soak.hit(kind), flush=True)
                    await rounds.end()
                    print(f"{name}: {time.monotonic() - began_s:.1f} s", flush=True)
                    leaders = [await is_earlier(place, one) for one in (FIRST, SECOND)]
                    seen.append(tuple(leaders))
                soak.stop_sends.set()
                await soak.catch_up()
                soak.stop.set()
                await rounds.check()
            finally:
                rounds.close()
        assert seen == wanted
        assert soak.wrong == []
        print({one.topic: one.counts for one in soak.ledgers}, soak.again)

    try:
        cluster.start()
        uvloop.run(main())
    finally:
        cluster.kill()


ORDERED = "ordered"
COUNT = 40


@pytest.mark.jvm
def test_a_data_folder_goes_from_version_to_version_and_back(
    tmp_path: Path, agents: Agents
) -> None:
    """What groups have done, hold and wait for goes on with the next version."""
    earlier = earlier_version()
    node = Ropeway(tmp_path, check_ms=CHECK_MS)
    session = Session(agents.of(JAVA_5), node.name_server)
    sent: list[Event] = []

    def send() -> None:
        sent.extend(
            session.produce(
                ORDERED,
                [
                    {"body": f"{len(sent) + number}", "shard": number % 3}
                    for number in range(COUNT)
                ],
                mode="ordered",
                retry_for_ms=60_000,
            )
        )

    async def main() -> Call:
        rounds = Rounds(session, ["broker-0"], lambda _: node.name_server)
        try:
            await rounds.prepare(node.name_server)
            await asyncio.to_thread(send)
            consumer = await asyncio.to_thread(
                partial(
                    session.start,
                    "consume",
                    topic=ORDERED,
                    group="readers",
                    orderly=True,
                    **{"from": "FIRST_OFFSET"},
                )
            )
            for number, program in enumerate((ROOT, earlier, ROOT)):
                await rounds.begin(f"{number}")
                await asyncio.to_thread(node.stop)
                node.program = program
                await asyncio.to_thread(node.start)
                await rounds.end()
                await asyncio.to_thread(send)
            await rounds.check()
        finally:
            rounds.close()
        return consumer

    try:
        node.program = earlier
        node.start()
        consumer = uvloop.run(main())
        consumer.wait_for_bodies(bodies(sent))
        received = consumer.stop()
    finally:
        node.kill()
    places = [(one["queue"], one["offset"]) for one in received]
    for queue in range(4):
        mine = list(dict.fromkeys(place for place in places if place[0] == queue))
        assert mine == sorted(mine), "each queue's in its order"
    assert {(one["queue"], one["offset"]) for one in sent} == set(places)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ropeway.storage.file.catalog", "VERSION,_WITHOUT_BEGINNINGS"),
        ("ropeway.storage.file.offsets", "VERSION"),
        ("ropeway.routing.database", "SCHEMA_VERSION"),
    ],
)
def test_an_earlier_version_refuses_what_a_newer_format_is_in_and_leaves_it(
    tmp_path: Path, module: str, name: str
) -> None:
    newer = Ropeway(tmp_path, python=[*NEWER, module, name])
    newer.start()
    newer.stop()
    node, before = Ropeway(tmp_path), files_in(tmp_path / "data")
    for program, words in ((earlier_version(), REFUSED_EARLIER), (ROOT, REFUSED)):
        node.program = program
        (tmp_path / "ropeway.log").unlink()
        with pytest.raises(RuntimeError, match=words):
            node.start()
        node.kill()
        assert files_in(tmp_path / "data") == before
    newer.start()
    newer.stop()
