"""What leaves a job: every operator that writes has its function."""

from __future__ import annotations

from ropeway.streams import sinks
from ropeway.streams.nodes import QUERIES


def test_every_query_is_written() -> None:
    assert sinks.WRITING.keys() == QUERIES


def test_records_become_messages_by_their_keys() -> None:
    batch = sinks._to_messages([("k", b"a", 1), (None, b"b", 2), (("k", 1), b"c", 3)])
    assert batch.to_pylist() == [
        {"value": b"a", "sharding_key": "k"},
        {"value": b"b", "sharding_key": None},
        {"value": b"c", "sharding_key": "('k', 1)"},
    ]


def test_records_become_lines() -> None:
    assert sinks._to_lines([("k", 1, 2)]).to_pylist() == [{"line": "k: 1"}]
