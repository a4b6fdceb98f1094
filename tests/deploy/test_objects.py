"""What the chart makes is valid for Kubernetes, safe, and fits together."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ropeway.gateway.http.metrics.catalog import COMMON, FAMILIES
from tests import builds
from tests.deploy.cases import merged, nested
from tests.deploy.helm import (
    CHART,
    EXAMPLES,
    PULSAR,
    ROOT,
    Objects,
    command_of,
    documents,
    rendered,
)
from tests.guides import FILES

pytestmark = pytest.mark.go

EXAMPLE = yaml.safe_load((EXAMPLES / "pulsar.yaml").read_text())
EVERYTHING = merged(
    EXAMPLE,
    {
        "external": {"domain": "mq.example.com"},
        "networkPolicy": {"egress": [{"to": [{"namespaceSelector": {}}]}]},
        "clusterSecret": {"name": "nodes"},
        "zookeeper": {"passwordSecret": {"name": "zk"}},
    },
)
SHAPES: dict[str, dict[str, Any]] = {
    "monitoring.coreos.com/v1": {
        "namespaceSelector": {"matchNames": list},
        "selector": {"matchLabels": dict},
        "endpoints": [
            {"port": str, "path": str, "interval": str, "scrapeTimeout": str}
        ],
    },
    "keda.sh/v1alpha1": {
        "scaleTargetRef": {"kind": str, "name": str},
        "minReplicaCount": int,
        "maxReplicaCount": int,
        "pollingInterval": int,
        "cooldownPeriod": int,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": dict}},
        "triggers": [
            {
                "type": str,
                "metadata": {
                    "serverAddress": str,
                    "query": str,
                    "threshold": str,
                    "activationThreshold": str,
                    "ignoreNullValues": str,
                },
            }
        ],
        "fallback": {"failureThreshold": int, "replicas": int},
    },
    "cert-manager.io/v1": {
        "secretName": str,
        "issuerRef": {"kind": str, "name": str},
        "usages": list,
        "dnsNames": list,
    },
}
"""The fields that we use of a ServiceMonitor, a ScaledObject and a Certificate.

Source: the definitions of prometheus-operator 0.86, KEDA 2.18, cert-manager 1.19.
"""


def shape_of(value: Any, like: Any) -> Any:
    """The types of a value's parts, as far as `like` goes."""
    if isinstance(like, dict) and isinstance(value, dict):
        return {key: shape_of(one, like.get(key)) for key, one in value.items()}
    if isinstance(like, list) and isinstance(value, list):
        (one,) = value
        return [shape_of(one, like[0])]
    return type(value)


def validated(objects: Objects, version: str, folder: Path) -> str:
    """What is wrong with objects by the schemas of Kubernetes' API, line by line."""
    file = folder / "objects.yaml"
    file.write_text("\n---\n".join(json.dumps(one) for one in objects))
    packages = builds.python_packages(Path(__file__).with_name("requirements.txt"))
    command = ["-m", "kubernetes_validate", "--strict", "-k", version]
    done = subprocess.run(
        [sys.executable, *command, file],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(packages)},
    )
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    wrong = [one for one in lines if not re.fullmatch(r"INFO \S+ passed .*", one)]
    assert len(lines) >= len(objects), done.stderr
    return "\n".join(wrong)


def own(objects: Objects) -> Objects:
    """Those of Kubernetes itself."""
    return Objects(one for one in objects if one["apiVersion"] not in SHAPES)


@pytest.mark.parametrize("version", ["1.27", "1.37"])
@pytest.mark.parametrize(
    "values", [{}, PULSAR, EVERYTHING], ids=["embedded", "pulsar", "everything"]
)
def test_objects_fit_the_oldest_and_the_newest_kubernetes(
    values: dict[str, Any], version: str, tmp_path: Path
) -> None:
    assert validated(own(rendered(values)), version, tmp_path) == ""


def test_the_oldest_kubernetes_is_the_one_that_the_chart_names() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == ">=1.27.0-0"


def test_a_field_that_kubernetes_does_not_know_is_found(tmp_path: Path) -> None:
    objects = rendered(nested("extraVolumes", [{"name": "more", "emptydir": {}}]))
    assert "emptydir" in validated(own(objects), "1.37", tmp_path)


def test_custom_resources_have_the_fields_that_their_operators_know() -> None:
    found = [
        *rendered(EVERYTHING).of("ServiceMonitor").values(),
        *documents((EXAMPLES / "keda.yaml").read_text()),
        *documents((EXAMPLES / "certificate.yaml").read_text()),
    ]
    assert {
        one["apiVersion"]: shape_of(one["spec"], SHAPES[one["apiVersion"]])
        for one in found
    } == SHAPES


