"""Values of the chart that say what objects there are beside pods, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.deploy.cases import (
    NAME,
    Case,
    argument,
    check,
    each,
    in_metadata,
    in_pods,
    in_spec,
    nested,
)
from tests.deploy.helm import PULSAR, Objects

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.go

EXTERNAL = nested("external.domain", "mq.example.com")
POLICY = nested("networkPolicy.enabled", True)
MONITOR = nested("serviceMonitor.enabled", True)
RULE = nested("prometheusRule.enabled", True)
DASHBOARD = nested("dashboard.enabled", True)
PEERS = [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}]


def names(kind: str) -> Callable[[Objects], list[str]]:
    """Finds the objects of a kind."""
    return lambda objects: sorted(objects.of(kind))


def claim(key: str) -> Callable[[Objects], Any]:
    """Finds what is asked of the volume of the embedded log."""

    def found(objects: Objects) -> Any:
        (one,) = objects.stateful_set["spec"]["volumeClaimTemplates"]
        return one["spec"][key]

    return found


def allowed(port: str) -> Callable[[Objects], Any]:
    """Finds who may reach a port, besides nodes."""

    def found(objects: Objects) -> Any:
        _, *rules = objects.of("NetworkPolicy")[NAME]["spec"]["ingress"]
        (rule,) = (one for one in rules if {"port": port} in one["ports"])
        return rule.get("from")

    return found


def endpoint(key: str) -> Callable[[Objects], Any]:
    """Finds how Prometheus scrapes."""

    def found(objects: Objects) -> Any:
        (one,) = in_spec("ServiceMonitor")(objects)["endpoints"]
        return one[key]

    return found


CASES = [
    Case("nameOverride", "queue", names("ServiceAccount"), expected=["mq-queue"]),
    Case("fullnameOverride", "other", names("ServiceAccount"), expected=["other"]),
    Case(
        "commonLabels",
        {"team": "shop"},
        lambda objects: {
            one["kind"] for one in objects if one["metadata"]["labels"].get("team")
        },
        expected={"ConfigMap", "Service", "ServiceAccount", "StatefulSet"},
    ),
    Case(
        "persistence.size",
        "1Ti",
        lambda o: claim("resources")(o)["requests"]["storage"],
    ),
    Case("persistence.storageClassName", "fast", claim("storageClassName")),
    Case(
        "persistence.whenDeleted",
        "Delete",
        lambda objects: objects.stateful_set["spec"][
            "persistentVolumeClaimRetentionPolicy"
        ]["whenDeleted"],
    ),
    Case(
        "brokers",
        2,
        names("StatefulSet"),
        base=PULSAR,
        expected=[f"{NAME}-broker-0", f"{NAME}-broker-1"],
    ),
    Case(
        "nodesPerBroker",
        3,
        lambda objects: objects.stateful_set["spec"]["replicas"],
        base=PULSAR,
    ),
    Case(
        "minReadySeconds",
        5,
        lambda objects: objects.stateful_set["spec"]["minReadySeconds"],
        base=PULSAR,
    ),
    Case("service.annotations", {"mesh": "off"}, in_metadata("annotations", "Service")),
    Case(
        "service.ipFamilyPolicy",
        "PreferDualStack",
        lambda o: in_spec("Service", f"{NAME}-broker-0-0")(o)["ipFamilyPolicy"],
    ),
    Case(
        "external.domain",
        "mq.example.com",
        argument("--listen=0.0.0.0:9877="),
        expected="$(POD_NAME).mq.example.com:9877",
    ),
    Case(
        "external.port",
        9999,
        lambda o: in_spec("Service", f"{NAME}-broker-0-0-external")(o)["ports"][0][
            "port"
        ],
        base=EXTERNAL,
    ),
    Case(
        "external.type",
        "ClusterIP",
        lambda o: in_spec("Service", f"{NAME}-broker-0-0-external")(o)["type"],
        base=EXTERNAL,
    ),
    Case(
        "external.annotations",
        {"lb": "internal"},
        in_metadata("annotations", "Service", f"{NAME}-broker-0-0-external"),
        base=EXTERNAL,
        expected={
            "external-dns.alpha.kubernetes.io/hostname": (
                f"{NAME}-broker-0-0.mq.example.com"
            ),
            "lb": "internal",
        },
    ),
    Case(
        "serviceAccount.create",
        False,
        in_pods("serviceAccountName"),
        expected="default",
    ),
    Case("serviceAccount.name", "mine", in_pods("serviceAccountName")),
    Case(
        "serviceAccount.annotations",
        {"role": "mq"},
        in_metadata("annotations", "ServiceAccount"),
    ),
    Case(
        "podDisruptionBudget.enabled",
        False,
        names("PodDisruptionBudget"),
        base=PULSAR,
        expected=[],
    ),
    Case(
        "podDisruptionBudget.maxUnavailable",
        "50%",
        lambda o: in_spec("PodDisruptionBudget", f"{NAME}-broker-0")(o)[
            "maxUnavailable"
        ],
        base=PULSAR,
    ),
    Case("networkPolicy.enabled", True, names("NetworkPolicy"), expected=[NAME]),
    Case("networkPolicy.clients", PEERS, allowed("rocketmq"), base=POLICY),
    Case("networkPolicy.monitoring", PEERS, allowed("http"), base=POLICY),
    Case(
        "networkPolicy.egress",
        [{"to": PEERS}],
        lambda objects: in_spec("NetworkPolicy")(objects)["egress"][-1:],
        base=POLICY,
    ),
    Case("serviceMonitor.enabled", True, names("ServiceMonitor"), expected=[NAME]),
    Case("serviceMonitor.interval", "5s", endpoint("interval"), base=MONITOR),
    Case("serviceMonitor.scrapeTimeout", "4s", endpoint("scrapeTimeout"), base=MONITOR),
    Case(
        "serviceMonitor.labels",
        {"release": "prometheus"},
        lambda objects: {
            "release": in_metadata("labels", "ServiceMonitor")(objects)["release"]
        },
        base=MONITOR,
    ),
    Case("prometheusRule.enabled", True, names("PrometheusRule"), expected=[NAME]),
    Case(
        "prometheusRule.labels",
        {"release": "prometheus"},
        lambda objects: {
            "release": in_metadata("labels", "PrometheusRule")(objects)["release"]
        },
        base=RULE,
    ),
    Case(
        "prometheusRule.additionalGroups",
        [{"name": "more", "rules": []}],
        lambda objects: in_spec("PrometheusRule")(objects)["groups"][1:],
        base=RULE,
    ),
    Case(
        "dashboard.enabled",
        True,
        names("ConfigMap"),
        expected=[NAME, f"{NAME}-dashboard"],
    ),
    Case(
        "dashboard.labels",
        {"sidecar": "yes"},
        lambda objects: {
            "sidecar": in_metadata("labels", "ConfigMap", f"{NAME}-dashboard")(objects)[
                "sidecar"
            ]
        },
        base=DASHBOARD,
    ),
    Case(
        "dashboard.annotations",
        {"grafana_folder": "mq"},
        in_metadata("annotations", "ConfigMap", f"{NAME}-dashboard"),
        base=DASHBOARD,
    ),
]


@each(CASES)
def test_a_value_comes_to_where_it_belongs(case: Case) -> None:
    check(case)
