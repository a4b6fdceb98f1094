"""A rolling upgrade as the chart has it: a Java producer fails no send."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.harness import Session
from tests.clients.programs import JAVA_5
from tests.deploy.cases import merged
from tests.deploy.helm import PULSAR, rendered
from tests.system.cluster import Cluster
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from tests.clients.fixtures import Agents
    from tests.system.pulsar import Pulsar
    from tests.system.ropeway import Ropeway
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.go, pytest.mark.jvm, pytest.mark.server]

ROUTES_MS = 1000
"""Clients look at routes so often here, and each 30 s by default."""
DRAIN = {"drain": {"timeoutSeconds": 60, "clientsSeconds": 8}}
"""By default clients look each 30 s, and have 35: a look that comes late has time."""
SESSION_MS = 30_000
"""Nobody dies here: no node is to be taken for dead where the machine stalls."""
GRACE = {"terminationGracePeriodSeconds": 90}


def end(cluster: Cluster, node: Ropeway, name: str) -> None:
    """End a node as the kubelet ends its pod: what is to come first, then SIGTERM."""
    container = rendered(merged(PULSAR, {**DRAIN, **GRACE})).container
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    done = subprocess.run(
        command,
        check=False,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "POD_NAME": name,
            "ROPEWAY_NAME_SERVER": node.name_server,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"{name} leads no broker; it may be stopped now" in done.stdout, done.stderr
    node.stop()


def test_pods_are_replaced_one_by_one_and_no_send_fails(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper, agents: Agents
) -> None:
    made = Cluster(tmp_path, pulsar, zookeeper.address, session_ms=SESSION_MS)
    with running(made) as cluster:
        session = Session(agents.of(JAVA_5), cluster.name_server)
        stopped = threading.Event()
        steps = ["two nodes run"]
        failures: list[tuple[str, Exception]] = []
        counts = itertools.count()

        def send() -> None:
            while not stopped.is_set():
                message = {"body": f"message {next(counts)}"}
                try:
                    session.produce("orders", [message], poll_routes_ms=ROUTES_MS)
                except Exception as error:  # noqa: BLE001 - the test says which
                    failures.append((steps[-1], error))

        session.produce("orders", [{"body": "first"}], poll_routes_ms=ROUTES_MS)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            # As a StatefulSet does it, from the last to the first.
            for number in (1, 0):
                steps.append(f"node-{number} ends")
                end(cluster, cluster.nodes[number], f"node-{number}")
                steps.append(f"node-{number} starts")
                cluster.nodes[number].start()
        finally:
            stopped.set()
            sender.join()
        assert failures == []
        assert next(counts) > 10
