"""Names of metrics, which the docs and the dashboard follow."""

import json
import re
from pathlib import Path

import pytest

from ropeway.gateway.http.metrics.catalog import COMMON, FAMILIES

ROOT = Path(__file__).parents[4]
DOCS = ROOT / "docs" / "metrics.md"
DASHBOARD = ROOT / "deploy/helm/ropeway/dashboards/ropeway.json"
_NAME = re.compile(r"\b(?:ropeway|rocketmq|process)_[a-z_]+\b")
_SUFFIX = re.compile(r"_(?:bucket|sum|count)$")


def documented() -> dict[str, list[str]]:
    """Each row of the tables of metrics: name, kind, labels, meaning."""
    rows = re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", DOCS.read_text(), re.MULTILINE)
    return {name: rest.split(" | ") for name, rest in rows}


def test_the_docs_have_every_metric_as_it_is():
    assert documented() == {
        one.name: [
            one.kind,
            ", ".join(f"`{label}`" for label in one.labels) or "-",
            one.meaning,
        ]
        for one in FAMILIES.values()
    }


def test_the_docs_say_which_labels_all_have():
    assert all(f"`{label}`" in DOCS.read_text() for label in COMMON)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_name_ends_in_its_unit_and_counters_in_total(family):
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert family.meaning.endswith((".", ";"))


def queries() -> list[tuple[str, str]]:
    """What each panel of the dashboard asks for."""
    dashboard = json.loads(DASHBOARD.read_text())
    found = [
        (panel["title"], target["expr"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]
    found += [
        (one["name"], one["query"]["query"])
        for one in dashboard["templating"]["list"]
        if one["type"] == "query"
    ]
    return found


@pytest.mark.parametrize(("title", "query"), queries())
def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(title, query):
    names = {_SUFFIX.sub("", name) for name in _NAME.findall(query)}
    assert names
    assert names <= FAMILIES.keys()
    labels = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", query))
    for group in re.findall(r"\bby \(([^)]*)\)", query):
        labels |= {one.strip() for one in group.split(",")}
    known = {*COMMON, "le", "instance"}
    for name in names:
        known |= set(FAMILIES[name].labels)
    assert labels <= known


def test_panels_do_not_lie_on_each_other():
    taken = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {
            (at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
