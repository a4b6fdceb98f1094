"""A driver on Spark 4.2 that takes topics to Delta and back; a test starts it twice.

The first time it is killed with its JVM when Delta has committed a batch and the
checkpoint has not. The second time it goes on, with one column more, and tells what the
tables have.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from pyspark.sql import functions as sql

from ropeway.gateway.cli.main import main as ropeway
from ropeway.spark.lakes import lake_settings
from tests.spark_session import begin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FIRST = "item string, price long"
EVOLVED = f"{FIRST}, colour string"
_FIELDS = '{"name": "item", "type": "string"}, {"name": "price", "type": "long"}'
_WRITTEN = f'{{"type": "record", "name": "Order", "fields": [{_FIELDS}]}}'
_NEWER = _WRITTEN.replace(
    "]}", ', {"name": "colour", "type": "string", "default": "none"}]}'
)
_TEA = bytes([2 * 3, *b"tea", 2 * 3]).hex()
"""Tea for 3, as Avro has it: whole numbers are doubled."""


class Job:
    """What it does, in order."""

    def __init__(self, spark: SparkSession, name_server: str, folder: Path) -> None:
        self._spark = spark
        self._name_server = name_server
        self._folder = folder

    def copy(self, topic: str, *, is_killed: bool) -> None:
        """Write JSON to a Delta table through foreachBatch, each batch once."""
        schema = FIRST if is_killed else EVOLVED

        def write(batch: DataFrame, number: int) -> None:
            text = sql.col("value").cast("string")
            (
                batch.select(sql.from_json(text, schema).alias("one"))
                .select("one.*")
                .write.format("delta")
                .mode("append")
                .option("txnAppId", f"copies-of-{topic}")
                .option("txnVersion", number)
                .option("mergeSchema", "true")
                .save(self.path("copied"))
            )
            if is_killed:
                gateway: Any = self._spark.sparkContext._gateway
                gateway.proc.kill()
                os.kill(os.getpid(), signal.SIGKILL)

        read = self._spark.readStream.format("ropeway").options(
            nameServer=self._name_server, topic=topic, startingOffsets="earliest"
        )
        self._finish(read.load().writeStream.foreachBatch(write), "copied")

    def back(self, topic: str) -> None:
        """Send the table's rows to a topic, exactly once."""
        read = self._spark.readStream.format("delta").load(self.path("copied"))
        rows = read.select(sql.to_json(sql.struct("*")).alias("value"))
        writer = rows.writeStream.format("ropeway").options(
            nameServer=self._name_server, topic=topic
        )
        self._finish(writer, "back")

    def archive(self, topic: str) -> str:
        """What the command says."""
        words = [
            *("pipeline", "archive", topic, self.path("archived")),
            *("--checkpoint", self.path("archived.at"), "--name-server"),
            *(self._name_server, "--format", "delta", "--once", "--watch"),
            *("--set", "spark.jars=as-given"),
        ]
        return CliRunner().invoke(ropeway, words).output

    def table(self, name: str) -> DataFrame:
        """One of the tables."""
        return self._spark.read.format("delta").load(self.path(name))

    def optimize(self, name: str) -> list[int]:
        """Have Delta put small files together; how many there were, and are."""
        before = len(self.table(name).inputFiles())
        self._spark.sql(f"optimize delta.`{self.path(name)}`").collect()
        return [before, len(self.table(name).inputFiles())]

    def avro(self) -> list[Any]:
        """What Spark reads of Avro that was written with one field less."""
        found = self._spark.sql(
            f"select from_avro(unhex('{_TEA}'), '{_WRITTEN}', "
            f"map('avroSchema', '{_NEWER}')) one"
        )
        return [list(row) for row in found.select("one.*").collect()]

    def path(self, name: str) -> str:
        """Where one is."""
        return str(self._folder / name)

    def _finish(self, writer: DataStreamWriter, name: str) -> None:
        writer = writer.option("checkpointLocation", self.path(f"{name}.at"))
        writer.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Do one of the two parts, and print what there is as JSON."""
    parser = argparse.ArgumentParser()
    for word in ("name_server", "source", "sink", "folder", "jars"):
        parser.add_argument(word)
    parser.add_argument("--killed", action="store_true")
    given = parser.parse_args()
    settings = {
        "spark.jars": given.jars,
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    spark = begin(**lake_settings("delta", settings))
    job = Job(spark, given.name_server, Path(given.folder))
    job.copy(given.source, is_killed=given.killed)
    files = job.optimize("copied")
    # The command would end it.
    type(spark).stop = lambda _: None  # type: ignore[method-assign]
    job.back(given.sink)
    found = {
        "spark": spark.version,
        "files": files,
        "copied": sorted(list(row) for row in job.table("copied").collect()),
        "avro": job.avro(),
        "archives": [job.archive(given.source) for _ in range(2)],
        "archived": job.table("archived").count(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
