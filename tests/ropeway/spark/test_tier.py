"""A tier as a table of Spark: in a directory and in an object store, by all options."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import EqualTo, In

from ropeway.spark.options import read_options
from ropeway.spark.segments import TierError
from ropeway.spark.tier import TierReader
from ropeway.testing import running_gateway
from tests.ropeway.spark.tiers import TOPIC, Sent, make
from tests.spark_session import Topics
from tests.storage.tiered import s3

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SENT = [
    Sent(f"m{at}", "odd" if at % 2 else "even", f"k{at % 3}", 1_000_000 + at * 1000)
    for at in range(10)
]


def reader(*urls: str, **options: str) -> TierReader:
    given = {"tier": ",".join(urls), "topic": TOPIC, **options}
    return TierReader(read_options(given), ["value", "offset"])


def ranges(one: TierReader) -> list[tuple[str, int, int, int]]:
    return [
        (at.queue.broker_name, at.queue.queue_id, at.begin, at.end)
        for at in one.partitions()
    ]


def rows(one: TierReader) -> list[tuple[str, int]]:
    return [
        (row["value"].decode(), row["offset"])
        for part in one.partitions()
        for batch in one.read(part)
        for row in batch.to_pylist()
    ]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A tier of one broker with two queues."""
    found = (tmp_path / "broker-0").as_uri()
    make(found, SENT, base=5, queue_id=0, number=3)
    make(found, SENT[:2], queue_id=1, number=4)
    return found


def test_ranges_are_chosen_as_those_of_brokers(url: str) -> None:
    assert ranges(reader(url)) == [("broker-0", 0, 5, 15), ("broker-0", 1, 0, 2)]
    some = reader(url, maxOffsetsPerTask="6", startingOffsets="earliest")
    assert ranges(some) == [
        ("broker-0", 0, 5, 11),
        ("broker-0", 0, 11, 15),
        ("broker-0", 1, 0, 2),
    ]
    given = f'{{"{TOPIC}": {{"broker-0:0": 8, "broker-0:1": -1}}}}'
    assert ranges(reader(url, startingOffsets=given)) == [("broker-0", 0, 8, 15)]
    assert ranges(reader(url, endingOffsets=given)) == [
        ("broker-0", 0, 5, 8),
        ("broker-0", 1, 0, 2),
    ]
    timed = reader(url, startingTimestamp="1001000", endingTimestamp="1003000")
    assert ranges(timed) == [("broker-0", 0, 6, 8), ("broker-0", 1, 1, 2)]
    filtered = reader(url)
    assert filtered.pushFilters([EqualTo(("queue",), 1)])
    assert ranges(filtered) == [("broker-0", 1, 0, 2)]
    filtered = reader(url)
    filtered.pushFilters([EqualTo(("broker",), "another")])
    assert ranges(filtered) == []


def test_rows_are_filtered_before_they_are_made(url: str) -> None:
    tagged = reader(url, tags="odd || none")
    assert [offset for _, offset in rows(tagged)] == [6, 8, 10, 12, 14, 1]
    keyed = reader(url)
    keyed.pushFilters([In(("key",), ("k0",)), EqualTo(("tag",), "odd")])
    assert rows(keyed) == [("m3", 8), ("m9", 14)]


def test_tiers_of_several_brokers_are_one_table(url: str, tmp_path: Path) -> None:
    other = (tmp_path / "broker-1").as_uri()
    make(other, SENT[:1])
    assert {one[0] for one in ranges(reader(url, other))} == {"broker-0", "broker-1"}


def test_what_cannot_be_read_is_said_before_anything_is(url: str) -> None:
    with pytest.raises(ValueError, match=r"startingOffsets is 'committed'.*earliest"):
        reader(url, startingOffsets="committed")
    with pytest.raises(TierError, match="has nothing of topic 'none'; allowed: the"):
        ranges(reader(url, topic="none"))
    given = f'{{"{TOPIC}": {{"broker-0:0": 2}}}}'
    with pytest.raises(TierError, match=r"offsets 2 to 15 .* the tier has 5 to 15"):
        ranges(reader(url, startingOffsets=given))
    lenient = reader(url, startingOffsets=given, failOnDataLoss="false")
    assert len(rows(lenient)) == 12
    with pytest.raises(TierError, match="names a provider 'ftp'"):
        ranges(reader("ftp://host/broker-0"))


