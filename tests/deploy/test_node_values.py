"""Values of the chart that pods and their settings are made of, one by one."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.deploy.cases import (
    Case,
    argument,
    check,
    each,
    in_containers,
    in_pods,
    merged,
    nested,
    pre_stop,
    secret,
)
from tests.deploy.helm import PULSAR, Objects

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.go

TLS = nested("tls.existingSecret", "certificate")
ACL = nested("acl.existingSecret", "users")
TOKEN = merged(PULSAR, nested("pulsar.tokenSecret.name", "token"))
CA = merged(PULSAR, nested("pulsar.caSecret.name", "ca"))
PASSWORD = merged(PULSAR, nested("zookeeper.passwordSecret.name", "zk"))


def setting(path: str) -> Callable[[Objects], Any]:
    """Finds a setting of nodes."""

    def found(objects: Objects) -> Any:
        value: Any = tomllib.loads(objects.settings)
        for key in path.split("."):
            value = value[key]
        return value

    return found


def image(objects: Objects) -> str:
    """The image of nodes, which the test of the release has, too."""
    found: str = objects.container["image"]
    (test,) = objects.of("Pod").values()
    assert [one["image"] for one in test["spec"]["containers"]] == [found]
    return found


CASES = [
    Case(
        "storage",
        "pulsar",
        setting("pulsar"),
        base=merged(PULSAR, {"storage": "embedded"}),
        expected={
            "service_url": "pulsar://pulsar:6650",
            "admin_url": "http://pulsar:8080",
        },
    ),
    Case("image.repository", "mine/mq", image, expected="mine/mq:0.1.0"),
    Case("image.tag", "next", image, expected="ropeway:next"),
    Case(
        "image.digest",
        f"sha256:{'0' * 64}",
        image,
        base=nested("image.tag", "left-out"),
        expected=f"ropeway@sha256:{'0' * 64}",
    ),
    Case("image.pullPolicy", "Always", in_containers("imagePullPolicy")),
    Case("imagePullSecrets", [{"name": "pull"}], in_pods("imagePullSecrets")),
    Case(
        "clusterDomain",
        "example",
        argument("--listen=0.0.0.0:9876="),
        expected="$(POD_NAME).apps.svc.example:9876",
    ),
    Case("config", {"region": "north"}, lambda o: {"region": setting("region")(o)}),
    Case("logLevel", "debug", argument("--log-level=")),
    Case("logFormat", "text", argument("--log-format=")),
    Case("listenAddress", "[::]", setting("http.host"), expected="::"),
    Case(
        "pulsar.serviceUrl",
        "pulsar+ssl://mq:6651",
        setting("pulsar.service_url"),
        base=PULSAR,
    ),
    Case(
        "pulsar.adminUrl", "https://mq:8443", setting("pulsar.admin_url"), base=PULSAR
    ),
    Case("pulsar.tokenSecret.name", "token", secret("pulsar-token"), base=PULSAR),
    Case(
        "pulsar.tokenSecret.key",
        "jwt",
        setting("pulsar.token_file"),
        base=TOKEN,
        expected="/etc/ropeway/pulsar-token/jwt",
    ),
    Case("pulsar.caSecret.name", "ca", secret("pulsar-ca"), base=PULSAR),
    Case(
        "pulsar.caSecret.key",
        "root.pem",
        setting("pulsar.ca_certificate"),
        base=CA,
        expected="/etc/ropeway/pulsar-ca/root.pem",
    ),
    Case(
        "zookeeper.servers",
        "zk:2181",
        setting("routes"),
        base=PULSAR,
        expected="zookeeper://zk:2181/ropeway",
    ),
    Case(
        "zookeeper.path",
        "/mq/a",
        setting("routes"),
        base=PULSAR,
        expected="zookeeper://zk-0:2181,zk-1:2181/mq/a",
    ),
    Case("zookeeper.user", "mq", setting("zookeeper.user"), base=PASSWORD),
    Case("zookeeper.passwordSecret.name", "zk", secret("zookeeper"), base=PULSAR),
    Case(
        "zookeeper.passwordSecret.key",
        "secret",
        setting("zookeeper.password_file"),
        base=PASSWORD,
        expected="/etc/ropeway/zookeeper/secret",
    ),
    Case("tls.existingSecret", "certificate", secret("tls")),
    Case("tls.required", True, setting("tls.required"), base=TLS),
    Case(
        "tls.clientCertificates",
        "optional",
        setting("tls.client_certificate"),
        base=TLS,
    ),
    Case("acl.existingSecret", "users", secret("acl")),
    Case("acl.superuser", "root", setting("acl.options.users.superuser"), base=ACL),
    Case("clusterSecret.name", "nodes", secret("cluster")),
    Case(
        "clusterSecret.key",
        "shared",
        setting("cluster_secret_file"),
        base=nested("clusterSecret.name", "nodes"),
        expected="/etc/ropeway/cluster/shared",
    ),
    Case("http.port", 9090, setting("http.port")),
    Case("drain.timeoutSeconds", 7, pre_stop("timeout"), base=PULSAR),
    Case("drain.clientsSeconds", 8, pre_stop("sleep"), base=PULSAR),
    Case(
        "drain.enabled",
        False,
        lambda objects: "lifecycle" in objects.container,
        base=PULSAR,
    ),
    Case(
        "terminationGracePeriodSeconds", 300, in_pods("terminationGracePeriodSeconds")
    ),
    *[
        Case(
            f"{name}Probe",
            {"periodSeconds": 77},
            lambda objects, name=name: {  # type: ignore[misc]
                "periodSeconds": objects.container[f"{name}Probe"]["periodSeconds"]
            },
        )
        for name in ("startup", "liveness", "readiness")
    ],
    Case(
        "resources",
        {"limits": {"memory": "4Gi"}},
        lambda objects: {"limits": objects.container["resources"]["limits"]},
    ),
    Case(
        "podSecurityContext",
        {"fsGroup": 5},
        lambda objects: {"fsGroup": objects.pod["spec"]["securityContext"]["fsGroup"]},
    ),
    Case(
        "securityContext",
        {"runAsUser": 5},
        lambda objects: {
            "runAsUser": objects.container["securityContext"]["runAsUser"]
        },
    ),
    Case(
        "antiAffinity",
        "hard",
        lambda objects: [*objects.pod["spec"]["affinity"]["podAntiAffinity"]],
        expected=["requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    Case("affinity", {"nodeAffinity": {}}, in_pods("affinity")),
    Case("nodeSelector", {"disk": "ssd"}, in_pods("nodeSelector")),
    Case("tolerations", [{"operator": "Exists"}], in_pods("tolerations")),
    Case(
        "topologySpreadConstraints",
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        in_pods("topologySpreadConstraints"),
    ),
    Case("priorityClassName", "high", in_pods("priorityClassName")),
    Case(
        "podAnnotations",
        {"a": "b"},
        lambda objects: {"a": objects.pod["metadata"]["annotations"]["a"]},
    ),
    Case(
        "podLabels",
        {"a": "b"},
        lambda objects: {"a": objects.pod["metadata"]["labels"]["a"]},
    ),
    Case(
        "extraEnv",
        [{"name": "A", "value": "b"}],
        lambda objects: objects.container["env"][-1:],
    ),
    Case("extraEnvFrom", [{"secretRef": {"name": "keys"}}], in_containers("envFrom")),
    Case(
        "extraVolumes",
        [{"name": "more", "emptyDir": {}}],
        lambda objects: objects.pod["spec"]["volumes"][-1:],
    ),
    Case(
        "extraVolumeMounts",
        [{"name": "more", "mountPath": "/more"}],
        lambda objects: objects.container["volumeMounts"][-1:],
    ),
]


@each(CASES)
def test_a_value_comes_to_where_it_belongs(case: Case) -> None:
    check(case)
