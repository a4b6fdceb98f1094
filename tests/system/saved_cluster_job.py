"""A driver that reaches clusters by saved contexts, and one by options."""

import sys

from ropeway.spark.session import open_session


def main() -> None:
    """Write a table to each, read it, and copy it by a stream; print what came."""
    folder, names, *given = sys.argv[1:]
    options = dict(one.split("=", 1) for one in given)
    ways = {name: {"context": name} for name in names.split(",")}
    spark = open_session("contexts", "local[2]", {"spark.log.level": "INFO"})
    for name, said in (*ways.items(), ("keys", options)):
        rows = spark.range(3).selectExpr("cast(id as string) value")
        writer = rows.write.format("ropeway").mode("append").options(**said)
        writer.option("topic", f"prices-{name}").save()
        read = {**said, "topic": f"prices-{name}"}
        table = spark.read.format("ropeway").options(**read).load()
        table.explain(extended=True)
        stream = spark.readStream.format("ropeway").options(**read)
        stream = stream.option("startingOffsets", "earliest").load().select("value")
        query = stream.writeStream.format("ropeway").options(**said)
        query = query.option("topic", f"copied-{name}").trigger(availableNow=True)
        query = query.option("checkpointLocation", f"{folder}/{name}-{len(said)}")
        query.start().awaitTermination()
        copied = spark.read.format("ropeway").options(**said)
        copied = copied.option("topic", f"copied-{name}").load()
        shown = copied.selectExpr("cast(value as string) text").collect()
        print("copied:", name, *sorted(row.text for row in shown))


if __name__ == "__main__":
    main()