def fits(shape: Any, like: Any) -> bool:
    """Whether a shape has nothing that `like` does not have."""
    if isinstance(shape, dict):
        return all(key in like and fits(one, like[key]) for key, one in shape.items())
    if isinstance(shape, list):
        return all(fits(one, like[0]) for one in shape)
    return bool(shape == like)


def test_the_guides_scaled_object_has_fields_that_keda_knows() -> None:
    (scaled,) = documents(FILES["kitchen-scaler.yaml"])
    like = SHAPES[scaled["apiVersion"]]
    assert fits(shape_of(scaled["spec"], like), like)
    assert not fits(shape_of({"replicas": 1}, like), like)


def test_the_example_for_keda_asks_for_metrics_that_there_are() -> None:
    (scaled,) = documents((EXAMPLES / "keda.yaml").read_text())
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    (name,) = re.findall(r"\b(?:rocketmq|ropeway)_\w+", query)
    labels = set(re.findall(r"(\w+)=", query))
    assert labels <= {*FAMILIES[name].labels, *COMMON}


def test_the_example_certificate_has_the_names_of_the_example_release() -> None:
    (certificate,) = documents((EXAMPLES / "certificate.yaml").read_text())
    objects = rendered(EXAMPLE)
    assert certificate["spec"]["secretName"] == EXAMPLE["tls"]["existingSecret"]
    assert set(certificate["spec"]["dnsNames"]) == {
        f"{name}.apps.svc.cluster.local"
        for name, service in objects.of("Service").items()
        if service["spec"].get("clusterIP") != "None"
    }


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["embedded", "everything"])
def test_pods_meet_the_restricted_pod_security_standard(values: dict[str, Any]) -> None:
    objects = rendered(values)
    (user,) = re.findall(
        r"^USER (\d+):", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    pods = [
        one["spec"]["template"]["spec"] for one in objects.of("StatefulSet").values()
    ]
    pods += [one["spec"] for one in objects.of("Pod").values()]
    for pod in pods:
        of_pod = pod["securityContext"]
        assert of_pod["runAsNonRoot"] is True
        assert of_pod["runAsUser"] == of_pod["fsGroup"] == int(user)
        assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert all("hostPath" not in one for one in pod.get("volumes", ()))
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["embedded", "everything"])
def test_what_clients_are_told_is_the_lasting_service_of_just_that_pod(
    values: dict[str, Any],
) -> None:
    objects = rendered(values)
    services = objects.of("Service")
    told = set()
    for name, one in objects.of("StatefulSet").items():
        (container,) = one["spec"]["template"]["spec"]["containers"]
        for ordinal in range(one["spec"]["replicas"]):
            pod = f"{name}-{ordinal}"
            arguments, _ = command_of(container, pod)
            (listen,) = (a for a in arguments if a.startswith("--listen=0.0.0.0:9876="))
            host = listen.split("=")[2].removesuffix(":9876")
            assert host == f"{pod}.apps.svc.cluster.local"
            told.add(pod)
            spec = services[pod]["spec"]
            assert "clusterIP" not in spec, "a headless Service has the pod's address"
            assert spec["publishNotReadyAddresses"] is True
            assert spec["selector"] == {
                "app.kubernetes.io/name": "ropeway",
                "app.kubernetes.io/instance": "mq",
                "statefulset.kubernetes.io/pod-name": pod,
            }
    beside = {"mq-ropeway", "mq-ropeway-nodes"}
    inside = {name for name in services if not name.endswith("-external")}
    assert inside == told | beside


def test_services_select_nodes_and_never_the_pod_of_the_test() -> None:
    objects = rendered(EVERYTHING)
    (test,) = objects.of("Pod").values()
    selectors = [one["spec"]["selector"] for one in objects.of("Service").values()]
    for name, one in objects.of("StatefulSet").items():
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert (
            objects.of("PodDisruptionBudget")[name]["spec"]["selector"]
            == (one["spec"]["selector"])
        )
        for selector in selectors:
            pod = {"statefulset.kubernetes.io/pod-name"}
            assert {k: v for k, v in selector.items() if k not in pod}.items() <= (
                labels.items()
            )
    for selector in selectors:
        assert not selector.items() <= test["metadata"]["labels"].items()


def test_probes_ask_by_https_where_the_page_speaks_nothing_else() -> None:
    values = merged(EVERYTHING, nested("config.http.tls", True))
    objects = rendered(values)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert objects.container[probe]["httpGet"]["scheme"] == "HTTPS"
    (monitor,) = objects.of("ServiceMonitor").values()
    assert monitor["spec"]["endpoints"][0]["scheme"] == "https"


def test_a_changed_setting_starts_pods_anew() -> None:
    def checksum(values: dict[str, Any]) -> str:
        found: str = rendered(values).pod["metadata"]["annotations"]["checksum/config"]
        return found

    assert checksum({}) != checksum(nested("config.region", "north"))
