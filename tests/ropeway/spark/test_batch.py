"""Which ranges a table is read in, by its options and by what is filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, In, InputPartition

from ropeway.client import TopicNotFoundError
from ropeway.spark.batch import BatchReader
from ropeway.spark.options import read_options

if TYPE_CHECKING:
    from tests.spark_session import Topics


def reader(topics: Topics, topic: str, **options: str) -> BatchReader:
    given = {"nameServer": topics.name_server, "topic": topic, **options}
    return BatchReader(read_options(given), ["value"])


def test_a_table_is_the_ranges_of_its_queues(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(2)
    ropeway_topics.send(topic, ["a", "b", "c"])
    ropeway_topics.send(topic, ["d"], queue=1)

    def ranges(*filters, **options: str) -> list[tuple[int, int, int]]:
        one = reader(ropeway_topics, topic, **options)
        # Spark filters again: a hash of a tag may be that of another.
        assert one.pushFilters(list(filters)) == list(filters)
        return [
            (at.queue.queue_id, at.begin, at.end)
            for task in one.partitions()
            for at in task.ranges
        ]

    assert ranges() == [(0, 0, 3), (1, 0, 1)]
    assert ranges(maxOffsetsPerTask="2") == [(0, 0, 2), (0, 2, 3), (1, 0, 1)]
    begin = f'{{"{topic}": {{"broker-0:0": 1}}}}'
    assert ranges(startingOffsets=begin) == [(0, 1, 3), (1, 0, 1)]
    assert ranges(endingOffsets=begin) == [(0, 0, 1)]
    assert ranges(endingTimestamp="0") == []
    assert ranges(EqualTo(("queue",), 1)) == [(1, 0, 1)]
    assert ranges(In(("queue",), (1, 2)), EqualTo(("queue",), 2)) == []
    assert ranges(EqualTo(("topic",), "other")) == []
    assert ranges(GreaterThan(("offset",), 1)) == [(0, 0, 3), (1, 0, 1)]


def test_no_ranges_are_no_rows(ropeway_topics: Topics) -> None:
    one = reader(ropeway_topics, "any")
    assert list(one.read(InputPartition(None))) == []


def test_an_unknown_topic_is_named_before_anything_is_read(
    ropeway_topics: Topics,
) -> None:
    with pytest.raises(TopicNotFoundError, match="topic 'none' does not exist"):
        reader(ropeway_topics, "none").partitions()
