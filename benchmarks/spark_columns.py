"""What each column of a topic costs a read in Spark: a part of `benchmarks.spark`.

All are read in each round, one after the other, in an order that each round turns. A
ratio is that of two reads of one round.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks import table
from ropeway.client import Producer
from ropeway.gateway.wire.batch import BatchEntry

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from tests.spark_session import Topics

QUEUES = 4
SEND_AT_ONCE = 500
BODY = b"x" * 100
PROPERTIES = {"KEYS": "order-17", "TAGS": "paid", "currency": "EUR", "amount": "12.50"}

DEFAULT = "read, default columns"
WITH: dict[str, dict[str, str]] = {
    DEFAULT: {},
    "read, with properties": {"includeProperties": "true"},
    "read, with headers": {"includeHeaders": "true"},
}
COUNTED: dict[str, str | None] = {
    "count(), default columns": None,
    "count(), schema 'value binary'": "value binary",
    "count(), schema 'offset bigint'": "offset bigint",
}


def measure(spark: SparkSession, topics: Topics, given: Namespace) -> str:
    """Rows a second of the cases that have one of some words in their names."""
    count = given.messages
    words: list[str] = given.cases
    topic = topics.make(QUEUES)
    reads = {**dict.fromkeys(WITH, _into_nothing), **dict.fromkeys(COUNTED, _count)}
    wanted = [
        name for name in reads if not words or any(word in name for word in words)
    ]
    if not wanted:
        return ""
    asyncio.run(_fill(topics.name_server, topic, count))

    def frame(name: str) -> DataFrame:
        reader = spark.read.format("ropeway").options(
            nameServer=topics.name_server, topic=topic, **WITH.get(name, {})
        )
        schema = COUNTED.get(name)
        return (reader if schema is None else reader.schema(schema)).load()

    found: dict[str, list[float]] = {name: [] for name in wanted}
    for number in range(given.warm_ups + given.rounds):
        turn = number % len(wanted)
        for name in wanted[turn:] + wanted[:turn]:
            rate = count / _seconds(reads[name], frame(name))
            if number >= given.warm_ups:
                found[name].append(rate)
    default = found.get(DEFAULT, [])
    return table.table(
        ["columns, rows/s", "rows/s", "of default columns"],
        [
            [
                name,
                _spread(rates),
                table.spread([a / b for a, b in zip(rates, default, strict=False)]),
            ]
            for name, rates in found.items()
        ],
    )


def _spread(rates: list[float]) -> str:
    middle = statistics.median(rates)
    return f"{middle:,.0f} [{min(rates):,.0f}-{max(rates):,.0f}]"


def _seconds(read: Callable[[DataFrame], None], frame: DataFrame) -> float:
    began = time.perf_counter()
    read(frame)
    return time.perf_counter() - began


def _into_nothing(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _count(frame: DataFrame) -> None:
    frame.count()


async def _fill(name_server: str, topic: str, count: int) -> None:
    more = "".join(f"{name}\x01{value}\x02" for name, value in PROPERTIES.items())
    entries = [
        BatchEntry(0, BODY, f"UNIQ_KEY\x01{at:032X}\x02{more}")
        for at in range(SEND_AT_ONCE)
    ]
    async with Producer(name_server, "benchmark") as producer:
        queues = await producer.queues(topic)
        for at in range(-(-count // SEND_AT_ONCE)):
            some = entries[: count - at * SEND_AT_ONCE]
            await producer.send_entries(queues[at % QUEUES], some)
