"""A topology can be looked at before it runs."""

from __future__ import annotations

from ropeway.streams import StreamBuilder, Topology, Tumbling


def topology(size_ms: int = 10) -> Topology:
    builder = StreamBuilder("job")
    lines = builder.source("lines")
    lines.map(str, name="unused")
    lines.key_by(str).window(Tumbling(size_ms)).count().sink("counts")
    return builder.build()


def test_it_is_described_a_line_a_step() -> None:
    assert topology().describe() == (
        "job-ROPEWAY-SOURCE-1 topic=lines, lateness_ms=0"
        " | readStream.format('ropeway'), a partition a queue\n"
        "job-ROPEWAY-KEY-BY-1 <- job-ROPEWAY-SOURCE-1"
        " | mapInArrow; the next operator's exchange brings keys together\n"
        "job-ROPEWAY-WINDOW-COUNT-1 window=Tumbling(size_ms=10), aggregate=count"
        " <- job-ROPEWAY-KEY-BY-1 | withWatermark, groupBy(window, key).agg\n"
        "job-ROPEWAY-SINK-1 topic=counts"
        " <- job-ROPEWAY-WINDOW-COUNT-1 | writeStream.format('ropeway')"
    )


def test_it_is_drawn_with_its_shuffles() -> None:
    assert topology().draw() == (
        "flowchart LR\n"
        '    n0["job-ROPEWAY-SOURCE-1"]\n'
        '    n1["job-ROPEWAY-KEY-BY-1"]\n'
        '    n2[("job-ROPEWAY-WINDOW-COUNT-1")]\n'
        '    n3["job-ROPEWAY-SINK-1"]\n'
        "    n0 --> n1\n"
        "    n1 ==> n2\n"
        "    n2 --> n3"
    )


def test_its_fingerprint_tells_others_apart() -> None:
    assert topology().fingerprint == topology().fingerprint
    assert topology().fingerprint != topology(11).fingerprint


def test_windows_that_spark_does_not_have_are_described_as_what_they_are() -> None:
    builder = StreamBuilder("job")
    keyed = builder.source("lines").key_by(str)
    keyed.window(Tumbling(1), early_fire_ms=500, late_topic="late").count().print()
    line = builder.build().describe().split("\n")[2]
    assert "firing=Firing(early_ms=500, idle_ms=None), late_topic=late" in line
    assert line.endswith("withWatermark, groupBy(key).transformWithState, timers")


def test_a_query_is_what_lies_between_its_end_and_the_topics_it_reads() -> None:
    builder = StreamBuilder("job")
    keyed = builder.source("a", name="a").key_by(str, name="key")
    keyed.through("b", name="b").count(name="count").sink("c", name="c")
    job = builder.build()
    told = {
        query.name: (
            [node.name for node in job.part(query)],
            [node.name for node in job.sources(query)],
        )
        for query in job.queries
    }
    assert told == {
        "b": (["a", "key", "b"], ["a"]),
        "c": (["b", "count", "c"], ["b"]),
    }
