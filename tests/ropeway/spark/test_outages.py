"""A query goes on where it was when servers are back, or fails after so long."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ropeway.client import ConnectionFailedError
from ropeway.spark.options import read_options
from ropeway.spark.sink import commit, write
from ropeway.spark.stream import StreamReader
from ropeway.streams import RopewayStream, StreamBuilder
from ropeway.streams.dead_letters import DeadLetters
from tests.spark_session import Topics
from tests.system.ropeway import Ropeway
from tests.waiting import WAIT_S, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ropeway.spark.options import Options

pytestmark = pytest.mark.slow
WAITS = "waiting for servers"
AWAY_S = 5
"""Longer than the longest wait between two attempts."""


class Served:
    """A gateway that comes and goes, with a topic of three messages."""

    def __init__(self, gateway: Ropeway, caplog: pytest.LogCaptureFixture) -> None:
        self._gateway = gateway
        self._log = caplog
        self.topics = Topics(gateway.name_server)
        self.topic = self.topics.make(1)
        self.topics.send(self.topic, ["a", "b", "c"])

    def options(self, **more: str) -> Options:
        given = {"nameServer": self._gateway.name_server, "topic": self.topic, **more}
        return read_options({"startingOffsets": "earliest", **given})

    def lost(self) -> None:
        self._gateway.kill()

    def back(self) -> None:
        self._gateway.start()

    def restart(self) -> None:
        self.lost()
        self.back()

    def during(self, ask: Callable[[], Any]) -> Any:
        """What is answered to who has asked while nobody was there."""
        self.lost()
        self._log.clear()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(ask)
            until(lambda: WAITS in self._log.text or answer.done())
            assert not answer.done()
            self._gateway.start()
            return answer.result(WAIT_S)


@pytest.fixture
def served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Served]:
    caplog.set_level(logging.WARNING)
    gateway = Ropeway(tmp_path / "gateway")
    gateway.start()
    yield Served(gateway, caplog)
    gateway.kill()


def bodies(batches: Iterator[pa.RecordBatch]) -> list[bytes]:
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def rows(*values: str) -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pylist([{"value": value} for value in values])])


def test_a_stream_waits_for_its_servers(served: Served) -> None:
    reader = StreamReader(served.options(), ["value"])
    start = served.during(reader.initialOffset)
    end = served.during(lambda: reader.latestOffset(start, ReadAllAvailable()))
    assert end == {served.topic: {"broker-0:0": 3}}
    (task,) = reader.partitions(start, end)
    assert served.during(lambda: bodies(reader.read(task))) == [b"a", b"b", b"c"]
    reader.stop()


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_rows_wait_for_their_servers(served: Served, guarantee: str) -> None:
    options = served.options(guarantee=guarantee)
    commit(options, [write(rows("d"), options, "q", 0)], 0)
    written = served.during(lambda: write(rows("e"), options, "q", 1))
    if guarantee == "exactly-once":
        served.during(lambda: commit(options, [written], 1))
    assert served.topics.read(served.topic) == ["a", "b", "c", "d", "e"]


def test_servers_that_stay_away_end_a_query(served: Served) -> None:
    options = served.options(outageTimeoutMs="0")
    reader = StreamReader(options, ["value"])
    start = reader.initialOffset()
    (task,) = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    served.lost()
    for ask in (
        reader.initialOffset,
        lambda: bodies(reader.read(task)),
        lambda: write(rows("d"), options, "q", 0),
    ):
        with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1:"):
            ask()
    reader.stop()


def test_letters_wait_for_their_servers(served: Served) -> None:
    letters = DeadLetters(served.options(), served.topic)
    served.during(lambda: letters([((None, b"d", 0), "no number")]))
    assert served.topics.read(served.topic) == ["a", "b", "c", "d"]


@pytest.mark.slow
@pytest.mark.jvm
def test_a_job_goes_on_over_kills_and_counts_each_row_once(
    spark: SparkSession, served: Served, tmp_path: Path
) -> None:
    counts, dead = served.topics.make(1), served.topics.make(1)
    builder = StreamBuilder("counts")
    numbers = builder.source(served.topic).filter(lambda text: text.isalpha() or 1 / 0)
    numbers.key_by(lambda _: "all").count().sink(counts)
    job = RopewayStream(
        builder.build(),
        spark,
        {"nameServer": served.topics.name_server},
        checkpoint=str(tmp_path / "checkpoint"),
        dead_letters=dead,
    )
    job.start()

    def until_counted(expected: list[str]) -> None:
        until(lambda: job.wait(0) or served.topics.read(counts) == expected)
        assert served.topics.read(counts) == expected

    try:
        until_counted(["1", "2", "3"])
        for letter, expected in (("d", "4"), ("e", "5")):
            served.restart()
            served.topics.send(served.topic, [letter, "0"])
            until_counted([*"123456"[: int(expected)]])
    finally:
        job.stop()
    assert set(served.topics.read(dead)) == {"0"}


@pytest.mark.slow
@pytest.mark.jvm
def test_a_query_goes_on_over_kills_and_each_row_is_there_once(
    spark: SparkSession, served: Served, tmp_path: Path
) -> None:
    copy = served.topics.make(1)
    options = {"nameServer": served.topics.name_server}
    rows = spark.readStream.format("ropeway").options(**options, topic=served.topic)
    copying = (
        rows.option("startingOffsets", "earliest")
        .load()
        .select("value")
        .writeStream.format("ropeway")
        .options(**options, topic=copy)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
    )
    query = copying.start()
    expected = ["a", "b", "c"]

    def until_copied() -> None:
        until(lambda: not query.isActive or served.topics.read(copy) == expected)
        assert query.isActive, query.exception()

    for letter in "de":
        until_copied()
        served.restart()
        served.topics.send(served.topic, [letter])
        expected.append(letter)
    until_copied()
    # Else the last batch may be begun again, before anybody asks where the topic ends.
    query.processAllAvailable()
    query.stop()
    # Spark tells where a query waits, and afterwards for how long it did.
    served.topics.send(served.topic, ["f"])
    expected.append("f")
    served.lost()
    query = copying.start()
    until(lambda: query.status["message"].startswith("Getting offsets from"))
    time.sleep(AWAY_S)
    assert query.status["isTriggerActive"]
    served.back()
    until_copied()

    def waited_ms() -> list[int]:
        found = [one for one in query.recentProgress if one["numInputRows"]]
        return [one["durationMs"]["latestOffset"] for one in found]

    until(waited_ms)
    assert max(waited_ms()) >= AWAY_S * 1000
    query.stop()
