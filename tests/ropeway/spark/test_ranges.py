"""Ranges that tasks read."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ropeway.client import MessageQueue
from ropeway.spark.options import read_options
from ropeway.spark.ranges import Driver, Range, Ranges, read, split, tasks

if TYPE_CHECKING:
    from tests.spark_session import Topics

QUEUE = MessageQueue("orders", "broker-0", 3)


def test_a_queue_is_split_where_that_is_wanted() -> None:
    parts = split(Range(QUEUE, 10, 25), 10)
    assert [(one.begin, one.end) for one in parts] == [(10, 20), (20, 25)]
    assert split(Range(QUEUE, 10, 25), None) == [Range(QUEUE, 10, 25)]
    assert split(Range(QUEUE, 10, 10), None) == []
    assert split(Range(QUEUE, 10, 8), None) == []


def test_short_ranges_share_a_task() -> None:
    def lengths(*counts: int, **options: str) -> list[list[int]]:
        wanted = read_options({"nameServer": "127.0.0.1:1", **options})
        found = tasks((Range(QUEUE, 0, count) for count in counts), wanted)
        return [[one.end for one in task.ranges] for task in found]

    assert lengths(1, 2, 3) == [[1, 2, 3]]
    assert lengths(999, 1000, 5000, 1) == [[999, 1000], [5000], [1]]
    assert lengths(1, 2, 3, minOffsetsPerTask="3") == [[1, 2], [3]]
    # Whoever wants tasks of 2 does not get them joined again.
    assert lengths(2, 2, 1, maxOffsetsPerTask="2") == [[2], [2], [1]]
    assert lengths() == []


@given(
    st.lists(st.integers(0, 5000), max_size=9),
    st.integers(1, 40),
    st.none() | st.integers(1, 900),
)
def test_there_are_as_many_tasks_as_are_wanted_where_there_is_enough_to_read(
    counts: list[int], least: int, most: int | None
) -> None:
    options = {"minPartitions": str(least)}
    if most is not None:
        options["maxOffsetsPerTask"] = str(most)
    wanted = read_options({"nameServer": "127.0.0.1:1", **options})
    whole = [
        Range(MessageQueue("orders", "broker-0", number), 7, 7 + count)
        for number, count in enumerate(counts)
    ]
    found = tasks(whole, wanted)
    assert len(found) >= min(least, sum(counts))
    parts = [part for task in found for part in task.ranges]
    assert all(0 < part.end - part.begin <= (most or 45_000) for part in parts)
    for one in whole:
        mine = [part for part in parts if part.queue == one.queue]
        offsets = [at for part in mine for at in range(part.begin, part.end)]
        assert offsets == [*range(one.begin, one.end)]


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
