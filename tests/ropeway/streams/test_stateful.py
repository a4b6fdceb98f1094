"""Operators with state, row by row, as Spark calls them."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import Row

from ropeway.streams import bundles
from ropeway.streams.aggregates import Count, Sum
from ropeway.streams.carried import row_key
from ropeway.streams.mirror import StateMirror
from ropeway.streams.records import StepError, dump_key, dump_value, load
from ropeway.streams.stateful import Accumulating, Joining
from tests.ropeway.streams.stateful import Handle


def values(processor, handle: Handle, *rows: tuple) -> list:
    """What one batch of a key gives; rows are of time, value and perhaps side."""
    processor.init(handle)
    given = [
        Row(ts=ts, value=dump_value(value), side=side[0] if side else "")
        for ts, value, *side in rows
    ]
    found = processor.handleInputRows((dump_key("k"),), iter(given), None)
    result = [load(row.value) for row in found]
    processor.close()
    return result


def test_counting_goes_on_from_the_state() -> None:
    handle = Handle()

    def counting() -> Accumulating:
        return Accumulating("count", lambda: Count(lambda value: value))

    assert counted(counting(), handle, [("b", 2), ("c", 3)], [("a", 1)]) == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    assert counted(counting(), handle, [("d", 4), (None, 5)]) == [(4, 4), (4, 5)]


def test_a_result_stays_as_it_was_when_its_record_came() -> None:
    class Listing:
        def __init__(self) -> None:
            self.values: list = []

        def add(self, value: object) -> None:
            self.values.append(value)

        def result(self) -> list:
            return self.values

    found = counted(Accumulating("list", Listing), Handle(), [("a", 1), ("b", 2)])
    assert found == [(["a"], 1), (["a", "b"], 2)]


def counted(processor, handle: Handle, *given: list) -> list:
    """What one batch of a key gives; each list is a bundle, of values with times."""
    processor.init(handle)
    rows = [
        Row(
            value=bundles.dump([(bundles.packed(value), at) for value, at in one]), ts=0
        )
        for one in given
    ]
    (found,) = processor.handleInputRows((dump_key("k"),), iter(rows), None)
    processor.close()
    assert load(found.key) == "k"
    return list(bundles.in_order([found.value]))


@pytest.mark.parametrize(
    ("is_left", "fired"),
    [
        (False, [[("A", "b"), ("B", "b")], [("C", "b"), ("C", "c")]]),
        (True, [[("A", None), ("B", "b")], [("C", "b")]]),
    ],
)
def test_a_join_fires_by_its_kind(*, is_left: bool, fired: list) -> None:
    handle = Handle()
    joining = Joining("join", lambda *pair: pair, is_left=is_left)
    # Of one time, the right side is first.
    first = values(
        joining, handle, (2, "B", "left"), (2, "b", "right"), (1, "A", "left")
    )
    second = values(joining, handle, (4, "c", "right"), (3, "C", "left"))
    assert [first, second] == fired


def test_a_failing_function_is_named() -> None:
    joining = Joining("join", lambda a, b: a / b, is_left=True)
    with pytest.raises(StepError, match=r"step 'join' failed at \[1, None\]: TypeErr"):
        values(joining, Handle(), (1, 1, "left"))


def test_what_fails_is_put_aside_and_leaves_the_state_as_it_was() -> None:
    dead: list = []
    handle = Handle()
    summing = Accumulating("sum", lambda: Sum(None), dead.extend)
    assert counted(summing, handle, [(5, 1), ("two", 2), (1, 3)]) == [(5, 1), (6, 3)]
    joining = Joining("join", lambda a, b: a / b, dead.extend, is_left=False)
    found = values(joining, handle, (1, 6, "left"), (2, 0, "right"), (3, 2, "right"))
    assert found == [3]
    assert [(record[:2], str(error)[:32]) for record, error in dead] == [
        (("k", "two"), "step 'sum' failed at 'two': Type"),
        (("k", [6, 0]), "step 'join' failed at [6, 0]: Ze"),
    ]


def test_a_mirror_is_told_of_what_is_kept_and_restores_it() -> None:
    mirror = StateMirror("step", "states", "offsets", "sink")
    state = {"total": None, "count": 2}

    def told(processor, row: Row, *, kept: object) -> list:
        handle = Handle()
        processor.init(handle)
        processor.handleInitialState((b"",), Row(state=dump_value(kept)), None)
        found = list(processor.handleInputRows((dump_key("k"),), iter([row]), None))
        return [load(row.value) for row in found[:-1]] + [
            (found[-1].key, json.loads(found[-1].value))
        ]

    counting = Accumulating("count", lambda: Count(None), None, mirror)
    key = row_key("states", '"k"')
    bundle = bundles.dump([("x", 1)])
    assert told(counting, Row(ts=1, value=bundle), kept=state) == [
        [(3, 1)],
        (key, {"value": 3, "state": {"total": None, "count": 3}}),
    ]
    joining = Joining("join", lambda *pair: list(pair), None, mirror, is_left=True)
    row = Row(ts=1, value=dump_value("L"), side="left")
    assert told(joining, row, kept={"right": "R"}) == [
        ["L", "R"],
        (key, {"state": {"left": "L", "right": "R"}}),
    ]


def test_what_travels_along_is_passed_on_the_highest_of_a_key() -> None:
    counting = Accumulating("count", lambda: Count(None))
    key = row_key("offsets", "here")
    rows = [Row(ts=0, value=body) for body in (b"9", b"10", b"8")]
    (found,) = counting.handleInputRows((key,), iter(rows), None)
    assert (found.key, found.value) == (key, b"10")
