"""Prometheus' text format, read by Prometheus' own parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ropeway.gateway.http.metrics.text import Page, parse

COMMON = {"cluster": "c", "node_type": "broker", "node_id": "b"}


def samples(page: Page) -> dict:
    return {
        (one.name, *sorted(one.labels.items())): one.value
        for family in text_string_to_metric_families(page.text().decode())
        for one in family.samples
    }


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_label_comes_back_as_it_was(value):
    page = Page({"cluster": value})
    page.add("ropeway_leader", 1, node=value)
    (family,) = text_string_to_metric_families(page.text().decode())
    assert family.samples[0].labels == {"cluster": value, "node": value}


def test_a_histogram_counts_up_to_each_bound():
    page = Page(COMMON)
    name = "ropeway_request_latency_seconds"
    page.add_histogram(name, (0.1, 1.0), [2, 3, 4], 5.5, code="10", request="SEND")
    common = tuple(sorted({**COMMON, "code": "10", "request": "SEND"}.items()))
    found = {
        (key[0], dict(key[1:]).get("le")): value
        for key, value in samples(page).items()
        if set(common) <= set(key[1:])
    }
    assert found == {
        (f"{name}_bucket", "0.1"): 2,
        (f"{name}_bucket", "1.0"): 5,
        (f"{name}_bucket", "+Inf"): 9,
        (f"{name}_sum", None): 5.5,
        (f"{name}_count", None): 9,
    }


def test_only_what_the_catalog_has_can_be_written():
    with pytest.raises(KeyError):
        Page(COMMON).add("ropeway_nonsense", 1)


def test_metrics_of_the_process_have_the_labels_that_all_have_of_theirs():
    page = Page(COMMON)
    page.add("process_open_fds", 7)
    assert samples(page) == {("process_open_fds",): 7}


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.text()))
def test_a_sample_is_read_as_it_was_written(labels):
    page = Page({"cluster": "a b{}"})
    page.add("ropeway_brokers", 3, **labels)
    page.add("process_cpu_seconds_total", 0.25)
    lines = {family.name: lines for family, lines in page.families()}
    (line,) = lines["ropeway_brokers"]
    assert parse(line) == ("ropeway_brokers", {"cluster": "a b{}", **labels}, 3)
    (line,) = lines["process_cpu_seconds_total"]
    assert parse(line) == ("process_cpu_seconds_total", {}, 0.25)
