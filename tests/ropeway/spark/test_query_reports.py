"""The last batches of queries, as their progress reports have them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ropeway.client import MessageQueue
from ropeway.client.running_queries import Batch, Query
from ropeway.spark.query_reports import History, reported

QUEUE = MessageQueue("orders", "broker-0", 0)


def progress(number: int, second: int, rows: int, end: int) -> dict[str, Any]:
    """A report of a batch that took 1.5 s."""
    return {
        "timestamp": f"2026-11-28T10:00:{second:02}.250Z",
        "batchId": number,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 1500},
        "sources": [
            {
                "endOffset": {"orders": {"broker-0:0": end}},
                "latestOffset": {"orders": {"broker-0:0": 20}},
            }
        ],
        "sink": {"numOutputRows": rows},
    }


class Running(NamedTuple):
    """A query."""

    name: str | None
    id: str
    recentProgress: list[dict[str, Any]]  # noqa: N815 - Spark's name

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Its newest report."""
        return self.recentProgress[-1] if self.recentProgress else None


BEGAN_MS = 1_795_860_000_250


def test_each_batch_is_taken_in_once() -> None:
    history = History()
    query = Running("copies", "0c1f", [progress(0, 0, 4, 4)])
    for _ in range(2):
        history.look([query, Running(None, "0c20", [])])
    first = Batch(BEGAN_MS + 1500, 0, 4, 4, 1500, 16)
    assert history.queries == [Query("copies", [first])]
    # An idle query reports the number of the batch that comes next.
    query.recentProgress.append(progress(1, 10, 0, 4))
    history.look([query])
    query.recentProgress.append(progress(1, 12, 6, 10))
    history.look([query])
    ((_, batches),) = ((one.name, one.batches) for one in history.queries)
    assert [(one.number, one.rows_in) for one in batches] == [(0, 4), (1, 0), (1, 6)]
    assert batches[-1].ended_ms == BEGAN_MS + 13_500
    assert history.offsets == {QUEUE: 10}


def test_a_query_that_ended_is_told_of_no_more() -> None:
    history = History()
    history.look([Running("copies", "0c1f", [progress(0, 0, 4, 4)])])
    history.look([])
    assert history.queries == []


def test_without_a_group_there_is_no_consumer() -> None:
    options = {"nameServer": "127.0.0.1:1"}
    # Of the session nothing is asked.
    with reported(None, options):  # type: ignore[arg-type]
        came = True
    assert came
