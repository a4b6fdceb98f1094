"""Progress in lines."""

from __future__ import annotations

from types import SimpleNamespace

from pyspark.sql import Row

from ropeway.streams.progress_report import Watch, late, line


def progress(batch: int = 3) -> dict:
    """As Spark reports it, as far as it is looked at."""
    return {
        "name": "job-ROPEWAY-SINK-1",
        "batchId": batch,
        "timestamp": f"2026-01-01T00:00:0{batch}.000Z",
        "numInputRows": 10,
        "processedRowsPerSecond": 123.4,
        "durationMs": {"addBatch": 70, "triggerExecution": 81},
        "eventTime": {"watermark": "2026-01-01T00:00:05.000Z"},
        "stateOperators": [{"numRowsTotal": 7, "numRowsDroppedByWatermark": 1}],
        "sources": [
            {
                "endOffset": {"orders": {"broker-0:0": 5}},
                "latestOffset": '{"orders": {"broker-0:0": 9, "broker-0:1": 2}}',
            }
        ],
    }


def test_a_batch_is_a_line() -> None:
    assert line(progress()) == (
        "job-ROPEWAY-SINK-1 batch=3 rows=10 rows/s=123 lag=6 ms=81 "
        "watermark=2026-01-01T00:00:05.000Z state=7 late=1"
    )


def test_late_records_are_those_that_spark_dropped_and_those_that_we_counted() -> None:
    assert late({**progress(), "observedMetrics": {"step": Row(late=4)}}) == 5


def test_each_batch_is_shown_once() -> None:
    query = SimpleNamespace(id="q", recentProgress=[progress(0)])
    shown: list[str] = []
    watch = Watch(shown.append)
    watch.look([query])
    query.recentProgress.append(progress(1))
    watch.look([query])
    assert [one.split()[1] for one in shown] == ["batch=0", "batch=1"]


def test_a_batch_behind_an_idle_pause_is_shown_and_the_pause_is_not() -> None:
    idle = {**progress(1), "durationMs": {"latestOffset": 3, "triggerExecution": 4}}
    after = {**progress(1), "timestamp": "2026-01-01T00:00:11.000Z"}
    query = SimpleNamespace(id="q", recentProgress=[progress(0), idle])
    shown: list[str] = []
    watch = Watch(shown.append)
    watch.look([query])
    query.recentProgress.append(after)
    watch.look([query])
    assert shown == [line(progress(0)), line(after)]
