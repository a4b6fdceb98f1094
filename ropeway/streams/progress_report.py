"""What a running job says of itself: a line for each batch of each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.spark.progress import lag
from ropeway.streams.custom_windows import LATE_COUNT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql.streaming.query import StreamingQuery


def line(progress: Mapping[str, Any]) -> str:
    """One batch in words.

    Args:
        progress: As Spark reports it.
    """
    state = sum(one["numRowsTotal"] for one in progress["stateOperators"])
    watermark = progress.get("eventTime", {}).get("watermark", "-")
    rate = progress.get("processedRowsPerSecond") or 0.0
    return (
        f"{progress['name']} batch={progress['batchId']} "
        f"rows={progress['numInputRows']} rows/s={rate:.0f} lag={lag(progress)} "
        f"ms={progress['durationMs'].get('triggerExecution', 0)} "
        f"watermark={watermark} state={state} late={late(progress)}"
    )


def late(progress: Mapping[str, Any]) -> int:
    """How many records came too late for their windows."""
    dropped: int = sum(
        one["numRowsDroppedByWatermark"] for one in progress["stateOperators"]
    )
    # What Spark's own windows do not drop, ours count themselves.
    told = progress.get("observedMetrics", {}).values()
    counted: int = sum(one[LATE_COUNT] for one in told)
    return dropped + counted


class Watch:
    """Shows a line for each batch of queries.

    Args:
        show: Takes a line.
    """

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._seen: dict[str, str] = {}

    def look(self, queries: Iterable[StreamingQuery]) -> None:
        """Show what is new."""
        for query in queries:
            name = str(query.id)
            for progress in query.recentProgress:
                if progress["timestamp"] <= self._seen.get(name, ""):
                    continue
                self._seen[name] = progress["timestamp"]
                # An idle query reports the number of its next batch, and adds none.
                if "addBatch" in progress["durationMs"]:
                    self._show(line(progress))
