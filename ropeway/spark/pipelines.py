"""Ready-made pipelines: a topic to files, a table to a topic, topics to one by SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from ropeway.spark.message_encoder import TYPES
from ropeway.spark.query_runner import Running
from ropeway.spark.query_start import start_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PARTITIONS: Mapping[str, tuple[str, ...]] = {"day": ("day",), "hour": ("day", "hour")}
"""How files may be parted by time, and the columns that each adds."""


def archive(
    spark: SparkSession,
    topic: str,
    directory: str,
    *,
    checkpoint: str,
    options: Mapping[str, str],
    file_format: str = "parquet",
    every: str = "day",
    once: bool = False,
) -> Running:
    """Write a topic to files, each message once; files stand in folders by time.

    Args:
        spark: Where it runs.
        topic: What to read; from its first message, unless `options` say otherwise.
        directory: Where files go.
        checkpoint: Where the query keeps how far it is.
        options: Of the data source.
        file_format: `parquet`, or another of Spark's, such as `delta` where that is
            installed.
        every: A folder for each `day`, or each `hour`, by the time of storing, in UTC.
        once: End when all is written that was there at the start.

    Raises:
        ValueError: `every` is another word.
    """
    if every not in PARTITIONS:
        raise ValueError(f"every is {every!r}; allowed: {', '.join(PARTITIONS)}")
    parted = (
        _stream(spark, topic, options)
        .withColumn("day", sql.date_format("timestamp", "yyyy-MM-dd"))
        .withColumn("hour", sql.date_format("timestamp", "HH"))
    )
    if every == "day":
        parted = parted.drop("hour")
    writer = (
        parted.writeStream.format(file_format)
        .queryName(f"archive-{topic}")
        .partitionBy(*PARTITIONS[every])
        .option("path", directory)
    )
    return _started(spark, writer, checkpoint, once=once)


def load(
    table: DataFrame,
    topic: str,
    *,
    options: Mapping[str, str],
    key: str | None = None,
) -> None:
    """Send a table's rows to a topic: all of them, or none.

    Args:
        table: Its rows, as JSON unless all its columns are a message's.
        topic: Where they go.
        options: Of the data source.
        key: The column that becomes a message's key; rows of one key go to one queue.
    """
    (
        as_messages(table, key)
        .write.format("ropeway")
        .mode("append")
        .options(**options)
        .option("topic", topic)
        .save()
    )


def transform(
    spark: SparkSession,
    statement: str,
    topics: Sequence[str],
    into: str,
    *,
    checkpoint: str,
    options: Mapping[str, str],
    once: bool = False,
) -> Running:
    """Send what a SQL statement makes of topics to another one, exactly once.

    Args:
        spark: Where it runs.
        statement: Spark's SQL; each topic is a table of its own name.
        topics: The topics that it names.
        into: Where the rows go; as JSON unless all their columns are a message's.
        checkpoint: Where the query keeps how far it is.
        options: Of the data source.
        once: End when all is done that was there at the start.
    """
    for topic in topics:
        _stream(spark, topic, options).createOrReplaceTempView(f"`{topic}`")
    writer = (
        as_messages(spark.sql(statement), None)
        .writeStream.format("ropeway")
        .queryName(f"sql-{into}")
        .options(**options)
        .option("topic", into)
    )
    return _started(spark, writer, checkpoint, once=once)


def as_messages(table: DataFrame, key: str | None) -> DataFrame:
    """The columns that a message is made of.

    Args:
        table: Where its columns are a message's, `value` among them, they are sent as
            they are; else each row becomes JSON.
        key: The column of keys, by which rows are brought to queues.

    Raises:
        ValueError: The key is no column.
    """
    if key is not None and key not in table.columns:
        raise ValueError(f"key is {key!r}; allowed: {', '.join(table.columns)}")
    columns = {"value": sql.to_json(sql.struct("*"))}
    if {"value"} <= set(table.columns) <= TYPES.keys():
        columns = {name: sql.col(name) for name in table.columns}
    if key is not None:
        columns["key"] = columns["sharding_key"] = sql.col(key).cast("string")
    return table.select(*(column.alias(name) for name, column in columns.items()))


def _stream(spark: SparkSession, topic: str, options: Mapping[str, str]) -> DataFrame:
    return (
        spark.readStream.format("ropeway")
        .options(**{"startingOffsets": "earliest", **options})
        .option("topic", topic)
        .load()
    )


def _started(
    spark: SparkSession, writer: DataStreamWriter, checkpoint: str, *, once: bool
) -> Running:
    if once:
        writer = writer.trigger(availableNow=True)
    return Running(lambda: start_query(spark, writer, checkpoint))
