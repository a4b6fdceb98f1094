"""Ready-made pipelines: to files, from tables, and from topic to topic by SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ropeway.spark import pipelines

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_session import Topics

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ROWS = 50


def test_a_topic_becomes_files_by_day_each_message_once(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> None:
    topic = ropeway_topics.make(2)
    options = {"nameServer": ropeway_topics.name_server}
    for part in range(2):
        bodies = [f"{part}-{at}" for at in range(ROWS)]
        ropeway_topics.send(topic, bodies, queue=part)
        running = pipelines.archive(
            spark,
            topic,
            str(tmp_path / "lake"),
            checkpoint=str(tmp_path / "checkpoint"),
            options=options,
            every="hour",
            once=True,
        )
        assert running.wait()
    table = spark.read.parquet(str(tmp_path / "lake"))
    assert {"value", "offset", "day", "hour"} <= set(table.columns)
    values = [bytes(row.value).decode() for row in table.select("value").collect()]
    assert sorted(values) == sorted(f"{p}-{at}" for p in range(2) for at in range(ROWS))
    with pytest.raises(ValueError, match="every is 'week'; allowed: day, hour"):
        pipelines.archive(
            spark, topic, "x", checkpoint="y", options=options, every="week"
        )


def test_a_table_becomes_messages_by_key(
    spark: SparkSession, ropeway_topics: Topics
) -> None:
    topic = ropeway_topics.make(4)
    options = {"nameServer": ropeway_topics.name_server}
    table = spark.range(ROWS).selectExpr("id", "id % 3 as item")
    with pytest.raises(ValueError, match="key is 'name'; allowed: id, item"):
        pipelines.load(table, topic, options=options, key="name")
    pipelines.load(table, topic, options=options, key="item")
    sent = [json.loads(one) for one in ropeway_topics.read(topic)]
    assert sorted(one["id"] for one in sent) == list(range(ROWS))
    read = spark.read.format("ropeway").options(**options, topic=topic).load()
    assert read.select("key", "queue").distinct().count() == 3


def test_sql_makes_a_topic_of_topics(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> None:
    source, sink = ropeway_topics.make(), ropeway_topics.make()
    ropeway_topics.send(source, ['{"price": 5}', '{"price": 50}', '{"price": 500}'])
    running = pipelines.transform(
        spark,
        "select get_json_object(cast(value as string), '$.price') price "
        f"from `{source}` where length(value) > 12",
        [source],
        sink,
        checkpoint=str(tmp_path / "checkpoint"),
        options={"nameServer": ropeway_topics.name_server},
        once=True,
    )
    assert running.wait()
    assert sorted(ropeway_topics.read(sink)) == ['{"price":"50"}', '{"price":"500"}']


def test_rows_are_messages_where_all_their_columns_are(spark: SparkSession) -> None:
    def columns(*expressions: str) -> list[str]:
        table = spark.range(1).selectExpr(*expressions)
        return pipelines.as_messages(table, None).columns

    assert columns("'a' value", "'t' tag") == ["value", "tag"]
    measured = spark.range(1).selectExpr("'a' sensor", "20.5D value")
    (row,) = pipelines.as_messages(measured, "sensor").collect()
    assert json.loads(row.value) == {"sensor": "a", "value": 20.5}
    assert row.key == row.sharding_key == "a"
