"""Logical nodes have names, each once."""

from __future__ import annotations

import pytest

from ropeway.streams.nodes import Graph, Operator, TopologyError


def test_names_are_numbered_by_kind() -> None:
    graph = Graph("job")
    names = [
        graph.add(Operator.MAP).name,
        graph.add(Operator.AGGREGATE, kind="count").name,
        graph.add(Operator.AGGREGATE, kind="window-sum").name,
        graph.add(Operator.MAP).name,
        graph.add(Operator.MAP, name="mine").name,
    ]
    assert names == [
        "job-ROPEWAY-MAP-1",
        "job-ROPEWAY-COUNT-1",
        "job-ROPEWAY-WINDOW-SUM-1",
        "job-ROPEWAY-MAP-2",
        "mine",
    ]


def test_a_name_is_there_once() -> None:
    graph = Graph("job")
    graph.add(Operator.MAP, name="mine")
    with pytest.raises(TopologyError, match="step 'mine' is there twice"):
        graph.add(Operator.FILTER, name="mine")
