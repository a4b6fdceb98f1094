"""docs/how-to: an operator's guides, walked on a node with TLS and access control."""

from __future__ import annotations

import os
import re
import tomllib

import pytest
import yaml

from ropeway.client import diagnosis
from tests.guides import FILES, HOST, Walk
from tests.system.process import free_ports
from tests.system.ropeway import Ropeway


@pytest.fixture
def walk(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("ROPEWAY_TLS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    # A busy machine's node closes a connection without TLS late.
    monkeypatch.setattr(diagnosis, "_LOOK_S", 30.0)
    (site,) = free_ports(1)
    options = ["--config", str(tmp_path / "ropeway.toml")]
    node = Ropeway(tmp_path, options=options)

    def restart() -> None:
        node.stop()
        node.start()

    found = Walk(tmp_path, site)
    found.services = {"start": node.start, "stop": node.stop, "restart": restart}
    found.name_server = node.name_server
    yield found
    node.kill()


def test_prometheus_scrapes_the_port_of_the_node_as_a_user_of_the_cluster():
    (job,) = yaml.safe_load(FILES["prometheus.yml"])["scrape_configs"]
    node = tomllib.loads(FILES["ropeway.toml"])
    assert job["scheme"] == ("https" if node["http"]["tls"] else "http")
    (target,) = job["static_configs"][0]["targets"]
    assert target == f"{HOST}:{node['http']['port']}"
    users = yaml.safe_load(FILES["cluster.yaml"])["users"]
    signs_in = job["basic_auth"]
    file = users[signs_in["username"]]["password_file"]
    assert signs_in["password_file"].endswith(f"/{file}")


@pytest.mark.slow
def test_an_operators_tasks_are_done_on_a_secured_node(walk):
    walk.walk()
    # What Kubernetes would scale by is what the node tells.
    scaler = yaml.safe_load(FILES["kitchen-scaler.yaml"])
    (trigger,) = scaler["spec"]["triggers"]
    found = re.fullmatch(r"sum\((\w+)\{(.*)\}\)", trigger["metadata"]["query"])
    assert found is not None
    told = walk.run(f"ropeway metrics {found[1]}")
    labels = found[2].split(", ")
    rows = [row for row in told.splitlines() if row.startswith(f"{found[1]} ")]
    assert any(all(one in row for one in labels) for row in rows), told