def test_a_tier_in_an_object_store_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3.server(tmp_path) as address:
        url = s3.url(address, "broker-0")
        make(url, SENT, compression="zstd")
        found = reader(url, startingTimestamp="1004000")
        assert rows(found) == [(f"m{at}", at) for at in range(4, 10)]


@pytest.mark.slow
def test_what_a_gateway_has_put_is_read_without_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (tmp_path / "ropeway.toml").write_text(
        f'[tier]\nurl = "{store.as_uri()}"\ncommit_ms = 1\ncompression = "zstd"\n'
    )
    url = (store / "broker-0").as_uri()
    settings = ["--config", str(tmp_path / "ropeway.toml")]
    with running_gateway(tmp_path / "data", settings) as gateway:
        topics = Topics(gateway.name_server)
        other, topic = topics.make(3), topics.make(2)  # numbers go on over topics
        topics.send(other, ["x"])
        topics.send(topic, ["a", "b"], queue=0, tags="t")
        topics.send(topic, ["c"], queue=1, keys=("k",))
        until = time.monotonic() + 300
        while True:
            try:
                if len(rows(reader(url, topic=topic))) == 3:
                    break
            except TierError:
                pass  # nothing is there yet
            assert time.monotonic() < until
            time.sleep(0.1)
    assert rows(reader(url, topic=topic)) == [("a", 0), ("b", 1), ("c", 0)]
    assert ranges(reader(url, topic=topic)) == [
        ("broker-0", 0, 0, 2),
        ("broker-0", 1, 0, 1),
    ]
    assert [one for one, _ in rows(reader(url, topic=topic, tags="t"))] == ["a", "b"]


@pytest.mark.slow
@pytest.mark.jvm
def test_spark_reads_a_tier(spark: SparkSession, url: str) -> None:
    def table(**more: str) -> DataFrame:
        given = {"tier": url, "topic": TOPIC, **more}
        return spark.read.format("ropeway").options(**given).load()

    assert table().count() == 12
    (row,) = table(maxOffsetsPerTask="3").where("key = 'k2' and tag = 'odd'").collect()
    assert (row.value, row.topic, row.broker, row.queue, row.offset) == (
        b"m5",
        TOPIC,
        "broker-0",
        0,
        10,
    )
    assert row.timestamp.replace(tzinfo=UTC) == datetime.fromtimestamp(1005, UTC)
    with pytest.raises(Exception, match="option tier; allowed: to read a table"):
        spark.range(1).selectExpr("'a' value").write.format("ropeway").mode(
            "append"
        ).options(tier=url, topic=TOPIC).save()


@pytest.mark.slow
@pytest.mark.jvm
def test_spark_hands_conditions_on_times_and_offsets_down(
    spark: SparkSession, tmp_path: Path
) -> None:
    hour_ms = 3_600_000
    url = (tmp_path / "broker-0").as_uri()
    make(url, [Sent(f"m{at}", store_ms=at * hour_ms) for at in range(20)])
    given = {"tier": url, "topic": TOPIC, "maxOffsetsPerTask": "1"}
    table = spark.read.format("ropeway").options(**given).load()

    def found(condition: str) -> tuple[list[int], int]:
        """Which offsets there are, and how many were read."""
        some = table.where(condition).select("offset")
        return sorted(row.offset for row in some.collect()), some.rdd.getNumPartitions()

    since, until = "timestamp >= '1970-01-01 06:00:00'", "timestamp < '1970-01-01 08'"
    # An hour more on both sides, and one message, since brokers' clocks may be set.
    assert found(f"{since} and {until}") == ([6, 7], 5)
    assert found(until) == ([*range(8)], 10)
    assert found("offset between 3 and 5 and timestamp is not null") == ([3, 4, 5], 3)
