"""What Spark's progress reports say of topics: how far behind a query is, and where.

Spark has no place for metrics of sources in Python, nor for a name of theirs. What its
Kafka source puts there is made here, of the offsets that every report has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ropeway.spark.offset_options import load, queue_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.client import MessageQueue

_NOT_TOLD = -1
"""Source: SinkProgress.numOutputRows of a sink that does not count, Spark 4.3.0."""


def lags(progress: Mapping[str, Any]) -> dict[MessageQueue, int]:
    """Count the messages of each queue that a batch left for later ones.

    Args:
        progress: As `query.lastProgress` or a listener has it. Other sources than
            topics are passed over.
    """
    found: dict[MessageQueue, int] = {}
    for source in progress["sources"]:
        done = _offsets(source.get("endOffset"))
        for queue, end in _offsets(source.get("latestOffset")).items():
            found[queue] = max(0, end - done.get(queue, 0))
    return found


def ends(progress: Mapping[str, Any]) -> dict[MessageQueue, int]:
    """Return where a batch ends in each queue."""
    found: dict[MessageQueue, int] = {}
    for source in progress["sources"]:
        found |= _offsets(source.get("endOffset"))
    return found


def lag(progress: Mapping[str, Any]) -> int:
    """Count the messages of all queues that a batch left for later ones."""
    return sum(lags(progress).values())


def written(progress: Mapping[str, Any]) -> int | None:
    """Return how many rows a batch wrote; None where its sink does not tell."""
    rows: int = (progress.get("sink") or {}).get("numOutputRows", _NOT_TOLD)
    return None if rows == _NOT_TOLD else rows


def metrics(progress: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of a batch, by the names that Spark's Kafka source has.

    Source: KafkaMicroBatchStream.metrics, Spark 4.0; `lag` and `rowsWritten` are ours.
    """
    found = lags(progress).values()
    told: dict[str, float] = {
        "minOffsetsBehindLatest": min(found, default=0),
        "maxOffsetsBehindLatest": max(found, default=0),
        "avgOffsetsBehindLatest": sum(found) / len(found) if found else 0,
        "lag": sum(found),
    }
    rows = written(progress)
    return told if rows is None else {**told, "rowsWritten": rows}


def describe(progress: Mapping[str, Any]) -> str:
    """Put a batch into a line: the query, its topics, and what is left in each queue.

    As `copies batch=3 in=10 out=10 lag=6 orders[broker-0:0=4 broker-0:1=2]`.
    """
    name = progress.get("name") or progress["id"]
    rows = written(progress)
    out = "-" if rows is None else rows
    of_topic: dict[str, list[str]] = {}
    for queue, count in sorted(lags(progress).items()):
        of_topic.setdefault(queue.topic, []).append(f"{queue_name(queue)}={count}")
    topics = " ".join(f"{one}[{' '.join(told)}]" for one, told in of_topic.items())
    return (
        f"{name} batch={progress['batchId']} in={progress['numInputRows']} out={out} "
        f"lag={lag(progress)} {topics}"
    ).rstrip()


def _offsets(told: Any) -> dict[MessageQueue, int]:
    """Offsets of queues; none where they are another source's."""
    if isinstance(told, str):
        told = json.loads(told)
    if not isinstance(told, dict) or not all(
        isinstance(queues, dict) for queues in told.values()
    ):
        return {}
    try:
        return load(told)
    except ValueError:
        return {}
