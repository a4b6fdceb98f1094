"""What a user writes becomes logical nodes; what makes no sense is refused at once."""

from __future__ import annotations

import itertools

import pytest

from ropeway.streams import StreamBuilder, TopologyError, Tumbling
from ropeway.streams.nodes import Operator


def test_each_method_is_a_node_behind_the_one_before() -> None:
    builder = StreamBuilder("job")
    (
        builder.source("lines")
        .select_timestamp(len)
        .map(str)
        .flat_map_values(str.split)
        .filter(bool)
        .key_by(str)
        .window(Tumbling(10))
        .count()
        .filter(bool)
        .map(str)
        .flat_map(str)
        .to_rstream()
        .key_by(str)
        .aggregate(object)
        .sink("counts")
    )
    nodes = builder.build().nodes
    assert [node.operator for node in nodes] == [
        Operator.SOURCE,
        Operator.SELECT_TIMESTAMP,
        Operator.MAP,
        Operator.FLAT_MAP,
        Operator.FILTER,
        Operator.KEY_BY,
        Operator.WINDOW_AGGREGATE,
        Operator.FILTER,
        Operator.MAP,
        Operator.FLAT_MAP,
        Operator.KEY_BY,
        Operator.AGGREGATE,
        Operator.SINK,
    ]
    for before, node in itertools.pairwise(nodes):
        assert node.parents == (before,)


@pytest.mark.parametrize("kind", ["count", "min", "max", "sum", "avg"])
def test_named_aggregates_are_named(kind: str) -> None:
    builder = StreamBuilder("job")
    grouped = builder.source("lines").key_by(str)
    getattr(grouped, kind)(len).print()
    getattr(grouped.window(Tumbling(1)), kind)(len).foreach(print)
    names = {node.name for node in builder.build().nodes}
    assert f"job-ROPEWAY-{kind.upper()}-1" in names
    assert f"job-ROPEWAY-WINDOW-{kind.upper()}-1" in names


def test_a_join_needs_both_keys_of_streams_of_one_job() -> None:
    builder = StreamBuilder("job")
    left, right = builder.source("a"), builder.source("b")
    with pytest.raises(TopologyError, match="where is missing"):
        left.join(right).apply(max)
    with pytest.raises(TopologyError, match="equal_to is missing"):
        left.left_join(right).where(len).apply(max)
    with pytest.raises(TopologyError, match="equal_to before where"):
        left.join(right).equal_to(len)
    with pytest.raises(TopologyError, match="join of jobs 'job' and 'other'"):
        left.join(StreamBuilder("other").source("b"))


@pytest.mark.parametrize("name", ["early_fire_ms", "idle_fire_ms"])
def test_windows_do_not_fire_faster_than_batches(name: str) -> None:
    keyed = StreamBuilder("job").source("a").key_by(str)
    with pytest.raises(
        TopologyError,
        match=f"window behind 'job-ROPEWAY-KEY-BY-1': {name} is 99; allowed: from 100",
    ):
        keyed.window(Tumbling(1), **{name: 99})


def test_times_are_not_allowed_behind_those_before_alone() -> None:
    with pytest.raises(
        TopologyError, match="'job-ROPEWAY-SOURCE-1': max_ahead_ms is -1; allowed"
    ):
        StreamBuilder("job").source("a").select_timestamp(int, max_ahead_ms=-1)
