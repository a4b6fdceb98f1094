"""Windows on Spark: the columns that it aggregates, and records of what comes out.

Named aggregates are Spark's own, over numbers; those of users are folded over the
values of a window when it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sql

from ropeway.streams.accumulator import Folding
from ropeway.streams.failures import Failures
from ropeway.streams.records import load, to_records
from ropeway.streams.windows import Windowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column

    from ropeway.streams.aggregates import Accumulator
    from ropeway.streams.records import Dead, Incoming, Record, Step

_EXACT = 1 << 53
"""Whole numbers up to this are exact as Spark's doubles."""

SELECTED = "key binary, value binary, ts timestamp, number double, whole boolean"
"""Records with what was selected: `number` is null where it was None."""

RESULT = ("number", "whole", "counted", "items")
"""What a window comes to; which of them counts depends on the aggregate."""

_NUMBERS: dict[str, Callable[[str], Column]] = {
    "min": sql.min,
    "max": sql.max,
    "sum": sql.sum,
    "avg": sql.avg,
}


def selecting(aggregate: str, select: Callable[[Any], Any] | None) -> Step:
    """Takes of each value what is aggregated: what is folded later, number, kind.

    Args:
        aggregate: Its kind.
        select: What of a value counts; None for all of it.
    """

    def step(key: Any, value: Any, time_ms: int) -> list[Record]:
        number = _selected(aggregate, value if select is None else select(value))
        # Only what is folded later is needed as it was.
        item = value if aggregate == "aggregate" else None
        return [(key, (item, number, isinstance(number, int)), time_ms)]

    return step


def _selected(aggregate: str, chosen: Any) -> float | None:
    if aggregate not in _NUMBERS:
        return None if chosen is None else 1
    if chosen is None or isinstance(chosen, float):
        return chosen
    if not isinstance(chosen, int) or abs(chosen) > _EXACT:
        raise ValueError(
            f"{chosen!r:.200} is selected; allowed: numbers, whole ones up to {_EXACT}"
        )
    return chosen


def to_selected(found: list[Record]) -> pa.RecordBatch:
    """How records leave for an aggregation."""
    items = [(key, item, time_ms) for key, (item, _, _), time_ms in found]
    numbers = [None if one is None else float(one) for _, (_, one, _), _ in found]
    key, value, ts = to_records(items).columns
    return pa.RecordBatch.from_arrays(
        [
            *(key, value, ts, pa.array(numbers, pa.float64())),
            pa.array([is_whole for _, (_, _, is_whole), _ in found], pa.bool_()),
        ],
        names=["key", "value", "ts", "number", "whole"],
    )


def aggregates(aggregate: str) -> list[Column]:
    """What Spark computes for a window."""
    number = _NUMBERS.get(aggregate, sql.max)("number")
    items = sql.collect_list("value") if aggregate == "aggregate" else sql.array()
    return [
        number.alias("number"),
        sql.bool_and("whole").alias("whole"),
        sql.count("number").alias("counted"),
        items.cast("array<binary>").alias("items"),
    ]


def from_windows(
    name: str,
    aggregate: str,
    make: Callable[[], Accumulator] | None = None,
    dead: Dead | None = None,
) -> Incoming:
    """Reads what windows came to: keys are `Windowed`, times their last ms.

    Args:
        name: The step's name.
        aggregate: Its kind.
        make: Makes an accumulator, for values that are folded.
        dead: Takes values that it fails at; without, the step fails.
    """

    def incoming(batch: pa.RecordBatch) -> Iterator[Record]:
        failures = Failures(name, dead)
        for row in batch.to_pylist():
            window = Windowed(load(row["key"]), row["begin_ms"], row["end_ms"])
            time_ms = row["end_ms"] - 1
            if make is None:
                yield window, _result(aggregate, row), time_ms
                continue
            folding = Folding(make)
            for item in map(load, row["items"]):
                try:
                    folding.add(item)
                except Exception as error:  # noqa: BLE001 - users' code
                    failures.put((window, item, time_ms), error)
            try:
                result = folding.result()
            except Exception as error:  # noqa: BLE001 - users' code
                failures.put((window, folding.state, time_ms), error)
            else:
                yield window, result, time_ms
        failures.send()

    return incoming


def _result(aggregate: str, row: dict[str, Any]) -> Any:
    if aggregate == "count":
        return row["counted"]
    if aggregate != "avg" and row["whole"] and row["number"] is not None:
        return int(row["number"])
    return row["number"]


def from_pairs(batch: pa.RecordBatch) -> Iterator[Record]:
    """Reads what a join brought together; the right value may be None."""
    for row in batch.to_pylist():
        other = None if row["other"] is None else load(row["other"])
        yield load(row["key"]), (load(row["value"]), other), row["end_ms"] - 1
