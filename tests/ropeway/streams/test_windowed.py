"""What leaves for a window, and what comes back from it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ropeway.streams import records, windowed
from ropeway.streams.aggregates import Sum
from ropeway.streams.records import StepError, dump_key, dump_value
from ropeway.streams.windows import Windowed


def numbers(aggregate: str, select, *values) -> list[tuple]:
    step = records.named("step", windowed.selecting(aggregate, select))
    found = [one for value in values for one in step("k", value, 1)]
    batch = windowed.to_selected(found)
    return [(row["number"], row["whole"]) for row in batch.to_pylist()]


def test_numbers_and_their_kind_leave() -> None:
    assert numbers("sum", None, 1, 2.5, None) == [
        (1.0, True),
        (2.5, False),
        (None, False),
    ]
    assert numbers("count", lambda value: value or None, "a", "") == [
        (1.0, True),
        (None, False),
    ]


@pytest.mark.parametrize("value", ["x", 2**53 + 1])
def test_what_is_no_number_is_named(value) -> None:
    with pytest.raises(StepError, match=r"step 'step' failed .* is selected; allowed"):
        numbers("max", None, value)
    with pytest.raises(StepError, match="step 'step' failed at 'x': TypeError"):
        numbers("max", lambda given: given + 1, "x")


def window(**changes) -> pa.RecordBatch:
    """What Spark gives of one."""
    row = {
        "key": dump_key("k"),
        "begin_ms": 0,
        "end_ms": 10,
        "number": 4.0,
        "whole": True,
        "counted": 2,
        "items": [],
        **changes,
    }
    return pa.RecordBatch.from_pylist([row])


def test_values_that_an_accumulator_fails_at_are_put_aside() -> None:
    dead: list = []
    items = [dump_value(one) for one in (1, "two", 3)]
    for put_aside, results in ((dead.extend, [4]), (None, None)):
        incoming = windowed.from_windows(
            "step", "aggregate", lambda: Sum(None), put_aside
        )
        if results is None:
            with pytest.raises(StepError, match="step 'step' failed at 'two'"):
                list(incoming(window(items=items)))
        else:
            assert [value for _, value, _ in incoming(window(items=items))] == results
    ((record, _),) = dead
    assert record == (Windowed("k", 0, 10), "two", 9)


def test_results_have_the_kind_of_what_they_are_of() -> None:
    def result(aggregate: str, make=None, **changes):
        incoming = windowed.from_windows("step", aggregate, make)
        ((key, value, time_ms),) = incoming(window(**changes))
        assert (key, time_ms) == (Windowed("k", 0, 10), 9)
        return value

    assert repr(result("sum")) == "4"
    assert repr(result("sum", whole=False)) == "4.0"
    assert repr(result("avg")) == "4.0"
    assert result("count") == 2
    items = [dump_value(1), dump_value(2)]
    assert result("aggregate", lambda: Sum(None), items=items) == 3


def test_pairs_of_a_join_come_with_or_without_a_right_value() -> None:
    row = {"key": dump_key("k"), "value": dump_value("A"), "end_ms": 10}
    batch = pa.RecordBatch.from_pylist(
        [{**row, "other": dump_value("a")}, {**row, "other": None}]
    )
    assert list(windowed.from_pairs(batch)) == [
        ("k", ("A", "a"), 9),
        ("k", ("A", None), 9),
    ]
