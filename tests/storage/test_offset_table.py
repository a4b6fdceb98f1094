"""Offsets in memory; keepers' own laws are in tests/contracts/offsets.py."""

import pytest

from ropeway.storage.offset_table import OffsetTable


def table() -> OffsetTable:
    made = OffsetTable()
    for row in (("g", "t", 0, 7), ("g", "t", 1, 0), ("g", "u", 0, 3), ("h", "t", 0, 5)):
        made._set(*row)
    return made


def test_looking_up_finds_what_was_set_and_makes_nothing():
    found = table()
    assert found.get("g", "t", 0) == 7
    assert [
        found.get(*row) for row in (("x", "t", 0), ("g", "x", 0), ("h", "t", 1))
    ] == [None] * 3
    assert found.queues("g", "t") == {0: 7, 1: 0}
    assert found.queues("x", "t") == {}
    assert found.topics("g") == ["t", "u"]
    assert sorted(found.groups()) == ["g", "h"]


def test_the_last_offset_takes_its_topic_and_its_group_along():
    found = table()
    assert not found._remove("g", "t", 0)
    assert found._remove("g", "t", 1)
    assert not found._remove("g", "t", 1)
    assert found.topics("g") == ["u"]
    assert found._remove("g", "u", 0)
    assert list(found.groups()) == ["h"]


def test_rows_are_those_of_a_group_of_a_topic_or_of_both():
    found = table()
    assert found._rows("g", "t", None) == [("g", "t", 0), ("g", "t", 1)]
    assert found._rows("g", None, None) == [("g", "t", 0), ("g", "t", 1), ("g", "u", 0)]
    # Groups come in any order.
    rows = found._rows(None, "t", None)
    assert sorted(rows) == [("g", "t", 0), ("g", "t", 1), ("h", "t", 0)]
    assert found._rows("x", "t", None) == []
    assert found._rows(None, "t", 1) == [("g", "t", 1)]
    with pytest.raises(ValueError, match="a group, a topic, or both"):
        found._rows(None, None, None)
