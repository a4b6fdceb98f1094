"""A stream as those write it who come from Spark's Kafka source and from Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.spark.progress import describe
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.spark_session import Topics

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

AMOUNT = "cast(filter(headers, one -> one.key = 'amount')[0].value as string)"


def test_topics_of_a_pattern_are_copied_once_batch_by_batch(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> None:
    prefix, copy = ropeway_topics.make(1), ropeway_topics.make(1)
    options = {"nameServer": ropeway_topics.name_server}

    def send(name: str, amount: str) -> None:
        topic = f"{prefix}-{name}"
        ropeway_topics.extend(topic, 1)
        ropeway_topics.send(topic, [name], properties={"amount": amount})

    def write(batch: DataFrame, number: int) -> None:
        # Twice, as after a crash.
        for _ in range(2):
            (
                batch.write.format("ropeway")
                .mode("append")
                .options(**options, topic=copy)
                .option("txnAppId", f"to-{copy}")
                .option("txnVersion", number)
                .save()
            )

    send("a", "5")
    query = (
        spark.readStream.format("ropeway")
        .options(**options, subscribePattern=f"{prefix}-.", includeHeaders="true")
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr(f"concat(cast(value as string), '=', {AMOUNT}) value")
        .writeStream.queryName(f"copies of {prefix}")
        .foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )

    def until_copied(*expected: str) -> None:
        until(
            lambda: not query.isActive or ropeway_topics.read(copy) == [*expected],
        )
        assert query.isActive, query.exception()

    try:
        until_copied("a=5")
        send("b", "7")
        until_copied("a=5", "b=7")
        until(lambda: f"{prefix}-b[" in describe(query.lastProgress))
        said = describe(query.lastProgress)
    finally:
        query.stop()
    assert said.startswith(f"copies of {prefix} batch=")
    assert said.endswith(
        f" out=- lag=0 {prefix}-a[broker-0:0=0] {prefix}-b[broker-0:0=0]"
    )
