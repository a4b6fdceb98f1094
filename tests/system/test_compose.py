"""docker-compose.yml: valid by the specification's reference implementation, and whole.

No container is started here: `test_containers.py` does that, where it can.
"""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import ropeway.gateway
from ropeway.gateway.config import Config
from ropeway.gateway.node import namespaces
from tests.system.deployment import ROOT, RefusedError, node_of, understood

pytestmark = pytest.mark.go

FILE = ROOT / "docker-compose.yml"
NODES = ["ropeway-1", "ropeway-2"]
SERVERS = ["pulsar", "zookeeper"]
CLIENTS_HERE = "localhost"


@pytest.fixture(scope="module")
def project() -> Any:
    """What Compose makes of the file."""
    return understood("compose", FILE)


@pytest.fixture(scope="module")
def nodes(project) -> dict[str, Config]:
    """Each node's configuration, as its command line gives it."""
    return {name: node_of(project["services"][name]["command"]) for name in NODES}


def test_it_has_two_nodes_and_what_they_stand_on(project) -> None:
    assert sorted(project["services"]) == sorted([*NODES, *SERVERS])


@pytest.mark.parametrize("name", [*NODES, *SERVERS])
def test_every_service_is_pinned_watched_restarted_and_given_time_to_stop(
    project, name: str
) -> None:
    service = project["services"][name]
    assert re.search(r":\d+\.\d+\.\d+$", service["image"])
    assert service["healthcheck"].keys() == {
        "test",
        "interval",
        "timeout",
        "retries",
        "start_period",
    }
    assert service["restart"] == "unless-stopped"
    assert service["stop_grace_period"]
    assert service["hostname"] == name


@pytest.mark.parametrize("name", NODES)
def test_a_node_waits_until_the_servers_are_healthy(project, name: str) -> None:
    conditions = {
        on: how["condition"]
        for on, how in project["services"][name]["depends_on"].items()
    }
    assert conditions == dict.fromkeys(SERVERS, "service_healthy")


@pytest.mark.parametrize("name", NODES)
def test_a_node_runs_the_image_of_this_version_with_no_more_rights_than_it_needs(
    project, name: str
) -> None:
    service = project["services"][name]
    assert service["image"] == f"ropeway:{ropeway.gateway.__version__}"
    assert service["build"]["dockerfile"] == "Dockerfile"
    assert service["init"] is True
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in service
    assert "privileged" not in service


def test_both_nodes_serve_one_broker_from_one_pulsar_and_one_path(nodes) -> None:
    one, other = nodes.values()
    assert one.broker == other.broker
    assert one.cluster == other.cluster
    assert one.pulsar == other.pulsar
    assert one.routes == other.routes
    assert {config.node for config in nodes.values()} == set(NODES)


def test_messages_are_in_a_namespace_of_the_clusters_own(nodes) -> None:
    comment = "rocketmq/DefaultCluster"
    assert comment in FILE.read_text()
    assert {"/".join(namespaces.own(one)) for one in nodes.values()} == {comment}


@pytest.mark.parametrize("name", NODES)
def test_a_node_looks_for_the_servers_where_they_are(nodes, name: str) -> None:
    config = nodes[name]
    urls = [config.pulsar.service_url, config.pulsar.admin_url, config.routes]
    assert [(urlsplit(url).scheme, urlsplit(url).netloc) for url in urls] == [
        ("pulsar", "pulsar:6650"),
        ("http", "pulsar:8080"),
        ("zookeeper", "zookeeper:2181"),
    ]
    assert urlsplit(config.routes).path == "/ropeway"


@pytest.mark.parametrize("name", NODES)
def test_containers_are_told_a_nodes_name_and_this_machine_its_published_port(
    project, nodes, name: str
) -> None:
    inside, here = nodes[name].listeners
    assert (inside.advertised_host, inside.advertised_port) == (name, inside.port)
    assert here.advertised_host == CLIENTS_HERE
    (port,) = project["services"][name]["ports"]
    assert port["target"] == here.port
    assert port["published"] == str(here.advertised_port)


def test_nodes_have_the_same_ports_inside_and_their_own_outside(nodes) -> None:
    inside, here = zip(*(config.listeners for config in nodes.values()), strict=True)
    assert len({one.port for one in inside}) == 1
    assert len({one.advertised_port for one in here}) == len(NODES)


@pytest.mark.parametrize("name", NODES)
def test_a_nodes_health_is_asked_for_where_it_listens(
    project, nodes, name: str
) -> None:
    kind, *command = project["services"][name]["healthcheck"]["test"]
    assert kind == "CMD"
    inside = nodes[name].listeners[0]
    assert command == [
        *["ropeway", "topic", "list", "--name-server", f"127.0.0.1:{inside.port}"]
    ]


def test_nothing_is_published_but_the_nodes_and_only_on_this_machine(project) -> None:
    hosts = [
        (name, port["host_ip"])
        for name, service in project["services"].items()
        for port in service.get("ports", [])
    ]
    assert hosts == [(name, "127.0.0.1") for name in NODES]


def test_what_is_kept_is_kept_in_named_volumes(project) -> None:
    mounts = {
        (name, mount["target"]): mount["source"]
        for name, service in project["services"].items()
        for mount in service["volumes"]
    }
    assert mounts.keys() == {
        ("pulsar", "/pulsar/data"),
        ("zookeeper", "/data"),
        ("zookeeper", "/datalog"),
        *((name, "/data") for name in NODES),
    }
    assert sorted(mounts.values()) == sorted(project["volumes"])


def test_pulsar_is_set_up_as_the_gateway_needs_it(project) -> None:
    service = project["services"]["pulsar"]
    settings = {
        key.removeprefix("PULSAR_PREFIX_"): value
        for key, value in service["environment"].items()
    }
    interceptors = settings["brokerEntryMetadataInterceptors"].split(",")
    assert [one.rpartition(".")[2] for one in interceptors] == [
        "AppendBrokerTimestampMetadataInterceptor",
        "AppendIndexMetadataInterceptor",
    ]
    assert settings["exposingBrokerEntryMetadataToClientEnabled"] == "true"
    assert settings["brokerDeleteInactiveTopicsEnabled"] == "false"
    assert settings["advertisedAddress"] == service["hostname"]
    assert settings["journalSyncData"] == "true"


def test_the_bookie_in_pulsar_is_the_same_after_a_restart(project) -> None:
    environment = project["services"]["pulsar"]["environment"]
    assert environment["PULSAR_PREFIX_listeningInterface"] == "lo"
    assert environment["PULSAR_PREFIX_allowEphemeralPorts"] == "true"


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("read_only: true", "readonly: true", "readonly is not allowed"),
        ("- pulsar-data:", "- pulsardata:", "undefined volume pulsardata"),
        ("    pulsar:\n      condition", "    pulsr:\n      condition", "pulsr"),
        ("service_healthy", "healthy", "condition must be one of"),
        ("127.0.0.1:9877:9877", "127.0.0.1:9877:port", "port"),
        ("retries: 3", "retries: three", r"healthcheck\.retries: failed to cast"),
    ],
)
def test_a_mistake_in_it_is_found(
    tmp_path: Path, right: str, wrong: str, complaint: str
) -> None:
    text = FILE.read_text()
    assert right in text
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(text.replace(right, wrong))
    with pytest.raises(RefusedError, match=complaint):
        understood("compose", broken)
