"""A streaming query goes on when the master of its broker is killed, on Pulsar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ropeway.spark.options import read_options
from ropeway.spark.sink import commit, write
from tests.spark_session import Topics
from tests.system.cluster import SHORT_SESSION_MS, Cluster
from tests.system.test_cluster import running
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.slow, pytest.mark.jvm, pytest.mark.server]

EACH = 40
A_BATCH = 10
WAIT_S = 240


@pytest.mark.timeout(900)
def test_each_row_is_there_once_whoever_leads(
    spark: SparkSession, pulsar: Pulsar, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    made = Cluster(
        tmp_path / "cluster", pulsar, zookeeper.address, session_ms=SHORT_SESSION_MS
    )
    with running(made) as cluster:
        topics = Topics(cluster.name_server)
        source, copy = topics.make(2), topics.make(2)
        options = {"nameServer": cluster.name_server}
        given = read_options({**options, "topic": source})

        def add_batch(number: int) -> None:
            """Write a batch, however long it takes."""
            rows = [{"value": f"{number}-{at}"} for at in range(EACH)]
            table = iter([pa.RecordBatch.from_pylist(rows)])
            commit(given, [write(table, given, "feeder", number)], number)

        add_batch(0)
        query = (
            spark.readStream.format("ropeway")
            .options(**options, topic=source, startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", A_BATCH)
            .load()
            .select("value")
            .writeStream.format("ropeway")
            .options(**options, topic=copy)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:

            def until_copied(count: int) -> None:
                """Wait for so many rows."""
                until(
                    lambda: not query.isActive or len(topics.read(copy)) >= count,
                    WAIT_S,
                )
                assert query.isActive, query.exception()

            # It is in the midst of its batches when the master dies, and again when the
            # next one does.
            for number, node in enumerate(cluster.nodes, start=1):
                until_copied(number * EACH - EACH + 1)
                node.kill()
                add_batch(number)
                cluster.start()
            until_copied(3 * EACH)
        finally:
            query.stop()
        expected = [f"{number}-{at}" for number in range(3) for at in range(EACH)]
        assert sorted(topics.read(copy)) == sorted(expected)
