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
        "numInputRows": 10,
        "processedRowsPerSecond": 123.4,
        "durationMs": {"triggerExecution": 81},
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
