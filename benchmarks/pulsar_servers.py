"""Ropeway as it is deployed, beside a Pulsar and with routes in a ZooKeeper."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from benchmarks import counters, requests, servers
from benchmarks.servers import Server
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import encode_frame
from tests import builds
from tests.system.cluster import Cluster
from tests.system.pulsar import Pulsar
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator

Journal = Literal["sync", "async"]
"""Whether a bookie syncs to disk before it acknowledges: Pulsar's bookkeeper.conf does,
its standalone.conf does not."""

# Heap and direct memory as Pulsar's own scripts give them, with half of the latter.
PULSAR_JAVA = ["-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=2g", "-XX:+UseG1GC"]
SESSION_MS = 30_000
"""Long, for a loaded machine: no node is to take over here."""
READY_S = 60.0
POLL_S = 0.005


class Deployment(NamedTuple):
    """All of it, running."""

    pulsar: Pulsar
    pulsar_folder: Path
    gateway: Server

    def pulsar_cpu_s(self) -> float:
        """CPU time of broker and bookie so far."""
        return counters.cpu_s(self.pulsar.pid)

    def make_cold(self) -> None:
        """Let the gateway know nothing of what is stored, and the kernel no page."""
        self.gateway.started.stop()
        servers.drop_pages(self.pulsar_folder)
        self.gateway.started.start()

    def wait_for_queue(self, topic: str) -> None:
        """Return when the first queue of a topic is open."""
        ask_end = encode_frame(
            RequestCode.GET_MAX_OFFSET, 1, fields={"topic": topic, "queueId": "0"}
        )
        give_up = time.monotonic() + READY_S
        with requests.connect(self.gateway.port) as connection:
            while code := requests.ask(connection, ask_end):
                if time.monotonic() > give_up:
                    raise RuntimeError(f"{topic} does not open: code {code}")
                time.sleep(POLL_S)


@contextmanager
def deployed(journal: Journal) -> Iterator[Deployment]:
    """Everything with empty data, killed at the end."""
    builds.cache().mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(dir=builds.cache(), prefix="bench-")
            )
        )
        pulsar = Pulsar(
            folder / "pulsar", journal_sync=journal == "sync", java=PULSAR_JAVA
        )
        zookeeper = ZooKeeper(folder / "zookeeper")
        cluster = Cluster(
            folder / "ropeway",
            pulsar,
            zookeeper.address,
            brokers=["broker-0"],
            session_ms=SESSION_MS,
        )
        for one in (pulsar, zookeeper):
            stack.callback(one.kill)
            one.start()
        stack.callback(cluster.kill)
        began = time.monotonic()
        cluster.start()
        gateway = Server(servers.ropeway, cluster.nodes[0], time.monotonic() - began)
        yield Deployment(pulsar, folder / "pulsar" / "data", gateway)
