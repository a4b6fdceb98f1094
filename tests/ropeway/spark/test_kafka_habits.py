"""A stream as those write it who come from Spark's Kafka source and from Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from ropeway.spark.progress import describe
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.spark_session import Topics

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

AMOUNT = "cast(filter(headers, one -> one.key = 'amount')[0].value as string)"


def write_once(batch: DataFrame, number: int, topics: Topics, topic: str) -> None:
    """Send a batch of a stream to a topic, unless it was sent already."""
    (
        batch.write.format("ropeway")
        .mode("append")
        .options(nameServer=topics.name_server, topic=topic)
        .option("txnAppId", f"to-{topic}")
        .option("txnVersion", number)
        .save()
    )


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
            write_once(batch, number, ropeway_topics, copy)

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


def test_sql_reads_and_inserts_through_a_view_and_headers_go_out_as_they_came(
    spark: SparkSession, ropeway_topics: Topics
) -> None:
    topic, copy = ropeway_topics.make(1), ropeway_topics.make(1)
    options = {"nameServer": ropeway_topics.name_server}

    def using(name: str) -> str:
        given = {**options, "topic": name, "includeHeaders": "true"}
        said = ", ".join(f"{key} '{value}'" for key, value in given.items())
        return f"using ropeway options ({said})"

    # Spark's catalog keeps no options of a table for sources in Python.
    with pytest.raises(PySparkException, match="allowed: CREATE TEMPORARY VIEW"):
        spark.sql(f"create table kept {using(topic)}")
    spark.sql(f"create table kept (value binary) {using(topic)}")
    with pytest.raises(PySparkException, match="; a temporary view does"):
        spark.table("kept").collect()
    spark.sql(f"create or replace temporary view orders {using(topic)}")
    spark.sql(
        "create or replace temporary view sent (value binary, key string, headers "
        f"array<struct<key: string, value: binary>>) {using(topic)}"
    )
    spark.sql(
        "insert into sent values (cast('tea' as binary), 'k', "
        "array(named_struct('key', 'amount', 'value', cast('5' as binary))))"
    )
    read = spark.sql(
        f"select cast(value as string) value, key, {AMOUNT} amount from orders"
    )
    assert [tuple(row) for row in read.collect()] == [("tea", "k", "5")]
    # As a copy from topic to topic through Spark's Kafka source and sink.
    (
        spark.table("orders")
        .select("key", "value", "headers")
        .write.format("ropeway")
        .mode("append")
        .options(**options, topic=copy)
        .save()
    )
    copied = spark.read.format("ropeway").options(**options, topic=copy)
    (row,) = copied.option("includeProperties", "true").load().collect()
    assert (row.value, row.key, row.properties["amount"]) == (b"tea", "k", "5")


def test_counts_that_change_go_out_through_foreach_batch(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> None:
    source, sink = ropeway_topics.make(1), ropeway_topics.make(1)
    options = {"nameServer": ropeway_topics.name_server}
    read = spark.readStream.format("ropeway").options(**options, topic=source)
    counts = (
        read.option("startingOffsets", "earliest")
        .load()
        .groupBy("value")
        .count()
        .selectExpr("concat(cast(value as string), ' ', count) value")
    )

    def write(batch: DataFrame, number: int) -> None:
        write_once(batch, number, ropeway_topics, sink)

    def run() -> None:
        query = (
            counts.writeStream.outputMode("update")
            .foreachBatch(write)
            .option("checkpointLocation", str(tmp_path / "counts"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    refused = counts.writeStream.outputMode("update").format("ropeway")
    refused = refused.options(**options, topic=sink, checkpointLocation=str(tmp_path))
    query = refused.start()
    with pytest.raises(PySparkException, match="does not support Update mode"):
        query.awaitTermination()
    ropeway_topics.send(source, ["tea", "tea", "hat"])
    run()
    ropeway_topics.send(source, ["tea"])
    run()
    assert sorted(ropeway_topics.read(sink)) == ["hat 1", "tea 2", "tea 3"]
