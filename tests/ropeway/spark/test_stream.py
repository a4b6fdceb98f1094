"""Where a stream's batches end."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ropeway.client import Admin, MessageQueue, MessagesGoneError
from ropeway.spark.options import read_options
from ropeway.spark.stream import StreamReader, share
from ropeway.testing import running_gateway
from tests.ropeway.client.scenario import PATIENT
from tests.spark_session import Topics
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

ONE, TWO, THREE = (MessageQueue("orders", "broker-0", at) for at in range(3))


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_limit_is_shared_by_what_waits() -> None:
    begins = {ONE: 10, TWO: 0, THREE: 5}
    ends = {ONE: 100, TWO: 10, THREE: 5}
    assert share(begins, ends, 1000) == ends
    assert share(begins, ends, 50) == {ONE: 55, TWO: 5, THREE: 5}
    # A queue with little is not starved.
    assert share(begins, ends, 1) == {ONE: 11, TWO: 1, THREE: 5}


def test_a_stream_follows_its_topic_and_stores_how_far_it_is(
    ropeway_topics: Topics,
) -> None:
    topic = ropeway_topics.make(1)
    ropeway_topics.send(topic, ["a", "b"])
    given = {"nameServer": ropeway_topics.name_server, "topic": topic, "group": "g"}
    reader = StreamReader(
        read_options({**given, "startingOffsets": "earliest"}), ["value"]
    )
    start = reader.initialOffset()
    assert start == {topic: {"broker-0:0": 0}}
    assert reader.getDefaultReadLimit() == ReadAllAvailable()
    one = reader.latestOffset(start, ReadMaxRows(1))
    assert one == {topic: {"broker-0:0": 1}}
    # A queue that was not there before is read from its first message.
    ropeway_topics.extend(topic, 2)
    ropeway_topics.send(topic, ["c"], queue=1)
    end = reader.latestOffset(one, ReadAllAvailable())
    assert end == {topic: {"broker-0:0": 2, "broker-0:1": 1}}
    (task,) = reader.partitions(one, end)
    assert [(part.begin, part.end) for part in task.ranges] == [(1, 2), (0, 1)]
    values = [row["value"] for row in rows(reader.read(task))]
    assert values == [b"b", b"c"]
    reader.prepareForTriggerAvailableNow()
    ropeway_topics.send(topic, ["later"])
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert reader.reportLatestOffset()[topic]["broker-0:0"] == 3
    reader.commit(end)
    reader.stop()
    again = StreamReader(
        read_options({**given, "startingOffsets": "committed"}), ["value"]
    )
    assert again.initialOffset() == end
    again.stop()


def test_a_topic_that_was_made_again_is_an_error_or_is_read_anew(
    ropeway_topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topic = ropeway_topics.make(1)
    ropeway_topics.send(topic, ["a", "b", "c"])
    given = {"nameServer": ropeway_topics.name_server, "topic": topic}
    given["startingOffsets"] = "earliest"
    lenient = StreamReader(
        read_options({**given, "failOnDataLoss": "false"}), ["value"]
    )
    end = lenient.latestOffset(lenient.initialOffset(), ReadAllAvailable())
    assert end == {topic: {"broker-0:0": 3}}

    async def make_again() -> None:
        async with Admin(ropeway_topics.name_server, config=PATIENT) as admin:
            await admin.delete_topic(topic)
            await admin.create_topic(topic, 1)

    asyncio.run(make_again())
    ropeway_topics.send(topic, ["anew"])
    strict = StreamReader(read_options(given), ["value"])
    with pytest.raises(MessagesGoneError, match="from offset 3, and ends at 1: the to"):
        strict.latestOffset(end, ReadAllAvailable())
    strict.stop()
    later = lenient.latestOffset(end, ReadAllAvailable())
    assert later == {topic: {"broker-0:0": 1}}
    (task,) = lenient.partitions(end, later)
    assert [row["value"] for row in rows(lenient.read(task))] == [b"anew"]
    assert "the queue is read anew" in caplog.text
    lenient.stop()


def test_a_stream_that_has_read_nothing_yet_warns_of_no_group(
    ropeway_topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topic = ropeway_topics.make(1)
    given = {"nameServer": ropeway_topics.name_server, "topic": topic}
    reader = StreamReader(read_options({**given, "group": f"of-{topic}"}), ["value"])
    reader.commit(reader.initialOffset())
    assert not caplog.records
    reader.stop()


def test_a_stream_finds_new_topics_that_its_pattern_matches(
    ropeway_topics: Topics,
) -> None:
    prefix = ropeway_topics.make(1)
    pattern = f"{prefix}-(paid|sent)"
    given = {"nameServer": ropeway_topics.name_server, "subscribePattern": pattern}
    reader = StreamReader(read_options(given), ["value"])
    start = reader.initialOffset()
    assert start == {}
    assert reader.latestOffset(start, ReadAllAvailable()) == {}
    for name in (f"{prefix}-paid", f"{prefix}-paid-late"):
        ropeway_topics.extend(name, 1)
        ropeway_topics.send(name, ["a", "b"])
    # A topic that was not there before is read from its first message, and no other.
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {f"{prefix}-paid": {"broker-0:0": 2}}
    (task,) = reader.partitions(start, end)
    assert [row["value"] for row in rows(reader.read(task))] == [b"a", b"b"]
    ropeway_topics.extend(f"{prefix}-sent", 1)
    ropeway_topics.send(f"{prefix}-sent", ["c"])
    assert reader.latestOffset(end, ReadAllAvailable()) == {
        **end,
        f"{prefix}-sent": {"broker-0:0": 1},
    }
    reader.stop()


def test_a_batch_waits_for_more_unless_it_has_waited_for_long(
    ropeway_topics: Topics,
) -> None:
    topic = ropeway_topics.make(1)
    ropeway_topics.send(topic, ["a"])
    given = {"nameServer": ropeway_topics.name_server, "topic": topic}
    given |= {"startingOffsets": "earliest", "minOffsetsPerTrigger": "2"}

    def at(offset: int) -> dict[str, dict[str, int]]:
        return {topic: {"broker-0:0": offset}}

    reader = StreamReader(read_options({**given, "maxTriggerDelay": "1d"}), ["value"])
    # Nobody knows how long the first one would have waited already.
    assert reader.latestOffset(at(0), ReadAllAvailable()) == at(1)
    ropeway_topics.send(topic, ["b"])
    assert reader.latestOffset(at(1), ReadAllAvailable()) == at(1)
    ropeway_topics.send(topic, ["c"])
    assert reader.latestOffset(at(1), ReadMaxRows(5)) == at(3)
    ropeway_topics.send(topic, ["d"])
    assert reader.latestOffset(at(3), ReadAllAvailable()) == at(3)
    # A query that is to end has all that is there.
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(at(3), ReadAllAvailable()) == at(4)
    reader.stop()
    soon = StreamReader(read_options({**given, "maxTriggerDelay": "0s"}), ["value"])
    for offset in (0, 3):
        assert soon.latestOffset(at(offset), ReadAllAvailable()) == at(4)
    soon.stop()


def test_a_stream_begins_at_a_time_of_each_queue(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(2)
    for queue in (0, 1):
        ropeway_topics.send(topic, ["a", "b"], queue=queue)
    given = {"nameServer": ropeway_topics.name_server, "topic": topic}

    def begins(*times_ms: int, **more: str) -> list[int]:
        by_queue = {f"broker-0:{at}": time_ms for at, time_ms in enumerate(times_ms)}
        times = {"startingOffsetsByTimestamp": json.dumps({topic: by_queue})}
        reader = StreamReader(read_options({**given, **times, **more}), ["value"])
        try:
            return [*reader.initialOffset()[topic].values()]
        finally:
            reader.stop()

    late = 4_000_000_000_000
    assert begins(0, late) == [0, 2]
    assert begins(0, late, startingTimestamp="0") == [0, 0]
    strict = {"startingOffsetsByTimestampStrategy": "error"}
    assert begins(0, 1, **strict) == [0, 0]
    with pytest.raises(ValueError, match=f"in broker-0:1 of topic '{topic}'; allowed"):
        begins(0, late, **strict)
    with pytest.raises(ValueError, match="leaves out broker-0:1 of topic"):
        begins(0)


def test_metrics_have_the_lag_of_a_query_that_has_a_group(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    site = f"127.0.0.1:{port}"
    with running_gateway(tmp_path / "data", ["--http", site]) as gateway:
        topics = Topics(gateway.name_server)
        topic = topics.make(1)
        topics.send(topic, ["a", "b", "c"])
        given = {**topics.from_the_start, "topic": topic, "group": "copies"}
        reader = StreamReader(read_options(given), ["value"])
        try:
            # As Spark does it with a batch, and behind it.
            start, end = ({topic: {"broker-0:0": at}} for at in (0, 2))
            (task,) = reader.partitions(start, end)
            assert len(rows(reader.read(task))) == 2
            reader.commit(end)
        finally:
            reader.stop()
        with urllib.request.urlopen(f"http://{site}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    labels = (f'topic="{topic}"', 'consumer_group="copies"')
    of_query = [line for line in lines if all(one in line for one in labels)]
    for name in ("rocketmq_consumer_lag_messages", "ropeway_consumer_lag_queue_max_me"):
        (lag,) = [line for line in of_query if line.startswith(name)]
        assert float(lag.split()[-1]) == 1
