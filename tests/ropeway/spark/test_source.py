"""The data source as Spark uses it: tables and streams, on Ropeway and RocketMQ."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from ropeway.spark.progress import lag, written
from tests.ropeway.client.conftest import KINDS, started
from tests.spark_session import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ROWS = 200


@pytest.fixture(scope="module", params=KINDS)
def topics(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Topics]:
    """Topics of a server of each kind."""
    server = started(request.param, tmp_path_factory.mktemp("source"))
    yield Topics(server.name_server)
    server.kill()


def guarantee(request: pytest.FixtureRequest) -> str:
    """The best that the server gives."""
    kind = request.node.callspec.params["topics"]
    return "exactly-once" if kind == "ropeway" else "at-least-once"


def test_what_spark_unpacks_goes_with_the_run(spark: SparkSession) -> None:
    assert spark._jvm is not None
    folder = spark._jvm.java.lang.System.getProperty("java.io.tmpdir")
    assert folder == tempfile.gettempdir()


def test_a_table_is_written_read_filtered_and_streamed(
    spark: SparkSession, topics: Topics, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    topic, copy = topics.make(2), topics.make(2)
    options = {"nameServer": topics.name_server, "guarantee": guarantee(request)}

    def table(name: str, **more: str) -> DataFrame:
        given = {**options, "topic": name, **more}
        return spark.read.format("ropeway").options(**given).load()

    (
        spark.range(ROWS)
        .selectExpr(
            "concat('row-', id) value",
            "if(id % 2 = 0, 'even', 'odd') tag",
            "cast(id as string) key",
            "map('id', cast(id as string)) properties",
        )
        .write.format("ropeway")
        .mode("append")
        .options(**options, topic=topic)
        .save()
    )
    read = table(topic, includeProperties="true")
    assert read.count() == ROWS
    assert read.where("tag = 'even'").count() == ROWS // 2
    (row,) = read.where("key = '17'").collect()
    assert (row.value, row.tag, row.topic) == (b"row-17", "odd", topic)
    assert row.properties["id"] == "17"

    streamed = (
        spark.readStream.format("ropeway")
        .options(**options, topic=topic, group="streamers")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS // 2)
        .load()
    )
    query = (
        streamed.select("value", "key")
        .writeStream.format("ropeway")
        .options(**options, topic=copy)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counts = [one["numInputRows"] for one in query.recentProgress]
    assert sum(counts) == ROWS
    assert max(counts) <= ROWS // 2
    progress = query.recentProgress
    assert sum(written(one) or 0 for one in progress) == ROWS
    assert [lag(progress[0]), lag(progress[-1])] == [ROWS - counts[0], 0]
    assert sorted(topics.read(copy)) == sorted(f"row-{at}" for at in range(ROWS))
    # The group has come as far as the stream's last batch but the one in hand.
    committed = table(topic, startingOffsets="committed", group="streamers")
    assert committed.count() <= ROWS // 2


def test_rocketmq_says_that_it_has_no_batches(
    spark: SparkSession, topics: Topics, request: pytest.FixtureRequest
) -> None:
    topic = topics.make(1)
    writer = (
        spark.range(1)
        .selectExpr("'a' value")
        .write.format("ropeway")
        .mode("append")
        .options(nameServer=topics.name_server, topic=topic)
    )
    if guarantee(request) == "exactly-once":
        writer.save()
        assert topics.read(topic) == ["a"]
    else:
        with pytest.raises(Exception, match="allowed there: guarantee at-least-once"):
            writer.save()
