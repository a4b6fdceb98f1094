"""Nodes of Ropeway as they are deployed: beside a Pulsar, with routes in ZooKeeper."""

import itertools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.system.pulsar import Pulsar
from tests.system.pulsar_cluster import Way
from tests.system.ropeway import PATIENT, Ropeway, transactions

SESSION_MS = 10_000
"""No node is taken for dead because the machine is busy."""
SHORT_SESSION_MS = 3000
"""For tests whose nodes die, and which bear that one that lives is taken for dead."""
SETTINGS = """\
{replication_num}
[pulsar]
service_url = "{service_url}"
admin_url = "{admin_url}"
tenant = "public"
namespace = "{namespace}"
{more}
{namespaces}
[zookeeper]
session_ms = {session_ms}
"""
numbers = itertools.count(1)


class Cluster:
    """Nodes that share routes and a namespace that nobody else uses.

    Args:
        directory: for settings and logs.
        pulsar: where messages are kept.
        zookeeper: where routes are, host:port with commas in between.
        brokers: for each node, the broker that it serves; "" where it is to find one.
        session_ms: how long a node that died is taken for alive.
        auto_create: make a topic when somebody sends to it.
        tls: certificate and key for clients that speak TLS.
        namespaces: tenant/namespace of each further one that topics are in.
        check_ms: when producers are asked how transactions ended, and how often.
        options: more of each node's command line.
        settings: more of the nodes' file of settings, whole tables.
        machines: what each node says that its machine is called.
        pythons: what runs each node, and under what.
        sites: the port of each node's page.
    """

    name = "Ropeway on Pulsar"

    def __init__(
        self,
        directory: Path,
        pulsar: Pulsar | Way,
        zookeeper: str,
        *,
        brokers: Sequence[str] = ("broker-0", "broker-0"),
        session_ms: int = SESSION_MS,
        auto_create: bool = True,
        tls: tuple[Path, Path] | None = None,
        namespaces: Sequence[str] = (),
        check_ms: int | None = None,
        options: Sequence[str] = (),
        settings: str = "",
        machines: Sequence[str] | None = None,
        pythons: Sequence[Sequence[str]] | None = None,
        sites: Sequence[int] | None = None,
        **_: object,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.session_s = session_ms / 1000
        self.namespace = f"cluster-{os.getpid()}-{next(numbers)}"
        self.routes = f"zookeeper://{zookeeper}/{self.namespace}"
        file = directory / "ropeway.toml"
        file.write_text(
            SETTINGS.format(
                service_url=pulsar.service_url,
                admin_url=pulsar.admin_url,
                namespace=self.namespace,
                session_ms=session_ms,
                more=pulsar.more if isinstance(pulsar, Way) else "",
                namespaces=(
                    f"namespaces = {json.dumps(list(namespaces))}" if namespaces else ""
                ),
                replication_num="" if all(brokers) else "replication_num = 2",
            )
            + PATIENT
            + (transactions(check_ms) if check_ms is not None else "")
            + settings
        )
        self.nodes = [
            Ropeway(
                directory / f"node-{number}",
                auto_create=auto_create,
                tls=tls,
                options=[
                    *["--config", str(file), "--routes", self.routes],
                    *["--node", f"node-{number}"],
                    *(["--broker", broker] if broker else []),
                    *(["--http", f"127.0.0.1:{sites[number]}"] if sites else []),
                    *options,
                ],
                machine=machines[number] if machines else "127.0.0.1",
                python=pythons[number] if pythons else (sys.executable,),
            )
            for number, broker in enumerate(brokers)
        ]

    @property
    def name_server(self) -> str:
        """Where clients ask for routes: any node."""
        return ";".join(node.name_server for node in self.nodes)

    @property
    def broker_port(self) -> int:
        """Where clients of the first node send and pull."""
        return self.nodes[0].broker_port

    def start(self) -> None:
        """Start those nodes that do not run."""
        for node in self.nodes:
            if not node.runs:
                node.start()

    def stop(self) -> None:
        """Stop all in order."""
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """End all without warning."""
        for node in self.nodes:
            node.kill()
