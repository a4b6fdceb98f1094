"""docs/how-to on a cluster: two secured nodes, messages on Pulsar."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ropeway.client import diagnosis
from tests.guides import FILES, Walk
from tests.patience import have_patient_commands
from tests.system.cluster import Cluster
from tests.system.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]
ELSEWHERE = ["A node on its own log"]
"""Its commands copy a directory that has all messages; no node of these has any."""


def test_an_operators_tasks_are_done_on_two_nodes(
    pulsar: Pulsar,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith("ROPEWAY_TLS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnosis, "_LOOK_S", 30.0)
    have_patient_commands(monkeypatch)
    sites = free_ports(2)
    walk = Walk(tmp_path, sites[0])
    cluster = Cluster(
        tmp_path / "nodes",
        pulsar,
        zookeeper.address,
        settings=walk.here(FILES["ropeway.toml"]),
        sites=sites,
    )

    def restart() -> None:
        for node in cluster.nodes:
            node.stop()
            node.start()

    walk.services = {"start": cluster.start, "restart": restart}
    walk.name_server = cluster.name_server
    walk.differs = {"node-0": "broker-0", "2      Ropeway": "1      Ropeway"}
    try:
        walk.walk(ELSEWHERE)
    finally:
        cluster.kill()
