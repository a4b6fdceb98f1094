"""A client of Spark Connect that reads and writes topics; a test starts it."""

from __future__ import annotations

import sys

from pyspark.sql.connect.session import SparkSession

from ropeway.spark import register


def main() -> None:
    """Read a topic, copy it as a table and as a stream; print what was read."""
    url, name_server, source, sink, checkpoint = sys.argv[1:]
    spark = SparkSession.builder.remote(url).getOrCreate()
    register(spark)  # type: ignore[arg-type]
    given = {"nameServer": name_server, "topic": source}
    table = spark.read.format("ropeway").options(**given).load()
    shown = table.where(f"topic = '{source}'").selectExpr("cast(value as string) text")
    print(*sorted(row.text for row in shown.collect()))
    writer = table.select("value").write.format("ropeway").mode("append")
    writer.options(nameServer=name_server, topic=sink).save()
    read = spark.readStream.format("ropeway").options(**given)
    rows = read.option("startingOffsets", "earliest").load().select("value")
    query = rows.writeStream.format("ropeway").trigger(availableNow=True)
    query = query.options(nameServer=name_server, topic=sink)
    query.option("checkpointLocation", checkpoint).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
