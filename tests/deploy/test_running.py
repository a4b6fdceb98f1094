"""Nodes take what the chart gives them: settings, command line, user, volumes."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography.fernet import Fernet

from ropeway.gateway.config_file import ConfigError
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.deploy.cases import merged, nested
from tests.deploy.helm import EXAMPLES, PULSAR, command_of, rendered
from tests.deploy.pod import SERVICES, Pod, lacking, release_test, running
from tests.gateway.test_tls import issue
from tests.system.deployment import node_of

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.config import Config

pytestmark = pytest.mark.go

EXAMPLE = yaml.safe_load((EXAMPLES / "pulsar.yaml").read_text())
POD = "mq-ropeway-broker-0-1"
HOST = f"{POD}.apps.svc.cluster.local"


def config(values: dict[str, Any], folder: Path) -> Config:
    """What the program itself makes of a pod's command line and settings."""
    objects = rendered(values)
    file = folder / "ropeway.toml"
    file.write_text(objects.settings)
    arguments, _ = command_of(objects.container, POD)
    return node_of(arguments, file)


def test_a_node_takes_all_settings_of_the_chart(tmp_path: Path) -> None:
    found = config(
        merged(
            EXAMPLE,
            {
                "external": {"domain": "mq.example.com"},
                "clusterSecret": {"name": "nodes"},
                "zookeeper": {"user": "mq", "passwordSecret": {"name": "zk"}},
                "tls": {"clientCertificates": "optional"},
            },
        ),
        tmp_path,
    )
    assert [(one.advertised_host, one.port) for one in found.listeners] == [
        (HOST, 9876),
        (f"{POD}.mq.example.com", 9877),
    ]
    assert (found.broker, found.node, found.cluster) == ("broker-0", POD, "production")
    assert found.pulsar is not None
    assert found.tls is not None
    assert found.tls.required
    assert found.tls.client_certificate == "optional"
    assert found.acl is not None
    assert found.acl.options["users"]["superuser"] == "admin"
    assert found.zookeeper.user == "mq"
    assert found.routes == f"zookeeper://{EXAMPLE['zookeeper']['servers']}/ropeway"
    assert found.grpc
    assert not found.topics.auto_create


def test_settings_keep_their_kinds_on_their_way_through_helm(tmp_path: Path) -> None:
    given = {
        "region": 'say "<hi>" & \\ é',
        "log": {"retention_bytes": 107374182400, "retention_hours": 0.5},
        "quotas": [{"of": "10.0.0.0/8", "connections": 20}, {"bytes_per_s": 5}],
        "topics": {"create": {"orders": 8, "50%_off": 16}, "auto_create": False},
    }
    found = config({"config": given}, tmp_path)
    assert found.region == given["region"]
    assert found.log.retention_bytes == 107374182400
    assert found.log.retention_hours == 0.5
    assert [(one.of, one.connections) for one in found.quotas] == [
        ("10.0.0.0/8", 20),
        ("*", None),
    ]
    assert found.topics.create == {"orders": 8, "50%_off": 16}


def test_a_setting_that_the_program_does_not_know_is_found(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"log\.flsh is not a setting"):
        config(nested("config.log.flsh", "sync"), tmp_path)


def test_nodes_listen_on_ipv6_where_they_are_told_to(tmp_path: Path) -> None:
    found = config(merged(PULSAR, nested("listenAddress", "[::]")), tmp_path)
    assert [(one.host, one.port) for one in found.listeners] == [("::", 9876)]
    assert found.http is not None
    assert found.http.host == "::"


GUARDED = {
    "tls": {"existingSecret": "certificate", "required": True},
    "acl": {"existingSecret": "users"},
    "clusterSecret": {"name": "nodes"},
}


def secrets(folder: Path) -> dict[str, dict[str, str]]:
    """The Secrets that `GUARDED` names."""
    pair = issue(folder, "*.apps.svc.cluster.local")
    certificate = pair.certificate.read_text()
    return {
        "certificate": {
            "tls.crt": certificate,
            "tls.key": pair.key.read_text(),
            "ca.crt": certificate,
        },
        "users": {"password": "of a superuser", "key": Fernet.generate_key().decode()},
        "nodes": {"secret": "what all nodes know"},
    }


@pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
def test_a_pod_takes_its_secrets_and_lets_nobody_in_without(tmp_path: Path) -> None:
    objects, known = rendered(GUARDED), secrets(tmp_path)
    with running(Pod(objects, tmp_path, "10.244.1.5", known)) as pod:
        assert "others can read secrets" not in pod.log()
        command, environment = release_test(objects, known)
        assert "message of mq-ropeway-test" in pod.run(
            *command, environment=environment
        )
        listing = ("ropeway", "topic", "list")
        pod.run(*listing, environment={"ROPEWAY_SECRET_KEY": "guessed"}, code=6)
        in_plain = {"ROPEWAY_TLS": "false", "ROPEWAY_TLS_CA": ""}
        pod.run(*listing, environment=in_plain, code=7)
        pod.stop()


@pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
def test_a_pod_serves_and_its_message_ids_outlive_its_address(tmp_path: Path) -> None:
    """The volume and the Service stay; the pod and its address do not."""
    objects = rendered()
    with running(Pod(objects, tmp_path, "10.244.1.5")) as pod:
        status = pod.status()
        assert re.search(r"^Uid:\t10876\t10876", status, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
        written = "touch /usr/x /etc/x /x 2>/dev/null && echo written; touch /data/x"
        assert pod.run("sh", "-c", written) == ""
        assert pod.passes("startupProbe")
        assert pod.passes("livenessProbe")

        # `helm test`, and then its message.
        command, environment = release_test(objects)
        assert "message of mq-ropeway-test" in pod.run(
            *command, environment=environment
        )
        reading = ("consume", "ropeway-helm-test", "--count", "1")
        identity = pod.run("ropeway", *reading, "--format", "{offset_msg_id}").strip()
        assert parse_offset_msg_id(identity).host == SERVICES[pod.name]
        assert socket.inet_aton(pod.address).hex().upper() not in identity
        pod.stop()

    with running(Pod(objects, tmp_path, "10.244.2.7")) as moved:
        seen = moved.run("ropeway", "message", "view", identity)
        assert "message of mq-ropeway-test" in seen
        moved.stop()
