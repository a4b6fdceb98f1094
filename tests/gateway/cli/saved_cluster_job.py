"""A driver that reaches a cluster by a saved context, and by options."""

import sys

from ropeway.spark.session import open_session


def main() -> None:
    """Write a table, read it, and copy it by a stream; print how many rows came."""
    folder, *given = sys.argv[1:]
    options = dict(one.split("=", 1) for one in given)
    spark = open_session("contexts", "local[2]", {"spark.log.level": "INFO"})
    for number, said in enumerate(({"context": "shop"}, options)):
        rows = spark.range(3).selectExpr("cast(id as string) value")
        writer = rows.write.format("ropeway").mode("append").options(**said)
        writer.option("topic", "prices").save()
        table = spark.read.format("ropeway").options(**said, topic="prices").load()
        table.explain(extended=True)
        read = spark.readStream.format("ropeway").options(**said, topic="prices")
        stream = read.option("startingOffsets", "earliest").load().select("value")
        query = stream.writeStream.format("ropeway").options(**said)
        query = query.option("topic", "copied").trigger(availableNow=True)
        query = query.option("checkpointLocation", f"{folder}/{number}")
        query.start().awaitTermination()
        print("rows:", table.count())


if __name__ == "__main__":
    main()
