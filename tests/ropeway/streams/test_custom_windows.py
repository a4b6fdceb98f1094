"""Windows of our own, record by record, with a clock of the test's."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from pyspark.sql import Row

from ropeway.streams import carried
from ropeway.streams.aggregates import Sum
from ropeway.streams.custom_windows import LATE, Plan, Windowing, from_windows
from ropeway.streams.mirror import StateMirror
from ropeway.streams.records import StepError, dump_key, dump_value, load, to_records
from ropeway.streams.windows import Firing, Session, Sliding, Tumbling, Window, Windowed
from tests.ropeway.streams.stateful import Handle, Times

KEY = (dump_key("k"),)


class Stream:
    """The windows of one key."""

    def __init__(self, window: Window, *, firing: Firing | None = None, **more) -> None:
        self.late: list = []
        late = self.late.extend if more.pop("tells_late", False) else None
        plan = Plan(window, partial(Sum, None), firing or Firing(), late)
        self.windowing = Windowing("step", plan, **more)
        self.handle = Handle()
        self.windowing.init(self.handle)

    def send(self, *values: tuple[int, Any], times: Times | None = None) -> list:
        """What a batch gives at once."""
        rows = [Row(at_ms=at_ms, value=dump_value(value)) for at_ms, value in values]
        found = self.windowing.handleInputRows(KEY, iter(rows), times or Times())
        return [shown(row) for row in found]

    def fire(self, times: Times) -> list:
        """What timers give behind it."""
        firing = self.windowing._plan.firing
        until_ms = times.getCurrentWatermarkInMs()
        if firing.tick_ms is not None:
            until_ms = times.getCurrentProcessingTimeInMs()

        def expired() -> list:
            return list(self.windowing.handleExpiredTimer(KEY, times, None))

        return [shown(row) for row in self.handle.expire(until_ms, expired)]

    @property
    def is_forgotten(self) -> bool:
        return self.handle.states["windows"].kept is None


def shown(row: Row) -> Any:
    """A result as begin, end and value, another row by what it says."""
    if row.key == LATE:
        return "late"
    if carried.is_carried(row.key):
        topic, key = row.key[1:].decode().split("\0")
        return topic, key, json.loads(row.value) if row.value else None
    key, begin_ms, end_ms = load(row.key)
    assert key == "k"
    assert row.at_ms == end_ms - 1
    return begin_ms, end_ms, load(row.value)


def test_a_window_gives_its_result_when_it_is_over_and_is_forgotten() -> None:
    stream = Stream(Tumbling(10))
    assert stream.send((1, 5), (9, 2), (10, 7)) == []
    # It is over when the watermark has come to its end, not before.
    assert stream.fire(Times(watermark_ms=9)) == []
    assert stream.fire(Times(watermark_ms=10)) == [(0, 10, 7)]
    assert stream.fire(Times(watermark_ms=20)) == [(10, 20, 7)]
    assert stream.is_forgotten


@pytest.mark.parametrize(
    ("window", "results"),
    [
        (Sliding(10, 5), [(-5, 5, 1), (0, 10, 3), (5, 15, 6), (10, 20, 4)]),
        (Session(5), [(1, 12, 3), (13, 18, 4)]),
        # The one in the middle makes one of three.
        (Session(6), [(1, 19, 7)]),
    ],
)
def test_windows_are_those_of_their_kind(window: Window, results: list) -> None:
    stream = Stream(window)
    stream.send((1, 1), (13, 4))
    stream.send((7, 2)) if window != Session(5) else stream.send((6, 1), (7, 1))
    assert stream.fire(Times(watermark_ms=100)) == results


def test_what_is_late_for_all_its_windows_is_counted_and_told() -> None:
    stream = Stream(Sliding(10, 5), tells_late=True)
    times = Times(watermark_ms=10)
    # At 4 both windows are over, at 5 one of them is not.
    assert stream.send((4, 1), (5, 2), times=times) == ["late"]
    assert stream.late == []
    stream.windowing.close()
    assert stream.late == [(("k", 1, 4), "step 'step' is at 10")]
    assert stream.fire(Times(watermark_ms=15)) == [(5, 15, 2)]


def test_early_results_come_by_the_clock_while_there_is_news() -> None:
    stream = Stream(Tumbling(10), firing=Firing(early_ms=1000))
    stream.send((1, 5), times=Times(now_ms=0))
    assert stream.fire(Times(now_ms=1001)) == [(0, 10, 5)]
    assert stream.fire(Times(now_ms=2100)) == []
    stream.send((2, 1), times=Times(now_ms=2200))
    assert stream.fire(Times(now_ms=3300)) == [(0, 10, 6)]
    # Nothing new, nothing more; and no timer is left.
    assert stream.fire(Times(now_ms=4400, watermark_ms=10)) == []
    assert stream.is_forgotten
    assert not stream.handle.timers


def test_an_idle_window_gives_what_it_has_and_goes_on() -> None:
    stream = Stream(Tumbling(10), firing=Firing(idle_ms=1000))
    stream.send((1, 5), times=Times(now_ms=0))
    stream.send((1, 5), times=Times(now_ms=900))
    assert stream.fire(Times(now_ms=1001)) == []
    assert stream.fire(Times(now_ms=2002)) == [(0, 10, 10)]
    stream.send((3, 1), times=Times(now_ms=2100))
    assert stream.fire(Times(now_ms=3200, watermark_ms=10)) == [(0, 10, 11)]
    assert stream.is_forgotten


def test_what_fails_is_put_aside_and_in_none_of_the_windows() -> None:
    dead: list = []
    stream = Stream(Sliding(10, 5), dead=dead.extend)
    stream.send((1, 5), (6, "six"), (7, 1))
    stream.windowing.close()
    ((record, error),) = dead
    assert record == ("k", "six", 6)
    assert str(error).startswith("step 'step' failed at 'six': TypeError")
    assert stream.fire(Times(watermark_ms=15)) == [(-5, 5, 5), (0, 10, 6), (5, 15, 1)]
    with pytest.raises(StepError, match="step 'step' failed at 'six'"):
        Stream(Session(5)).send((1, 5), (2, "six"))


def test_a_mirror_is_told_of_each_window_and_of_its_end() -> None:
    mirror = StateMirror("step", "states", "offsets", "sink")
    stream = Stream(Session(5), mirror=mirror)

    def state(total: int, count: int) -> dict:
        return {"state": {"total": total, "count": count}, "has_news": True}

    assert stream.send((1, 5)) == [("states", '["k", 1, 6]', state(5, 1))]
    # A session that grows is another window.
    assert stream.send((3, 2)) == [
        ("states", '["k", 1, 8]', state(7, 2)),
        ("states", '["k", 1, 6]', None),
    ]
    assert stream.fire(Times(watermark_ms=8)) == [
        (1, 8, 7),
        ("states", '["k", 1, 8]', None),
        ("offsets", '["sink", "step"]', 8),
    ]


def test_windows_go_on_from_what_a_mirror_has() -> None:
    mirror = StateMirror("step", "states", "offsets", "sink", watermark_ms=10)
    stream = Stream(Tumbling(10), mirror=mirror)
    kept = dump_value([(10, 20, {"total": 7, "count": 2}, True)])
    stream.windowing.handleInitialState(KEY, Row(state=kept), Times())
    # Spark's watermark begins anew, but what was late is late.
    found = stream.send((1, 5), (11, 1))
    assert found[:2] == ["late", ("states", '["k", 10, 20]', found[1][2])]
    assert found[1][2]["state"] == {"total": 8, "count": 3}
    assert stream.fire(Times(watermark_ms=20))[0] == (10, 20, 8)


def test_results_are_read_by_their_windows() -> None:
    batch = to_records([(("k", 0, 10), 7, 9)])
    ((key, value, time_ms),) = from_windows(batch)
    assert (key, value, time_ms) == (Windowed("k", 0, 10), 7, 9)
    assert key.begin_ms == 0
