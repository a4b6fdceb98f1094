"""Where a stream's batches end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ropeway.client import MessageQueue
from ropeway.spark.options import read_options
from ropeway.spark.stream import StreamReader, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tests.spark_session import Topics

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
