"""Alerts are rules that Prometheus takes, over metrics that there are, and fire."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ropeway.gateway.http.metrics.catalog import COMMON, FAMILIES
from tests import builds
from tests.deploy.cases import nested
from tests.deploy.helm import CHART, GO_NEEDED, ROOT, SECONDS, rendered
from tests.starts import DownloadError

pytestmark = pytest.mark.go

ALERTS = CHART / "alerts" / "ropeway.yaml"
GROUPS = yaml.safe_load(ALERTS.read_text())["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
OF_TARGETS = {"job", "instance"}
"""Labels that Prometheus adds."""
OF = 'cluster="c",node_type="broker",node_id="broker-0"'
GROUP = f'{OF},consumer_group="g",topic="orders",is_retry="false",is_system="false"'
SERVED = (
    f'rocketmq_consumer_connections{{{OF},consumer_group="g",language="JAVA"}} 1x60'
)
WELL = {
    "build": f'ropeway_build_info{{{OF},job="mq",instance="a"}} 1x60',
    "leader": f'ropeway_leader{{{OF},node="a"}} 1x60',
    "stands by": f'ropeway_leader{{{OF},node="b"}} 0x60',
    "overdue": f"ropeway_log_overdue_seconds{{{OF}}} 0x60",
    "misfits": f"ropeway_log_misfits_total{{{OF}}} 3x60",
    "audit": f"ropeway_audit_lines_unwritten_total{{{OF}}} 7x60",
    "fast": f'ropeway_request_latency_seconds_bucket{{{OF},le="0.1"}} 0+9x60',
    "slow": f'ropeway_request_latency_seconds_bucket{{{OF},le="5"}} 0+9x60',
    "all": f'ropeway_request_latency_seconds_bucket{{{OF},le="+Inf"}} 0+9x60',
    "forwards": f"ropeway_requests_forward_failures_total{{{OF}}} 4x60",
    "permission": f"rocketmq_broker_permission{{{OF}}} 6x60",
    "open files": 'process_open_fds{job="mq",instance="a"} 90x60',
    "most files": 'process_max_fds{job="mq",instance="a"} 1000x60',
    "store": f'ropeway_derived_store_lag_records{{{OF},store="pop"}} 5x60',
    "half": f"rocketmq_half_messages{{{OF}}} 20x60",
    "lag": f"rocketmq_consumer_lag_messages{{{GROUP}}} 900x60",
    "consumers": SERVED,
    "dead": f'rocketmq_messages_in_total{{{OF},topic="%DLQ%g"}} 5x60',
}
"""An hour of a cluster that is well, a sample a minute."""
ILL = {
    "RopewayAbsent": ("build", None),
    "RopewayBrokerWithoutMaster": ("leader", f'ropeway_leader{{{OF},node="a"}} 0x60'),
    "RopewayLogOverdue": ("overdue", f"ropeway_log_overdue_seconds{{{OF}}} 0+1x60"),
    "RopewayLogMisfit": ("misfits", f"ropeway_log_misfits_total{{{OF}}} 3x50 4x9"),
    "RopewayAuditUnwritten": (
        "audit",
        f"ropeway_audit_lines_unwritten_total{{{OF}}} 7x50 9x9",
    ),
    "RopewaySlow": (
        "fast",
        f'ropeway_request_latency_seconds_bucket{{{OF},le="0.1"}} 0+8x60',
    ),
    "RopewayForwardingFails": (
        "forwards",
        f"ropeway_requests_forward_failures_total{{{OF}}} 0+1x60",
    ),
    "RopewayNotWritable": ("permission", f"rocketmq_broker_permission{{{OF}}} 4x60"),
    "RopewayFilesRunOut": (
        "open files",
        'process_open_fds{job="mq",instance="a"} 900x60',
    ),
    "RopewayDerivedStoreBehind": (
        "store",
        f'ropeway_derived_store_lag_records{{{OF},store="pop"}} 200000x60',
    ),
    "RopewayHalfMessages": ("half", f"rocketmq_half_messages{{{OF}}} 2000x60"),
    "RopewayLagGrows": (
        "lag",
        f"rocketmq_consumer_lag_messages{{{GROUP}}} 20000+100x60",
    ),
    "RopewayNobodyConsumes": ("consumers", None),
    "RopewayDeadLetters": (
        "dead",
        f'rocketmq_messages_in_total{{{OF},topic="%DLQ%g"}} _x57 1x3',
    ),
}
"""What is wrong when an alert fires: another series in place of a well one, or none."""


@functools.cache
def _program() -> Path:
    try:
        go = builds.go_of(GO_NEEDED)
        return builds.go_program(Path(__file__).with_name("rules"), go)
    except (LookupError, DownloadError) as error:
        pytest.skip(f"Prometheus' rules could not be had: {error}")


def firing(*cases: list[str], rules: Path = ALERTS) -> list[list[str]]:
    """The alerts that Prometheus' engine finds in each case of a file that it takes."""
    done = subprocess.run(
        [_program(), rules],
        check=False,
        capture_output=True,
        text=True,
        input="".join(f"{json.dumps(case)}\n" for case in cases),
        timeout=SECONDS,
    )
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_alert_fires_for_what_is_wrong_and_none_without_that() -> None:
    assert ILL.keys() == RULES.keys()
    cases = []
    for place, series in ILL.values():
        ill = {**WELL, place: series}
        cases.append([one for one in ill.values() if one is not None])
    well, *found = firing([*WELL.values()], *cases)
    assert well == []
    assert found == [[name] for name in ILL]


def test_alerts_ask_for_metrics_and_labels_that_there_are() -> None:
    for rule in RULES.values():
        expression = rule["expr"]
        names = set(re.findall(r"\b(?:rocketmq|ropeway|process)_\w+", expression))
        assert names
        labels = set(COMMON) | OF_TARGETS | {"le"}
        for name in names:
            labels |= {*FAMILIES[name.removesuffix("_bucket")].labels}
        asked = set(re.findall(r"(\w+)=~?\"", expression))
        for listed in re.findall(r"(?:by|on) \(([^)]*)\)", expression):
            asked |= set(listed.split(", "))
        shown = re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))
        assert asked | set(shown) <= labels, rule["alert"]


def test_the_page_has_each_alert_with_its_severity_and_time() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(Ropeway\w+)` \| (\w+) \| ([\w-]+) \|", page, re.MULTILINE)
    assert rows == [
        (name, rule["labels"]["severity"], rule.get("for", "-"))
        for name, rule in RULES.items()
    ]


def test_the_chart_makes_a_rule_of_the_file_as_it_is() -> None:
    more = {"name": "more", "rules": [{"record": "mq:up", "expr": "up"}]}
    values: dict[str, Any] = {"enabled": True, "additionalGroups": [more]}
    (made,) = rendered(nested("prometheusRule", values)).of("PrometheusRule").values()
    assert made["apiVersion"] == "monitoring.coreos.com/v1"
    assert made["spec"] == {"groups": [*GROUPS, more]}
