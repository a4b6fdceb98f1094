"""The chart as a whole: linted, documented, packed, and what it refuses."""

from __future__ import annotations

import json
import re
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import ropeway.gateway
from tests.deploy import test_node_values, test_release_values
from tests.deploy.cases import merged, nested
from tests.deploy.helm import (
    CHART,
    EXAMPLES,
    KUBERNETES,
    PULSAR,
    ROOT,
    HelmError,
    helm,
    notes,
    rendered,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.go

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
TESTED = [case.path for case in (*test_node_values.CASES, *test_release_values.CASES)]
EXAMPLE = yaml.safe_load((EXAMPLES / "pulsar.yaml").read_text())


def leaves(values: dict[str, Any], above: str = "") -> Iterator[str]:
    """The path of each value."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key


def at(path: str) -> Any:
    """A value's default."""
    found: Any = VALUES
    for key in path.split("."):
        found = found[key]
    return found


@pytest.mark.parametrize(
    "values", [{}, PULSAR, EXAMPLE], ids=["embedded", "pulsar", "example"]
)
def test_helm_finds_nothing_to_complain_about(values: dict[str, Any]) -> None:
    said = helm("lint", "--strict", KUBERNETES, CHART, values=values)
    assert "0 chart(s) failed" in said
    assert "WARNING" not in said


def test_the_chart_is_of_this_version_of_ropeway() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == ropeway.gateway.__version__


def test_each_value_is_tested() -> None:
    assert len(set(TESTED)) == len(TESTED)
    untested = [
        leaf
        for leaf in leaves(VALUES)
        if not any(f"{leaf}.".startswith(f"{path}.") for path in TESTED)
    ]
    assert untested == []


def test_each_value_has_a_line_in_the_readme_with_its_default() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| `(.+)` \| .+ \|$",
        (CHART / "README.md").read_text(),
        re.MULTILINE,
    )
    assert {path: json.loads(default) for path, default in rows} == {
        path: at(path) for path in TESTED
    }


def test_the_schema_knows_the_values_and_no_others() -> None:
    def known(schema: dict[str, Any], above: str = "") -> Iterator[str]:
        assert schema["additionalProperties"] is False
        for key, one in schema["properties"].items():
            if "properties" in one:
                yield from known(one, f"{above}{key}.")
            else:
                yield above + key

    # Subcharts are given `global` by Helm, whatever is in it.
    assert set(known(SCHEMA)) == {*TESTED, "global"}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (nested("storge", "pulsar"), "'storge' not allowed"),
        (nested("image.tga", "1"), "'tga' not allowed"),
        (nested("storage", "file"), "must be one of 'embedded', 'pulsar'"),
        (nested("storage", "pulsar"), "/pulsar/serviceUrl"),
        (merged(PULSAR, nested("zookeeper.servers", "")), "/zookeeper/servers"),
        (merged(PULSAR, nested("brokers", 0)), "/brokers"),
        (nested("http.port", 80), "/http/port"),
        (nested("fullnameOverride", "Not_A_Name"), "/fullnameOverride"),
        *[
            (nested(f"config.{key}", "x"), f"config.{key} is set by the chart")
            for key in ("data", "node", "broker", "listeners", "routes")
        ],
        (
            merged(PULSAR, nested("drain.clientsSeconds", 60)),
            "terminationGracePeriodSeconds is 90; allowed: 95 or more",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_mistake_is_refused_and_named(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(HelmError, match=re.escape(complaint)):
        rendered(values)


def test_the_notes_tell_the_name_server_and_how_to_go_on(tmp_path: Path) -> None:
    told = notes({}, tmp_path)
    assert "mq-ropeway.apps.svc.cluster.local:9876" in told
    assert "helm test mq --namespace apps" in told
    assert "Messages are on one volume" in told
    assert "Access control is off" in told


def test_the_notes_of_a_cluster_on_pulsar_name_all_nodes_for_clients_outside(
    tmp_path: Path,
) -> None:
    values = merged(EXAMPLE, nested("external.domain", "mq.example.com"))
    told = notes(merged(values, {"brokers": 1}), tmp_path)
    assert (
        "mq-ropeway-broker-0-0.mq.example.com:9877;"
        "mq-ropeway-broker-0-1.mq.example.com:9877" in told
    )
    assert "Messages are on Pulsar at pulsar+ssl://pulsar-proxy.pulsar:6651" in told
    assert "Access control is off" not in told


def test_the_packed_chart_has_the_dashboard_itself(tmp_path: Path) -> None:
    helm("package", CHART, "--destination", tmp_path)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        found = packed.extractfile("ropeway/dashboards/ropeway.json")
        assert found is not None
        dashboard = (ROOT / "deploy/helm/ropeway/dashboards/ropeway.json").read_bytes()
        assert found.read() == dashboard


def test_the_dashboard_comes_to_the_cluster_as_it_is() -> None:
    objects = rendered(nested("dashboard.enabled", True))
    given = objects.of("ConfigMap")["mq-ropeway-dashboard"]["data"]["ropeway.json"]
    dashboard = (ROOT / "deploy/helm/ropeway/dashboards/ropeway.json").read_text()
    assert json.loads(given) == json.loads(dashboard)
