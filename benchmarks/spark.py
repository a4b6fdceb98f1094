"""What Spark reads and writes of topics in a second, and what a batch costs at least.

    $ python -m benchmarks.spark
    $ python -m benchmarks.spark --rounds 1 --messages 20000

Beside each figure is what Spark does without topics, in the same run and the same
session: rows that it makes itself instead of those of a topic, or a sink that drops
them.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks import spark_columns, spark_writes, table
from ropeway.client import BulkReader, Message, Producer
from ropeway.client.received import read_all
from ropeway.gateway.wire.batch import BatchEntry
from ropeway.spark.batch import BatchReader
from ropeway.spark.clients import lent
from ropeway.spark.options import read_options
from ropeway.spark.ranges import open_reader, parts
from ropeway.spark.rows import check_schema
from ropeway.spark.session import open_session
from ropeway.spark.source import RopewayDataSource
from ropeway.streams import RopewayStream, StreamBuilder, bundles, records
from ropeway.streams.aggregates import Count
from ropeway.streams.stateful import Accumulating
from ropeway.testing import Gateway
from tests.spark_session import Topics

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

QUEUES = 4
BODY_BYTES = 100
SEND_AT_ONCE = 1000
WORDS = 1000
LATENCY_RATE = 100
LATENCY_WARM = 100
TIMEOUT_S = 600
KEYS = [f"word-{at}".ljust(BODY_BYTES, ".") for at in range(WORDS)]


class RowReader(BatchReader):
    """Reads row by row: an object a message, and a tuple a row, without Arrow."""

    def read(self, partition: Any) -> Iterator[Any]:
        options = self._options
        with lent(BulkReader, options, lambda: open_reader(options), "rows") as reader:
            for one in partition.ranges:
                for data in parts(reader, one, "*", options):
                    for message in read_all(data, one.queue.broker_name):
                        yield (message.body,)


class RowSource(RopewayDataSource):
    """The data source, row by row."""

    @classmethod
    def name(cls) -> str:
        return "ropeway-rows"

    def reader(self, schema: StructType) -> RowReader:
        check_schema(schema)
        return RowReader(read_options(self.options), schema.fieldNames())


class Bench:
    """A session, a gateway, and topics with messages, as `given` says."""

    def __init__(
        self, spark: SparkSession, topics: Topics, folder: Path, given: Namespace
    ) -> None:
        self.spark = spark
        self.topics = topics
        self.messages = given.messages
        self.batches = given.batches
        self._folder = folder
        self.filled = self.fill(given.messages)

    def fill(self, count: int) -> str:
        """A topic with so many messages."""
        topic = self.topics.make(QUEUES)
        asyncio.run(self._send(topic, count))
        return topic

    async def _send(self, topic: str, count: int) -> None:
        entries = [
            BatchEntry(0, KEYS[at % WORDS].encode(), f"UNIQ_KEY\x01{at:032X}\x02")
            for at in range(SEND_AT_ONCE)
        ]
        async with Producer(self.topics.name_server, "benchmark") as producer:
            queues = await producer.queues(topic)
            for at in range(-(-count // SEND_AT_ONCE)):
                some = entries[: count - at * SEND_AT_ONCE]
                await producer.send_entries(queues[at % QUEUES], some)

    def read(self, name: str = "ropeway") -> DataFrame:
        """The filled topic as a table of bodies."""
        return (
            self.spark.read.format(name)
            .schema("value binary")
            .options(nameServer=self.topics.name_server, topic=self.filled)
            .load()
        )

    def made(self) -> DataFrame:
        """As many rows that Spark makes itself, from Python, by Arrow batches."""
        rows = self.spark.range(0, self.messages, numPartitions=QUEUES)
        return rows.mapInArrow(_bodies, "value binary")

    def folder(self) -> str:
        """A new folder's name."""
        return str(self._folder / uuid.uuid4().hex)

    # What is measured; each returns rows a second, or milliseconds.

    def batch(self, frame: DataFrame, kind: str = "noop") -> float:
        """Rows a second of a whole table into a sink."""
        began = time.perf_counter()
        writer = frame.write.format(kind).mode("overwrite")
        writer.save(self.folder()) if kind == "parquet" else writer.save()
        return self.messages / (time.perf_counter() - began)

    def counted(self, count: int) -> float:
        """Rows a second of a count from topic to topic, batches after the first."""
        source, sink = self.fill(count), self.topics.make(QUEUES)
        builder = StreamBuilder("benchmark")
        builder.source(source).key_by(lambda word: word).count().sink(sink)
        job = RopewayStream(
            builder.build(),
            self.spark,
            self.topics.from_the_start | {"maxOffsetsPerTrigger": str(count // 4)},
            checkpoint=self.folder(),
        )
        job.start(available_now=True)
        assert job.wait(TIMEOUT_S)
        return _rate(job.queries[0].recentProgress)

    def counted_by_spark(self, count: int) -> float:
        """The same of Spark's own rows, into nothing."""
        found = (
            self.spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", count // 4)
            .load()
            .mapInArrow(_keyed, records.RECORDS)
            .groupBy("key")
            .transformWithState(
                Accumulating("count", lambda: Count(None)),
                records.RECORDS,
                "Append",
                "None",
            )
        )
        return _rate(self._some_batches(found, 4))

    def latencies_ms(self, count: int) -> list[int]:
        """From being stored to the result's being stored, of each record of a job."""
        source, sink = self.topics.make(QUEUES), self.topics.make(QUEUES)
        builder = StreamBuilder("latency")
        builder.source(source, _with_time).key_by(_word).max(_sent_ms).sink(sink)
        job = RopewayStream(
            builder.build(),
            self.spark,
            self.topics.from_the_start,
            checkpoint=self.folder(),
        )
        job.start()
        try:
            # The first batches start the workers.
            asyncio.run(self._trickle(source, LATENCY_WARM))
            _after(job.queries[0], 4, stop=False)
            asyncio.run(self._trickle(source, count))
            return asyncio.run(self._arrived(sink, LATENCY_WARM + count))[LATENCY_WARM:]
        finally:
            job.stop()

    async def _trickle(self, topic: str, count: int) -> None:
        async with Producer(self.topics.name_server, "benchmark") as producer:
            for at in range(count):
                body = f"word-{at % WORDS} {time.time_ns() // 1_000_000}".encode()
                await producer.send(Message(topic, body))
                await asyncio.sleep(1 / LATENCY_RATE)

    async def _arrived(self, topic: str, wanted: int) -> list[int]:
        """How long each took, in the order of sending, once all are there."""
        give_up = time.monotonic() + TIMEOUT_S
        async with BulkReader(self.topics.name_server, "benchmark") as reader:
            queues = await reader.queues(topic)
            while True:
                ends = [await reader.end_offset(queue) for queue in queues]
                if sum(ends) >= wanted:
                    break
                assert time.monotonic() < give_up, "the job does not go on"
                await asyncio.sleep(0.2)
            found: list[tuple[int, int]] = []
            for queue, end in zip(queues, ends, strict=True):
                async for columns in reader.read(queue, 0, end):
                    sent = map(int, columns.bodies)
                    found += zip(sent, columns.store_ms, strict=True)
        return [stored - sent for sent, stored in sorted(found)]

    def small_batch_ms(self) -> float:
        """Milliseconds of a batch of a message a queue, from topic to topic."""
        source, sink = self.fill(QUEUES * SEND_AT_ONCE), self.topics.make(QUEUES)
        options = {"nameServer": self.topics.name_server}
        query = (
            self.spark.readStream.format("ropeway")
            .schema("value binary")
            .options(**options, topic=source, startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", 1)
            .load()
            .writeStream.format("ropeway")
            .options(**options, topic=sink, checkpointLocation=self.folder())
            .start()
        )
        return _fixed_ms(_after(query, self.batches))

    def small_batch_of_spark_ms(self) -> float:
        """The same from Spark's rate source into nothing."""
        rows = (
            self.spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", QUEUES)
            .load()
        )
        return _fixed_ms(self._some_batches(rows, self.batches))

    def _some_batches(self, frame: DataFrame, count: int) -> list[Any]:
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", self.folder())
            .start()
        )
        return _after(query, count)


def _after(query: Any, count: int, *, stop: bool = True) -> list[Any]:
    """What a query tells of its first batches; then it is stopped, by default."""
    give_up = time.monotonic() + TIMEOUT_S
    while len(query.recentProgress) < count:
        assert query.exception() is None, query.exception()
        assert time.monotonic() < give_up, "the query does not go on"
        time.sleep(0.05)
    progress: list[Any] = query.recentProgress[:count]
    if stop:
        query.stop()
    return progress


def _with_time(body: bytes) -> tuple[None, tuple[str, int]]:
    word, sent_ms = body.decode().split()
    return None, (word, int(sent_ms))


def _word(value: tuple[str, int]) -> str:
    return value[0]


def _sent_ms(value: tuple[str, int]) -> int:
    return value[1]


def _rate(progress: list[Any]) -> float:
    # The first batch starts the workers.
    told = [one for one in progress if one["numInputRows"]][1:]
    ms = sum(one["durationMs"]["triggerExecution"] for one in told)
    return 1000 * sum(one["numInputRows"] for one in told) / ms


def _fixed_ms(progress: list[Any]) -> float:
    return statistics.median(
        one["durationMs"]["triggerExecution"] for one in progress[2:]
    )


def _bodies(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        bodies = [KEYS[at % WORDS].encode() for at in range(batch.num_rows)]
        yield pa.RecordBatch.from_arrays([pa.array(bodies, pa.binary())], ["value"])


def _keyed(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield bundles.to_bundles(
            [
                (KEYS[at % WORDS], KEYS[at % WORDS], 0)
                for at in batch.column("value").to_pylist()
            ]
        )


def _spread(values: list[float]) -> str:
    """Median and range, as table.spread, of figures with thousands."""
    if not values:
        return "-"
    digits = 1 if max(values) < 100 else 0
    middle, least, most = (
        f"{one:,.{digits}f}"
        for one in (statistics.median(values), min(values), max(values))
    )
    return middle if len(values) == 1 else f"{middle} [{least}-{most}]"


def measure(bench: Bench, given: Namespace) -> str:
    """The cases that have one of some words in their names, as a table."""
    whole, counted, words = bench.messages, given.counted, given.cases
    cases: dict[str, tuple[Callable[[], float], Callable[[], float] | None, str]] = {
        "read, Arrow batches, rows/s": (
            lambda: bench.batch(bench.read()),
            lambda: bench.batch(bench.made()),
            ">= 150,000",
        ),
        "read, row by row, rows/s": (
            lambda: bench.batch(bench.read("ropeway-rows")),
            None,
            "",
        ),
        f"{whole:,} messages to Parquet, s": (
            lambda: whole / bench.batch(bench.read(), "parquet"),
            lambda: whole / bench.batch(bench.made(), "parquet"),
            "<= 30 of 1,000,000",
        ),
        "topic, count, topic, rows/s": (
            lambda: bench.counted(counted),
            lambda: bench.counted_by_spark(counted),
            ">= 15,000",
        ),
        "a batch of a message a queue, ms": (
            bench.small_batch_ms,
            bench.small_batch_of_spark_ms,
            "<= 400",
        ),
    }
    rows = []
    for name, (ours, theirs, aim) in cases.items():
        if words and not any(word in name for word in words):
            continue
        rounds = range(given.warm_ups + given.rounds)
        found = [(ours(), theirs and theirs()) for _ in rounds][given.warm_ups :]
        own = [one for one, _ in found]
        other = [one for _, one in found if one is not None]
        rows.append([name, _spread(own), _spread(other), aim or "-"])
        print(*rows[-1], sep=" | ", flush=True)
    if not words or any(word in "latency" for word in words):
        rounds = range(given.rounds)
        found_ms = [one for _ in rounds for one in bench.latencies_ms(given.late)]
        middle, last = (statistics.quantiles(found_ms, n=100)[at] for at in (49, 98))
        name = f"latency of {LATENCY_RATE} records/s, p50 / p99, ms"
        rows.append([name, f"{middle:,.0f} / {last:,.0f}", "-", "-"])
    return table.table(["case", "Ropeway", "Spark alone", "aim"], rows)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=1, help="rounds before those")
    parser.add_argument("--batches", type=int, default=12, help="small ones of a round")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--counted", type=int, default=200_000)
    parser.add_argument("--late", type=int, default=2000, help="records of a latency")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("cases", nargs="*", help="words in the names of cases")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ropeway-spark-") as folder:
        gateway = Gateway(Path(folder) / "data")
        gateway.start()
        spark = open_session("benchmark", given.master, {"spark.driver.memory": "2g"})
        spark.sparkContext.setLogLevel("OFF")
        spark.dataSource.register(RowSource)
        try:
            topics = Topics(gateway.name_server)
            bench = Bench(spark, topics, Path(folder), given)
            print(f"{table.circumstances()}, {given.rounds} rounds, {given.master}.")
            print(measure(bench, given))
            print(spark_columns.measure(spark, topics, given))
            assert gateway.pid is not None
            print(spark_writes.measure(spark, topics, gateway.pid, given))
        finally:
            spark.stop()
            gateway.kill()


if __name__ == "__main__":
    main()
