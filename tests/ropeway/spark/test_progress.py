"""Progress reports of Spark, as far as they say something of topics."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway.client import MessageQueue
from ropeway.spark.progress import describe, lag, lags, metrics, written

PROGRESS = {
    "name": "copies",
    "id": "0c1f",
    "batchId": 3,
    "numInputRows": 10,
    "sources": [
        {
            "endOffset": {"orders": {"broker-0:0": 5}},
            # A listener has offsets as text.
            "latestOffset": '{"orders": {"broker-0:0": 9, "broker-0:1": 2}}',
        },
        {
            "endOffset": {"bills": {"broker-0:0": 7}},
            "latestOffset": {"bills": {"broker-0:0": 7}},
        },
    ],
    "sink": {"numOutputRows": 8},
}


def test_each_queue_has_its_lag() -> None:
    assert lags(PROGRESS) == {
        MessageQueue("orders", "broker-0", 0): 4,
        MessageQueue("orders", "broker-0", 1): 2,
        MessageQueue("bills", "broker-0", 0): 0,
    }
    assert lag(PROGRESS) == 6


def test_figures_have_the_names_of_sparks_kafka_source() -> None:
    assert metrics(PROGRESS) == {
        "minOffsetsBehindLatest": 0,
        "maxOffsetsBehindLatest": 4,
        "avgOffsetsBehindLatest": 2,
        "lag": 6,
        "rowsWritten": 8,
    }


def test_a_batch_is_a_line_for_people() -> None:
    assert describe(PROGRESS) == (
        "copies batch=3 in=10 out=8 lag=6 bills[broker-0:0=0] "
        "orders[broker-0:0=4 broker-0:1=2]"
    )
    nameless = {**PROGRESS, "name": None, "sources": [], "sink": None}
    assert describe(nameless) == "0c1f batch=3 in=10 out=- lag=0"


@pytest.mark.parametrize(
    "offset", [None, "5", 5, {"logOffset": 3}, '{"orders": {"0": 5}}']
)
def test_other_sources_have_no_lag(offset: Any) -> None:
    other = {"sources": [{"endOffset": offset, "latestOffset": offset}]}
    assert lags(other) == {}
    assert metrics(other)["maxOffsetsBehindLatest"] == 0


def test_a_sink_that_does_not_count_is_not_guessed() -> None:
    assert written({"sink": {"numOutputRows": -1}}) is None
    assert written({"sink": {"numOutputRows": 0}}) == 0
