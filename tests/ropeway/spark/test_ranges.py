"""Ranges that tasks read."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from ropeway.client import MessageQueue
from ropeway.spark.options import read_options
from ropeway.spark.ranges import Driver, Range, Ranges, read, split, tasks

if TYPE_CHECKING:
    from tests.spark_session import Topics

QUEUE = MessageQueue("orders", "broker-0", 3)


def test_a_queue_is_split_where_that_is_wanted() -> None:
    parts = split(QUEUE, 10, 25, 10)
    assert [(one.begin, one.end) for one in parts] == [(10, 20), (20, 25)]
    assert [(one.begin, one.end) for one in split(QUEUE, 10, 25, None)] == [(10, 25)]
    assert split(QUEUE, 10, 10, None) == []
    assert split(QUEUE, 10, 8, None) == []


def test_short_ranges_share_a_task() -> None:
    def lengths(*counts: int, **options: str) -> list[list[int]]:
        given = read_options({"nameServer": "127.0.0.1:1", **options})
        found = tasks((Range(QUEUE, 0, count) for count in counts), given)
        return [[one.end for one in task.ranges] for task in found]

    assert lengths(1, 2, 3) == [[1, 2, 3]]
    assert lengths(999, 1000, 5000, 1) == [[999, 1000], [5000], [1]]
    assert lengths(1, 2, 3, minOffsetsPerTask="3") == [[1, 2], [3]]
    # Whoever wants tasks of 2 does not get them joined again.
    assert lengths(2, 2, 1, maxOffsetsPerTask="2") == [[2], [2], [1]]
    assert lengths() == []


def test_tags_and_keys_choose_what_is_read(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(1)
    ropeway_topics.send(topic, ["a", "b"], tags="one")
    ropeway_topics.send(topic, ["c"], tags="two")
    options = read_options({"nameServer": ropeway_topics.name_server, "topic": topic})
    driver = Driver(options)
    (queue,) = driver.ask(lambda reader: reader.queues(topic))
    # What is sent to a task has no client yet.
    assert pickle.loads(pickle.dumps(driver))._thread is None
    driver.close()

    def values(tags: set[str] | None, keys: set[str] | None = None) -> list[bytes]:
        batches = read(
            pickle.loads(pickle.dumps(Ranges([Range(queue, 0, 3)]))),
            options,
            ["value"],
            None if tags is None else frozenset(tags),
            None if keys is None else frozenset(keys),
        )
        return [row["value"] for batch in batches for row in batch.to_pylist()]

    assert values(None) == [b"a", b"b", b"c"]
    assert values({"two"}) == [b"c"]
    assert values({"two", "none"}) == [b"c"]
    assert values(None, {"k"}) == []
