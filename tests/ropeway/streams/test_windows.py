"""Windows have lengths."""

from __future__ import annotations

import pytest

from ropeway.streams.windows import Firing, Session, Sliding, Tumbling, spans


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Tumbling(0), "size_ms is 0; allowed: from 1"),
        (lambda: Session(-1), "gap_ms is -1; allowed: from 1"),
        (lambda: Sliding(10, 0), "slide_ms is 0; allowed: from 1"),
        (lambda: Sliding(10, 11), "slide_ms is 11; allowed: up to size_ms, 10"),
    ],
)
def test_a_window_without_length_is_refused(make, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


def test_windows_are_told_apart() -> None:
    assert Tumbling(5) == Tumbling(5) != Tumbling(6)
    assert Sliding(10, 10).slide_ms == 10


@pytest.mark.parametrize(
    ("window", "time_ms", "found"),
    [
        (Tumbling(10), -1, [(-10, 0)]),
        (Tumbling(10), 10, [(10, 20)]),
        (Sliding(10, 5), 9, [(5, 15), (0, 10)]),
        (Sliding(10, 4), 8, [(8, 18), (4, 14), (0, 10)]),
        (Session(3), 7, [(7, 10)]),
    ],
)
def test_a_time_is_in_its_windows(window, time_ms: int, found: list) -> None:
    assert spans(window, time_ms) == found


def test_the_clock_is_looked_at_as_often_as_the_shorter_time_says() -> None:
    assert Firing().tick_ms is None
    assert Firing(idle_ms=300).tick_ms == 300
    assert Firing(early_ms=200, idle_ms=300).tick_ms == 200
