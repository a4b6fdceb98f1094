"""Which ranges a table is read in, by its options and by what is filtered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, GreaterThan, In, InputPartition, LessThan

from ropeway.client import MessagesGoneError, TopicNotFoundError
from ropeway.spark.batch import BatchReader
from ropeway.spark.options import read_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

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
    with pytest.raises(ValueError, match="endingOffsets leaves out broker-0:1 of"):
        ranges(endingOffsets=begin)
    both = f'{{"{topic}": {{"broker-0:0": 1, "broker-0:1": -1}}}}'
    assert ranges(endingOffsets=both) == [(0, 0, 1), (1, 0, 1)]
    assert ranges(endingTimestamp="0") == []
    assert ranges(EqualTo(("queue",), 1)) == [(1, 0, 1)]
    assert ranges(In(("queue",), (1, 2)), EqualTo(("queue",), 2)) == []
    assert ranges(EqualTo(("topic",), "other")) == []
    assert ranges(GreaterThan(("offset",), 1)) == [(0, 1, 3)]
    far = datetime.now(UTC) + timedelta(days=1)
    assert ranges(GreaterThan(("timestamp",), far)) == []
    assert ranges(LessThan(("timestamp",), far)) == [(0, 0, 3), (1, 0, 1)]


def test_a_table_of_all_topics_has_no_messages_of_brokers(
    ropeway_topics: Topics,
) -> None:
    topic = ropeway_topics.make(1)
    ropeway_topics.send(topic, ["a"])
    given = {"nameServer": ropeway_topics.name_server, "subscribePattern": ".*"}
    one = BatchReader(read_options(given), ["value"])
    found = {at.queue.topic for task in one.partitions() for at in task.ranges}
    assert topic in found
    system = ("rmq_sys_", "RMQ_SYS_", "%", "TBW102", "SCHEDULE_TOPIC")
    assert not [name for name in found if name.startswith(system)]


def test_a_broker_gives_what_a_condition_lets_through(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(1)
    for amount in ("1", "7", "9"):
        more = {"tags": "odd", "properties": {"amount": amount}}
        ropeway_topics.send(topic, [amount], **more)
    one = reader(ropeway_topics, topic, sql="amount > 5 AND TAGS = 'odd'")
    # A condition on a tag is Spark's beside it.
    one.pushFilters([EqualTo(("tag",), "odd")])
    (task,) = one.partitions()
    found = [row["value"] for batch in one.read(task) for row in batch.to_pylist()]
    assert found == [b"7", b"9"]


def test_no_ranges_are_no_rows(ropeway_topics: Topics) -> None:
    one = reader(ropeway_topics, "any")
    assert list(one.read(InputPartition(None))) == []


def test_an_unknown_topic_is_named_before_anything_is_read(
    ropeway_topics: Topics,
) -> None:
    with pytest.raises(TopicNotFoundError, match="topic 'none' does not exist"):
        reader(ropeway_topics, "none").partitions()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ('{"%s": {"broker-0:7": 0}}', "broker-0:7 of topic '%s'; allowed: broker-0:0"),
        ('{"other": {"broker-0:0": 0}}', "broker-0:0 of topic 'other'; allowed: bro"),
    ],
)
def test_offsets_of_queues_that_are_not_there_are_refused(
    ropeway_topics: Topics, given: str, named: str
) -> None:
    topic = ropeway_topics.make(1)
    given, named = (text.replace("%s", topic) for text in (given, named))
    for option in ("startingOffsets", "endingOffsets"):
        with pytest.raises(ValueError, match=f"option {option} names {named}"):
            reader(ropeway_topics, topic, **{option: given}).partitions()


def test_a_queue_that_ends_before_it_is_to_be_read_is_no_empty_table(
    ropeway_topics: Topics,
) -> None:
    topic = ropeway_topics.make(1)
    ropeway_topics.send(topic, ["a", "b"])
    beyond = {"startingOffsets": f'{{"{topic}": {{"broker-0:0": 9}}}}'}
    with pytest.raises(MessagesGoneError, match="from offset 9, and ends at 2: the to"):
        reader(ropeway_topics, topic, **beyond).partitions()
    lenient = reader(ropeway_topics, topic, **beyond, failOnDataLoss="false")
    (task,) = lenient.partitions()
    assert [(one.begin, one.end) for one in task.ranges] == [(0, 2)]


WORDS = ("a", "b", "a||b", "a || b", " a", "*", "'", '"', "a b", "ü", "%", "null")
CHOSEN = st.sampled_from((None, "", *WORDS))
FILTERS = st.one_of(
    st.builds(
        lambda name, value: EqualTo((name,), value),
        st.sampled_from(["tag", "key", "topic", "broker"]),
        CHOSEN,
    ),
    st.builds(
        lambda name, values: In((name,), tuple(values)),
        st.sampled_from(["tag", "key"]),
        st.lists(CHOSEN, min_size=1, max_size=4),
    ),
    st.builds(lambda value: EqualTo(("queue",), value), st.integers(0, 2)),
    st.builds(lambda value: GreaterThan(("offset",), value), st.integers(0, 3)),
)


@pytest.fixture(scope="module")
def tagged(ropeway_topics: Topics) -> str:
    """A topic with a message of each tag, of each key, and one without any."""
    topic = ropeway_topics.make(2)
    for number, word in enumerate(WORDS):
        ropeway_topics.send(topic, [f"tag {word}"], queue=number % 2, tags=word)
        keys = {"properties": {"KEYS": word}}
        ropeway_topics.send(topic, [f"key {word}"], queue=number % 2, **keys)
    ropeway_topics.send(topic, ["neither"])
    return topic


@pytest.mark.slow
@given(filters=st.lists(FILTERS, max_size=3))
@example(filters=[EqualTo(("tag",), "a||b")])
@example(filters=[In(("tag",), ("*", None))])
@example(filters=[In(("tag",), (" a", "b"))])
def test_filters_that_are_pushed_down_give_the_rows_of_filters_that_are_not(
    ropeway_topics: Topics, tagged: str, filters: list[Filter]
) -> None:
    columns = ["value", "tag", "key", "topic", "broker", "queue", "offset"]
    options = read_options({"nameServer": ropeway_topics.name_server, "topic": tagged})

    def rows(pushed: list[Filter]) -> list[bytes]:
        one = BatchReader(options, columns)
        assert one.pushFilters(pushed) == pushed
        return sorted(
            row["value"]
            for task in one.partitions()
            for batch in one.read(task)
            for row in batch.to_pylist()
            # As Spark filters again.
            if all(lets(filter_, row) for filter_ in filters)
        )

    assert rows(filters) == rows([])


def lets(one: Filter, row: dict[str, object]) -> bool:
    """Whether a row passes a filter; nothing is equal to null."""
    value = row[one.attribute[0]]
    if isinstance(one, EqualTo):
        return value is not None and value == one.value
    if isinstance(one, In):
        return value is not None and value in one.value
    return value > one.value
