"""Jobs on Spark: the tables of RIP-58, from topics to topics."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.streams import (
    Header,
    RopewayStream,
    RStream,
    Session,
    Sliding,
    StreamBuilder,
    TopologyError,
    Tumbling,
    Windowed,
)
from ropeway.streams.progress_report import late as late_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_session import Topics

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

TIMEOUT_S = 240.0
SECOND_MS = 1000


@pytest.fixture
def run(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> Callable[..., RopewayStream]:
    """Runs a job over what is there, and returns it when it has ended."""

    def run(builder: StreamBuilder, **options: str) -> RopewayStream:
        job = RopewayStream(
            builder.build(),
            spark,
            ropeway_topics.from_the_start | options,
            checkpoint=str(tmp_path / "checkpoint"),
        )
        job.start(available_now=True)
        assert job.wait(TIMEOUT_S)
        return job

    return run


def pair(body: bytes) -> tuple[str, list[Any]]:
    """JSON with a key in front."""
    value = json.loads(body)
    return value[0], value


def shown(key: Any, value: Any) -> bytes:
    """Key and value as JSON."""
    return json.dumps([key, value]).encode()


def test_words_are_counted_from_topic_to_topic_and_on_after_a_restart(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source, sink = ropeway_topics.make(), ropeway_topics.make()

    def builder() -> StreamBuilder:
        builder = StreamBuilder("wordCount")
        (
            builder.source(source)
            .flat_map(lambda line: re.split(r"\W+", line.lower()))
            .filter(bool)
            .key_by(lambda word: word)
            .count()
            .to_rstream()
            .sink(sink, shown)
        )
        return builder

    ropeway_topics.send(source, ["To be, or not", "to be"])
    run(builder())
    counts = [tuple(json.loads(one)) for one in ropeway_topics.read(sink)]
    assert sorted(counts) == [
        ("be", 1), ("be", 2), ("not", 1), ("or", 1), ("to", 1), ("to", 2)
    ]  # fmt: skip
    ropeway_topics.send(source, ["be"], queue=1)
    run(builder())
    assert ropeway_topics.read(sink).count('["be", 3]') == 1
    assert len(ropeway_topics.read(sink)) == len(counts) + 1

    other = StreamBuilder("wordCount")
    other.source(source).sink(sink)
    with pytest.raises(TopologyError, match="is of another topology"):
        run(other)


def test_the_joins_of_the_rip_hold_in_one_topology(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    left, right = ropeway_topics.make(1), ropeway_topics.make(1)
    inner, outer = ropeway_topics.make(1), ropeway_topics.make(1)
    builder = StreamBuilder("joins")
    left_stream, right_stream = builder.source(left, pair), builder.source(right, pair)
    for joined, sink in (
        (left_stream.join(right_stream), inner),
        (left_stream.left_join(right_stream), outer),
    ):
        (
            joined.where(lambda value: value[0])
            .equal_to(lambda value: value[0])
            .apply(lambda a, b: [a[0], a[1], b and b[1]])
            .sink(sink)
        )
    ropeway_topics.send(right, ['["k2", "b"]', '["k3", "c"]'])
    ropeway_topics.send(left, ['["k1", "A"]', '["k2", "B"]'])
    run(builder)
    assert ropeway_topics.read(inner) == ["['k2', 'B', 'b']"]
    assert sorted(ropeway_topics.read(outer)) == [
        "['k1', 'A', None]",
        "['k2', 'B', 'b']",
    ]


def test_the_watermark_of_the_rip_holds_when_records_come_one_by_one(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source, sink = ropeway_topics.make(1), ropeway_topics.make(1)
    builder = StreamBuilder("watermark")
    (
        builder.source(source, pair, allowed_lateness_ms=2 * SECOND_MS)
        .select_timestamp(lambda value: value[1] * SECOND_MS)
        .key_by(lambda value: value[0])
        .window(Tumbling(SECOND_MS))
        .count()
        .sink(sink, lambda key, count: shown(list(key), count))
    )
    ropeway_topics.send(source, [json.dumps(["k", t]) for t in (5, 7, 6, 3)])
    job = run(builder, maxOffsetsPerTrigger="1")
    progress = job.queries[0].recentProgress
    marks = [one["eventTime"].get("watermark", "")[17:19] for one in progress]
    # Spark tells the watermark that a batch began with.
    assert [mark for mark in dict.fromkeys(marks) if mark] == ["00", "03", "05"]
    late = sum(
        one["stateOperators"][0]["numRowsDroppedByWatermark"] for one in progress
    )
    assert late == 1
    # The window of t=3 was not counted; that of t=5 is not over at watermark 5.
    assert ropeway_topics.read(sink) == []


def test_windows_give_each_result_once_and_forget_their_state(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source = ropeway_topics.make(1)
    sinks = {}
    builder = StreamBuilder("windows")
    orders = (
        builder.source(source, pair)
        .select_timestamp(lambda value: value[1] * SECOND_MS)
        .key_by(lambda value: value[0])
    )
    ten = orders.window(Tumbling(10 * SECOND_MS))
    for name, stream in {
        "count": ten.count(),
        "sum": ten.sum(lambda value: value[2]),
        "avg": ten.avg(lambda value: value[2]),
        "min": ten.min(lambda value: value[2]),
        "fold": ten.aggregate(Longest),
        "sliding": orders.window(Sliding(10 * SECOND_MS, 5 * SECOND_MS)).count(),
        "session": orders.window(Session(3 * SECOND_MS)).count(),
    }.items():
        sinks[name] = ropeway_topics.make(1)
        stream.sink(sinks[name], told)
    rows = [["a", 1, 5], ["a", 2, 1], ["a", 8, 3], ["b", 12, 2.5], ["z", 99, 0]]
    ropeway_topics.send(source, [json.dumps(row) for row in rows])
    # One batch moves the watermark on, and Spark then fires without news.
    job = run(builder)
    found = {
        name: sorted(one for one in ropeway_topics.read(sink) if "z" not in one)
        for name, sink in sinks.items()
    }
    assert found == {
        "count": ["a 0-10: 3", "b 10-20: 1"],
        "sum": ["a 0-10: 9", "b 10-20: 2.5"],
        "avg": ["a 0-10: 3.0", "b 10-20: 2.5"],
        "min": ["a 0-10: 1", "b 10-20: 2.5"],
        "fold": ["a 0-10: 1+2+8", "b 10-20: 12"],
        "sliding": ["a -5-5: 2", "a 0-10: 3", "a 5-15: 1", "b 10-20: 1", "b 5-15: 1"],
        "session": ["a 1-5: 2", "a 8-11: 1", "b 12-15: 1"],
    }
    counting = job.queries[0].recentProgress[-1]
    assert counting["stateOperators"][0]["numRowsTotal"] == 1


def test_records_go_through_a_topic_that_others_can_read(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source, shuffled, sink = (ropeway_topics.make(2) for _ in range(3))
    builder = StreamBuilder("shared")
    (
        builder.source(source, pair)
        .key_by(lambda value: (value[0], "x"))
        .through(shuffled)
        .sum(lambda value: value[1])
        .sink(sink, lambda key, total: shown(list(key), total))
    )
    ropeway_topics.send(source, ['["a", 1]', '["b", 5]', '["a", 2]'])
    run(builder)
    sent = [json.loads(one) for one in ropeway_topics.read(shuffled)]
    assert sorted(one[:2] for one in sent) == [
        [["a", "x"], ["a", 1]],
        [["a", "x"], ["a", 2]],
        [["b", "x"], ["b", 5]],
    ]
    assert sorted(map(json.loads, ropeway_topics.read(sink))) == [
        [["a", "x"], 1],
        [["a", "x"], 3],
        [["b", "x"], 5],
    ]


def test_a_join_in_windows_has_all_pairs_of_a_window(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    left, right, sink = (ropeway_topics.make(1) for _ in range(3))
    builder = StreamBuilder("windowed")

    def timed(topic: str) -> RStream[list[Any]]:
        source = builder.source(topic, pair)
        return source.select_timestamp(lambda value: value[1] * SECOND_MS)

    (
        timed(left)
        .left_join(timed(right))
        .where(lambda value: value[0])
        .equal_to(lambda value: value[0])
        .window(Tumbling(10 * SECOND_MS))
        .apply(lambda a, b: f"{a[1]}-{b and b[1]}")
        .sink(sink)
    )
    for topic, rows in (
        (left, [["a", 1], ["a", 11], ["a", 12], ["z", 99]]),
        (right, [["a", 12], ["a", 13], ["a", 25], ["z", 98]]),
    ):
        ropeway_topics.send(topic, [json.dumps(row) for row in rows])
    run(builder)
    # What has no partner comes when its window is over; that of z is not.
    found = [one for one in ropeway_topics.read(sink) if "9" not in one]
    assert sorted(found) == ["1-None", "11-12", "11-13", "12-12", "12-13"]


def test_windows_of_processing_time_take_all_that_came_together(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source, sink = ropeway_topics.make(1), ropeway_topics.make(1)
    builder = StreamBuilder("processing")
    (
        builder.source(source, by_processing_time=True)
        .key_by(lambda _: "all")
        .window(Tumbling(1))
        .count()
        .sink(sink)
    )
    ropeway_topics.send(source, ["a", "b", "c"])
    # A later batch has a later time, and so the first one's window is over.
    run(builder, maxOffsetsPerTrigger="2")
    assert "2" in ropeway_topics.read(sink)


def test_windows_fire_early_and_tell_what_is_late_and_what_failed(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> None:
    source, sink, late, dead = (ropeway_topics.make(1) for _ in range(4))
    builder = StreamBuilder("firing")
    (
        builder.source(source, pair)
        .select_timestamp(lambda value: value[1] * SECOND_MS)
        .key_by(lambda value: value[0])
        .window(Tumbling(10 * SECOND_MS), early_fire_ms=500, late_topic=late)
        .sum(lambda value: 60 // value[2])
        .sink(sink, told)
    )
    job = RopewayStream(
        builder.build(),
        spark,
        ropeway_topics.from_the_start,
        checkpoint=str(tmp_path / "checkpoint"),
        dead_letters=dead,
    )
    with pytest.raises(TopologyError, match="step 'firing-ROPEWAY-WINDOW-SUM-1' fires"):
        job.start(available_now=True)

    def wait_for(ask: Callable[[], Any], wanted: Any) -> None:
        give_up = time.monotonic() + TIMEOUT_S
        while (found := ask()) != wanted:
            assert time.monotonic() < give_up, found
            job.wait(1)

    def come(topic: str, *wanted: str) -> None:
        wait_for(lambda: ropeway_topics.read(topic), list(wanted))

    job.start()
    try:
        # No window is over while no watermark moves.
        ropeway_topics.send(source, ['["a", 1, 6]', '["a", 2, 0]'])
        come(sink, "a 0-10: 10")
        come(dead, "['a', 2, 0]")
        ropeway_topics.send(source, ['["a", 3, 3]'])
        come(sink, "a 0-10: 10", "a 0-10: 30")
        # This one is over, and says nothing new; what comes now is late.
        ropeway_topics.send(source, ['["z", 99, 60]'])
        come(sink, "a 0-10: 10", "a 0-10: 30", "z 90-100: 1")
        ropeway_topics.send(source, ['["a", 4, 1]'])
        come(late, '["a", ["a", 4, 1], 4000]')
        wait_for(lambda: sum(map(late_count, job.queries[0].recentProgress)), 1)
    finally:
        job.stop()


class Longest:
    """Joins the times of orders."""

    def __init__(self) -> None:
        self.times: list[str] = []

    def add(self, value: list[Any]) -> None:
        self.times.append(str(value[1]))

    def result(self) -> str:
        return "+".join(self.times)


def told(key: Windowed, value: Any) -> bytes:
    """A window's result in words."""
    begin, end = key.begin_ms // SECOND_MS, key.end_ms // SECOND_MS
    return f"{key.key} {begin}-{end}: {value}".encode()


