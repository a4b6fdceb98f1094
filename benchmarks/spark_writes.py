"""What Spark writes to topics in a second: a part of `benchmarks.spark`.

Rows that Spark makes itself, from Python by Arrow batches, go to a new topic with each
guarantee, and beside it, in the same round, to Spark's sink that drops them.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks import counters, table
from ropeway.spark.options import AT_LEAST_ONCE, EXACTLY_ONCE

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameWriter

    from tests.spark_session import Topics

QUEUES = 4
TASKS = 2
BODY = "x" * 52
"""60 B with the row's number."""
PARTS = ("gateway", "Python", "JVM")
CPU = f"CPU of {' + '.join(PARTS)}, microseconds a row"
CASES = {
    f"write, {EXACTLY_ONCE}": (EXACTLY_ONCE, ">= 80,000"),
    f"write, {AT_LEAST_ONCE}": (AT_LEAST_ONCE, ">= 100,000"),
}


def measure(
    spark: SparkSession, topics: Topics, gateway_pid: int, given: Namespace
) -> str:
    """Rows a second of the cases that have one of some words in their names.

    Beside them is what a row took of the CPU, of the gateway, Python and the JVM.
    """
    words: list[str] = given.cases
    rows = []
    for name, (guarantee, aim) in CASES.items():
        if words and not any(word in name for word in words):
            continue
        found, spent = [], []
        for number in range(given.warm_ups + given.rounds):
            ours = (
                _rows(spark, given.messages)
                .write.format("ropeway")
                .options(
                    nameServer=topics.name_server,
                    topic=topics.make(QUEUES),
                    guarantee=guarantee,
                )
            )
            theirs = _rows(spark, given.messages).write.format("noop")
            before = counters.cpu_by_part_s(gateway_pid)
            seconds = _seconds(ours)
            after = counters.cpu_by_part_s(gateway_pid)
            if number >= given.warm_ups:
                found.append(
                    [given.messages / one for one in (seconds, _seconds(theirs))]
                )
                spent.append([after[part] - before[part] for part in PARTS])
        both = zip(*found, strict=True)
        each = [
            f"{1e6 * statistics.median(one) / given.messages:.1f}"
            for one in zip(*spent, strict=True)
        ]
        rows.append([name, *map(_spread, both), " + ".join(each), aim])
    titles = ["writes, rows/s", "Ropeway", "Spark alone", CPU, "aim"]
    return table.table(titles, rows)


def _rows(spark: SparkSession, count: int) -> DataFrame:
    made = spark.range(0, count, numPartitions=TASKS)
    made = made.mapInArrow(lambda batches: batches, "id bigint")
    return made.selectExpr(f"concat(lpad(id, 8, '0'), '{BODY}') value")


def _seconds(writer: DataFrameWriter) -> float:
    began = time.perf_counter()
    writer.mode("append").save()
    return time.perf_counter() - began


def _spread(rates: tuple[float, ...]) -> str:
    return f"{statistics.median(rates):,.0f} [{min(rates):,.0f}-{max(rates):,.0f}]"
