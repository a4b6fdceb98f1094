"""Metrics of the process, beside those that Prometheus' own client reads."""

import pytest
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from ropeway.gateway.http.metrics import of_process
from ropeway.gateway.http.metrics.text import Page


def test_they_are_what_prometheus_own_client_says():
    page = Page({})
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    of_process.write(page)
    theirs = {
        sample.name: sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    ours = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page.text().decode())
        for sample in family.samples
    }
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, rel=0.25, abs=3), name


def test_what_a_closed_proc_does_not_tell_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(of_process, "_SELF", tmp_path / "closed")
    page = Page({})
    of_process.write(page)
    text = page.text().decode()
    assert "process_cpu_seconds_total" in text
    assert "process_open_fds" not in text