def with_header(body: bytes, header: Header) -> tuple[str | None, list[Any]]:
    """The body and all of its header but times."""
    assert header.born_ms
    assert header.store_ms
    assert header.store_ms >= header.born_ms - SECOND_MS
    return header.key, [body.decode(), header.tag, header.properties.get("amount")]


def or_none(_key: str, value: list[Any]) -> bytes | None:
    """A tombstone for what has no tag."""
    return value[0].encode() if value[1] else None


def test_headers_reach_deserializers_and_feed_a_compacted_topic(
    spark: SparkSession, run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source, sink = ropeway_topics.make(1), ropeway_topics.make(1)
    for key, tag in (("k1", "old"), ("k1", "new"), ("k2", ""), ("k3", "left out")):
        more = {"tags": tag, "properties": {"amount": key}}
        ropeway_topics.send(source, [f"of {key}"], keys=(key,), **more)
    builder = StreamBuilder("headers")
    of_source = {"sql": "amount <> 'k3'"}
    builder.source(source, with_header, with_header=True, options=of_source).sink(
        sink,
        or_none,
        header=lambda key, value: Header(key, value[1], {"paid": value[2]}),
    )
    run(builder)
    given = {**ropeway_topics.from_the_start, "topic": sink}
    columns = "value binary, key string, tag string, properties map<string,string>"
    rows = spark.read.format("ropeway").schema(columns).options(**given).load()
    assert [
        (bytes(row.value), row.key, row.tag, row.properties["paid"])
        for row in rows.collect()
    ] == [
        (b"of k1", "k1", "old", "k1"),
        (b"of k1", "k1", "new", "k1"),
        (b"", "k2", None, "k2"),
    ]
