"""What tasks write and the driver commits, without Spark between them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from ropeway.client import ResponseError
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.spark.options import read_options
from ropeway.spark.sink import (
    BatchWriter,
    SinkError,
    StreamWriter,
    _asked,
    check_columns,
    commit,
    write,
)

if TYPE_CHECKING:
    from ropeway.spark.options import Options
    from tests.spark_session import Topics

VALUE = StructType().add("value", BinaryType())
QUERY = "spark-query"


def options(topics: Topics, topic: str, **more: str) -> Options:
    return read_options({"nameServer": topics.name_server, "topic": topic, **more})


def rows(*values: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"value": value} for value in values])


def test_a_table_is_there_when_it_is_committed(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(2)
    writer = BatchWriter(options(ropeway_topics, topic))
    first = writer.write(iter([rows("a", "b"), rows("c")]))
    writer.write(iter([rows("of a task that failed")]))
    assert ropeway_topics.read(topic) == []
    # A speculative task does the same work again, and a zombie goes on afterwards.
    writer.write(iter([rows("a", "b"), rows("c")]))
    writer.commit([first, None])
    writer.write(iter([rows("a", "b"), rows("c")]))
    assert sorted(ropeway_topics.read(topic)) == ["a", "b", "c"]


def test_a_batch_that_comes_again_is_recognised(ropeway_topics: Topics) -> None:
    topic = ropeway_topics.make(2)
    wanted = options(ropeway_topics, topic)
    for number, value in ((0, "a"), (1, "b"), (1, "b")):
        commit(wanted, [write(iter([rows(value)]), wanted, QUERY, number)], number)
    assert sorted(ropeway_topics.read(topic)) == ["a", "b"]
    with pytest.raises(SinkError, match=f"batch 0 of {QUERY} comes after its batch 1"):
        commit(wanted, [write(iter([rows("c")]), wanted, QUERY, 0)], 0)
    commit(wanted, [write(iter([]), wanted, QUERY, 2)], 2)


def test_a_table_of_one_transaction_is_written_once(ropeway_topics: Topics) -> None:
    """As foreachBatch does, which may come again with a batch."""
    topic = ropeway_topics.make(2)

    def save(version: int, *values: str) -> None:
        txn = {"txnAppId": f"of-{topic}", "txnVersion": str(version)}
        writer = BatchWriter(options(ropeway_topics, topic, **txn))
        writer.commit([writer.write(iter([rows(*values)]))])

    for version, value in ((7, "a"), (7, "a"), (9, "b")):
        save(version, value)
    assert sorted(ropeway_topics.read(topic)) == ["a", "b"]
    with pytest.raises(SinkError, match=r"batch 8 of of-.* comes after its batch 9"):
        save(8, "c")


@pytest.mark.parametrize(
    ("kind", "more", "complaint"),
    [
        (BatchWriter, {"guarantee": "at-least-once"}, "txnAppId with exactly-once"),
        (StreamWriter, {}, "option txnAppId is given for a stream; allowed: for a t"),
    ],
)
def test_a_transaction_is_of_a_table_and_exactly_once(kind, more, complaint) -> None:
    given = {"nameServer": "a:1", "topic": "t", "txnAppId": "a", "txnVersion": "0"}
    with pytest.raises(ValueError, match=complaint):
        kind(read_options({**given, **more}))


def test_at_least_once_sends_at_once_and_again_with_the_same_keys(
    ropeway_topics: Topics,
) -> None:
    topic = ropeway_topics.make(1)
    wanted = options(ropeway_topics, topic, guarantee="at-least-once")
    for _ in range(2):
        commit(wanted, [write(iter([rows("a", "b")]), wanted, "q", 0)], 0)
    assert ropeway_topics.read(topic) == ["a", "b", "a", "b"]


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_broker_that_cannot_tell_is_asked_again_where_that_is_safe(
    ropeway_topics: Topics, guarantee: str
) -> None:
    unknown = ResponseError(ResponseCode.SYSTEM_ERROR, "the log did not answer", "a:1")
    answers: list[Exception | str] = [unknown, "there"]

    async def ask() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    asked = _asked(ask, options(ropeway_topics, "any", guarantee=guarantee))
    if guarantee == "exactly-once":
        assert asyncio.run(asked) == "there"
    else:
        with pytest.raises(ResponseError, match="the log did not answer"):
            asyncio.run(asked)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_rows_of_up_to_4_mib_are_sent_in_their_order(
    ropeway_topics: Topics, guarantee: str
) -> None:
    topic = ropeway_topics.make(1)
    wanted = options(ropeway_topics, topic, guarantee=guarantee)
    values = ["small", "x" * (4 << 20), "y" * 500_000, "z" * 500_000, "small"]
    commit(wanted, [write(iter([rows(*values)]), wanted, topic, 0)], 0)
    assert ropeway_topics.read(topic) == values
    with pytest.raises(ValueError, match="4194305 bytes; allowed: up to 4194304 bytes"):
        write(iter([rows("x" * 4194305)]), wanted, topic, 1)


@pytest.mark.parametrize(
    ("schema", "more", "complaint"),
    [
        (StructType().add("tag", StringType()), {}, "columns are tag; value is miss"),
        (StructType().add("body", BinaryType()), {}, "column 'body' is to be sent; al"),
        (StructType().add("value", LongType()), {}, "'value' is bigint; allowed: bina"),
        (VALUE, {"topic": ""}, "option topic is ''"),
        (VALUE, {"topic": "a,b"}, "option topic is 'a,b'"),
        (
            StructType().add("value", BinaryType()).add("delay_ms", IntegerType()),
            {},
            "column 'delay_ms' with guarantee exactly-once",
        ),
    ],
)
def test_a_table_that_cannot_be_sent_is_refused(schema, more, complaint) -> None:
    given = read_options({"nameServer": "127.0.0.1:1", "topic": "orders", **more})
    with pytest.raises(ValueError, match=complaint):
        check_columns(schema, given)
