"""Windows take records in, all of their windows or none."""

from __future__ import annotations

import pytest

from ropeway.streams.aggregates import Sum
from ropeway.streams.open_windows import Adding, Open
from ropeway.streams.windows import Session, Tumbling, Window


def adding(window: Window, *windows: Open) -> Adding:
    return Adding(window, lambda: Sum(None), list(windows))


def kept(begin_ms: int, end_ms: int, total: int) -> Open:
    """A window that is there already."""
    before = adding(Tumbling(end_ms - begin_ms))
    before.add([(begin_ms, end_ms)], total, 0)
    (window,) = before.end()
    return window


def test_what_is_changed_and_what_is_new_are_told() -> None:
    one = adding(Tumbling(10), kept(0, 10, 1), kept(10, 20, 1))
    one.add([(0, 10)], 5, 100)
    one.add([(20, 30)], 7, 100)
    assert [folding.result() for _, folding in one.changed] == [6, 7]
    assert [window.begin_ms for window in one.new] == [20]
    assert one.gone == []
    assert [window.touched_ms for window in one.end()] == [100, 0, 100]


def test_sessions_that_touch_become_one_and_are_gone_themselves() -> None:
    one = adding(Session(5), kept(0, 5, 1), kept(9, 14, 2), kept(30, 35, 3))
    one.add([(4, 9)], 4, 100)
    assert one.gone == [(0, 5), (9, 14)]
    ((window, folding),) = one.changed
    assert (window.begin_ms, window.end_ms, folding.result()) == (0, 14, 7)
    assert one.new == [window]


def test_a_value_that_fails_leaves_all_as_it_was() -> None:
    for window, places in (
        (Tumbling(10), [(0, 10), (10, 20)]),
        (Session(10), [(4, 14)]),
    ):
        one = adding(window, kept(0, 10, 1), kept(10, 20, 2))
        with pytest.raises(TypeError):
            one.add(places, "text", 100)
        assert one.changed == one.new == one.gone == []
        assert len(one.end()) == 2
