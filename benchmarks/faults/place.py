"""What is hit: three nodes of two brokers, a Pulsar behind proxies, and a ZooKeeper.

Pulsar has a bookie in its process and two beside it, and a ZooKeeper of its own. What
is sent is on two of the three bookies.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.faults import leaping
from benchmarks.faults.proxy import Proxy
from tests.system.process import free_ports, stopped
from tests.system.pulsar import DEFAULTS, Pulsar
from tests.system.pulsar_servers import Bookie, written_to
from tests.system.ropeway import Ropeway
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

BROKERS = {"node-0": "broker-0", "node-1": "broker-0", "node-2": "broker-1"}
SESSION_S = 3.0
BOOKIES = 2
COPIES = 2
BOOKIE_S = 10
"""A bookie that stands still is given up after so long; by default after 30 s."""
NAMESPACE = "rocketmq/DefaultCluster"
SETTINGS = """\
[pulsar]
service_url = "pulsar://127.0.0.1:{port}"
admin_url = "{admin_url}"
listener_name = "{name}"
[zookeeper]
session_ms = {session_ms:.0f}
"""


class Node:
    """A node, its proxy, and its clock."""

    def __init__(
        self, folder: Path, name: str, pulsar: Pulsar, routes: str, proxy: Proxy
    ) -> None:
        folder.mkdir(parents=True)
        self.name = name
        self.broker = BROKERS[name]
        self.proxy = proxy
        self.log = folder / "ropeway.log"
        self._clock = folder / "clock"
        self._clock.write_bytes(bytes(leaping.AHEAD.size))
        settings = folder / "ropeway.toml"
        settings.write_text(
            SETTINGS.format(
                port=proxy.port,
                admin_url=pulsar.admin_url,
                name=name,
                session_ms=SESSION_S * 1000,
            )
        )
        self._server = Ropeway(
            folder,
            options=[
                *["--config", str(settings), "--routes", routes],
                *["--node", name, "--broker", self.broker],
            ],
            python=[
                sys.executable,
                "-m",
                "benchmarks.faults.leaping",
                str(self._clock),
            ],
        )
        self.address = self._server.name_server

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def kill(self) -> None:
        self._server.kill()

    def set_clock(self, seconds: float) -> None:
        """Set its clock so far ahead of the true time."""
        leaping.set_ahead(self._clock, seconds)

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Not a step meanwhile."""
        with stopped(self._server.broker_pid):
            yield


class Place:
    """All of it, on free ports of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        service, *ports = free_ports(1 + len(BROKERS))
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        self.metadata = ZooKeeper(folder / "metadata")
        metadata_url = f"zk:{self.metadata.address}"
        listeners = {"internal": service, **dict(zip(BROKERS, ports, strict=True))}
        self.pulsar = Pulsar(
            folder / "pulsar",
            settings={
                "brokerServicePort": str(service),
                "internalListenerName": "internal",
                "advertisedListeners": ",".join(
                    f"{name}:pulsar://127.0.0.1:{port}"
                    for name, port in listeners.items()
                ),
                "bookkeeperClientTimeoutInSeconds": str(BOOKIE_S),
                # As by default: here others are left when one is left out.
                "bookkeeperClientHealthCheckEnabled": "true",
            },
            metadata_url=metadata_url,
        )
        self.bookies = [
            Bookie(
                folder / f"bookie-{number}",
                {**DEFAULTS, "metadataStoreUrl": metadata_url},
            )
            for number in range(BOOKIES)
        ]
        self.routes = f"zookeeper://{self.zookeeper.address}/ropeway"
        self.nodes = [
            Node(folder / name, name, self.pulsar, self.routes, Proxy(port, service))
            for name, port in zip(BROKERS, ports, strict=True)
        ]

    @property
    def name_server(self) -> str:
        return ";".join(node.address for node in self.nodes)

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    async def start(self) -> None:
        for node in self.nodes:
            await node.proxy.start()
        await asyncio.gather(
            asyncio.to_thread(self.zookeeper.start),
            asyncio.to_thread(self.metadata.start),
        )
        # It makes what bookies look for, and is up before there are two.
        await asyncio.to_thread(self.pulsar.start)
        for bookie in self.bookies:
            await asyncio.to_thread(bookie.start)
        await asyncio.to_thread(self._make_namespace)
        for node in self.nodes:
            await asyncio.to_thread(node.start)

    async def kill(self) -> None:
        for node in self.nodes:
            node.kill()
        self.pulsar.kill()
        for bookie in self.bookies:
            bookie.kill()
        self.metadata.kill()
        self.zookeeper.kill()
        for node in self.nodes:
            await node.proxy.stop()

    def _make_namespace(self) -> None:
        tenant, _, _ = NAMESPACE.partition("/")
        clusters = {"allowedClusters": [DEFAULTS["clusterName"]]}
        copies = {
            f"bookkeeper{name}": COPIES
            for name in ("Ensemble", "WriteQuorum", "AckQuorum")
        }
        self.pulsar.admin("PUT", f"tenants/{tenant}", clusters)
        self.pulsar.admin("PUT", f"namespaces/{NAMESPACE}")
        self.pulsar.admin("POST", f"namespaces/{NAMESPACE}/persistence", copies)

    def bookies_of(self, topic: str) -> list[Bookie]:
        """Which of the bookies beside Pulsar a partition is written to now."""
        path = f"persistent/{NAMESPACE}/{topic}/internalStats?metadata=true"
        return written_to(self.bookies, self.pulsar.admin("GET", path))

    def admin(self, method: str, path: str) -> str:
        """What Pulsar's REST interface answers, as text."""
        return json.dumps(self.pulsar.admin(method, path))
