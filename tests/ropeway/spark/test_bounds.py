"""Conditions on offsets and times narrow what is read, and never by a row too many."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from ropeway.spark.bounds import MARGIN_MS, Bounds

DAY_MS = 86_400_000
KINDS = {
    GreaterThan: lambda at, value: at > value,
    GreaterThanOrEqual: lambda at, value: at >= value,
    LessThan: lambda at, value: at < value,
    LessThanOrEqual: lambda at, value: at <= value,
    EqualTo: lambda at, value: at == value,
}
CONDITION = st.tuples(st.sampled_from([*KINDS]), st.integers(0, 12))


def narrowed(
    filters: list[Filter], times_ms: list[int], *, is_nearer: bool = False
) -> tuple[int, int]:
    """What is left of a queue; a broker of RocketMQ 4 may answer with one before."""

    async def offset_at(time_ms: int) -> int:
        found = bisect_left(times_ms, time_ms)
        return max(0, found - 1) if is_nearer else found

    bounds = Bounds()
    for one in filters:
        bounds.take(one)
    return asyncio.run(bounds.narrow(0, len(times_ms), offset_at))


def at(time_ms: float) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


@given(
    st.lists(CONDITION, max_size=3),
    st.lists(CONDITION, max_size=3),
    st.lists(st.integers(0, MARGIN_MS), min_size=12, max_size=12),
    st.booleans(),
)
@example([(EqualTo, 5)], [(GreaterThan, 0), (LessThan, 9)], [MARGIN_MS, 0] * 6, True)
def test_no_row_that_is_wanted_is_left_out(
    of_offsets: list[tuple[type, int]],
    of_times: list[tuple[type, int]],
    back_ms: list[int],
    is_nearer: bool,
) -> None:
    # A clock that is set back by an hour at most.
    step_ms = MARGIN_MS // 2
    times_ms = [MARGIN_MS + one * step_ms - back for one, back in enumerate(back_ms)]
    filters = [kind(("offset",), value) for kind, value in of_offsets]
    filters += [
        kind(("timestamp",), at(MARGIN_MS + value * step_ms))
        for kind, value in of_times
    ]
    begin, end = narrowed(filters, times_ms, is_nearer=is_nearer)
    wanted = [
        offset
        for offset, time_ms in enumerate(times_ms)
        if all(KINDS[kind](offset, value) for kind, value in of_offsets)
        and all(
            KINDS[kind](time_ms, MARGIN_MS + value * step_ms)
            for kind, value in of_times
        )
    ]
    assert not wanted or begin <= wanted[0] <= wanted[-1] < end


def test_what_is_far_away_is_not_read() -> None:
    days_ms = [day * DAY_MS for day in range(10)]
    since = GreaterThanOrEqual(("timestamp",), at(4 * DAY_MS))
    until = LessThan(("timestamp",), at(6 * DAY_MS))
    assert narrowed([since], days_ms) == (4, 10)
    assert narrowed([since, until], days_ms) == (4, 8)
    assert narrowed([EqualTo(("offset",), 3)], days_ms) == (3, 4)
    assert narrowed([In(("offset",), (3, None, 5))], days_ms) == (3, 6)
    assert narrowed([In(("timestamp",), (at(0), at(DAY_MS)))], days_ms) == (0, 3)
    assert narrowed([EqualTo(("timestamp",), at(-1))], days_ms) == (0, 2)


def test_other_conditions_narrow_nothing() -> None:
    others = [
        IsNull(("timestamp",)),
        EqualTo(("born_timestamp",), at(DAY_MS)),
        GreaterThan(("offset", "in"), 5),
        EqualTo(("offset",), None),
    ]
    assert narrowed(others, [0] * 4) == (0, 4)
