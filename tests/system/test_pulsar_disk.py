"""Pulsar's disk is full, and has room again: nothing is lost, and nobody waits in vain.

A bookie whose disk is fuller than its threshold reads only; with no other bookie its
brokers cannot write. They let each producer in and close it at its first entry.
"""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from tests.clients.harness import Session
from tests.clients.programs import CLIENTS
from tests.gateway.pop.rig import Consumer
from tests.machines.places import filled, needs_mount, on_small_disk, seen_by
from tests.machines.test_disks import creating, is_clear, stored
from tests.remoting import Remoting, connect
from tests.requests import sending
from tests.system.cluster import Cluster
from tests.system.faults import QUEUES, Load
from tests.system.pulsar import Pulsar
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.system.zookeeper import ZooKeeper

pytestmark = [
    needs_mount,
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
COUNT = 300
MEBIBYTES = 512
"""RocksDB sets 70 MiB aside for each new journal, and a bookie has several: 128 were
full before the test had filled them."""
FULL = 0.92
SMALL = {
    "diskUsageThreshold": "0.85",
    "diskUsageWarnThreshold": "0.85",
    "diskUsageLwmThreshold": "0.85",
    "diskCheckInterval": "200",
    "entryLogSizeLimit": "1048576",
    "entryLogFilePreallocationEnabled": "false",
    "journalMaxSizeMB": "4",
    "journalPreAllocSizeMB": "1",
    "minUsableSizeForIndexFileCreation": "1048576",
    "minUsableSizeForEntryLogCreation": "1048576",
}
"""A bookie on a disk of some MiB, which looks often how full it is."""
NOT_STORED = "stored nothing; its bookies|the log has not stored a message"
CLOSED = "Disconnecting producer"
"""What a broker's log says each time that it closes one that it let in."""


@pytest.fixture
def small_pulsar(tmp_path: Path) -> Iterator[tuple[Pulsar, Path]]:
    """A Pulsar whose bookie has a small disk, and where that is mounted."""
    disk = tmp_path / "pulsar" / "data" / "bookkeeper"
    server = Pulsar(
        tmp_path / "pulsar", settings=SMALL, before=on_small_disk(disk, MEBIBYTES)
    )
    try:
        server.start()
        yield server, seen_by(server.pid, disk)
    finally:
        server.kill()


def test_a_full_disk_of_pulsar_refuses_and_loses_nothing_and_passes(
    small_pulsar: tuple[Pulsar, Path],
    zookeeper: ZooKeeper,
    agents: Agents,
    topic: str,
    tmp_path: Path,
) -> None:
    pulsar, disk = small_pulsar
    cluster = Cluster(
        tmp_path / "cluster", pulsar, zookeeper.address, brokers=["broker-0"]
    )
    log = tmp_path / "pulsar" / "pulsar.log"
    with running(cluster):
        (node,) = cluster.nodes
        pid = node.broker_pid
        load = Load(Session(agents.of(JAVA), cluster.name_server), topic, COUNT)
        load.flows()
        asyncio.run(open_probes(cluster.broker_port))
        before = log.read_text().count(CLOSED)
        with filled(disk, FULL):
            acknowledged = asyncio.run(all_are_answered(cluster.broker_port))
        closed = log.read_text().count(CLOSED) - before
        load.check(cluster)
        asyncio.run(all_is_there(cluster.broker_port, acknowledged))
        assert node.broker_pid == pid
    # Each queue's producer is opened ever more slowly: it was 1,300 times a second.
    assert closed < 50 * QUEUES


async def open_probes(port: int) -> None:
    """Make a topic that is open: where Pulsar cannot write, none can be opened."""
    async with reaching(port) as client:
        assert (await client.ask(creating("probes"))).code == 0
        async with asyncio.timeout(60):
            while (await client.ask(sending("probes"), b"0")).code:  # noqa: ASYNC110 - another process's
                await asyncio.sleep(0.05)


async def all_are_answered(port: int) -> list[bytes]:
    """Ask for everything while Pulsar cannot write; what was stored until then."""
    kept = [b"0"]
    async with reaching(port) as client:
        while (
            answer := await client.ask(sending("probes"), b"%d" % len(kept))
        ).code == 0:
            kept.append(b"%d" % len(kept))
        # Either this send was the first that Pulsar did not store, or another's was.
        assert re.search(NOT_STORED, answer.remark), answer
        for what in (
            sending("probes"),
            sending("probes-unknown"),
            creating("more"),
            UpdateConsumerOffset("readers", "probes", 0, 1, "broker-0"),
            Consumer(client, "poppers", "probes").header(),
        ):
            answer = await client.ask(what, b"refused")
            assert answer.code == 0 or is_clear(answer), (what, answer)
        assert await stored(client, "probes") == kept
    return kept


async def all_is_there(port: int, acknowledged: list[bytes]) -> None:
    """See that sends are stored again, behind all that was acknowledged."""
    async with reaching(port) as client:
        while (await client.ask(sending("probes"), b"after")).code:  # noqa: ASYNC110 - another process's disk
            await asyncio.sleep(0.05)
        bodies = await stored(client, "probes")
    assert bodies[: len(acknowledged)] == acknowledged
    # Whatever was of unknown outcome is there once, or not at all.
    assert len(set(bodies)) == len(bodies)
    assert bodies[-1] == b"after"


def reaching(port: int) -> Remoting:
    return connect(SimpleNamespace(host="127.0.0.1", port=port))
