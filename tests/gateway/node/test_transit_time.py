"""How long requests were on their way, by clocks that do not agree."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.transit_time import MAX_LINKS, WINDOW_MS, TransitTime


@pytest.mark.parametrize("apart_ms", [0, 5_000_000, -5_000_000])
def test_what_comes_later_than_the_fastest_was_on_its_way(apart_ms: int):
    transit = TransitTime()
    took = [
        transit.took_ms("a", sent_ms, sent_ms + way_ms + apart_ms)
        for sent_ms, way_ms in ((0, 30), (100, 10), (200, 10), (300, 9_010))
    ]
    assert took == [0, 0, 0, 9_000]


def test_each_link_has_a_way_of_its_own_and_old_ones_are_forgotten():
    transit = TransitTime()
    for number in range(MAX_LINKS + 1):
        assert transit.took_ms(str(number), 0, number) == 0
    assert transit.took_ms(str(MAX_LINKS), 0, MAX_LINKS + 7) == 7
    # The first one begins anew.
    assert transit.took_ms("0", 0, 7) == 0


def test_clocks_of_different_pace_do_not_drift_apart_for_ever():
    transit = TransitTime()
    took = [
        transit.took_ms("a", sent_ms, sent_ms + sent_ms // 10_000)
        for sent_ms in range(0, 100 * WINDOW_MS, WINDOW_MS // 10)
    ]
    assert max(took) <= 2 * WINDOW_MS // 10_000


def test_what_was_seen_a_window_ago_counts_and_before_that_not():
    transit = TransitTime()
    transit.took_ms("a", 0, 0)
    assert transit.took_ms("a", WINDOW_MS, WINDOW_MS + 50) == 50
    assert transit.took_ms("a", 2 * WINDOW_MS, 2 * WINDOW_MS + 60) == 10
    assert transit.took_ms("a", 4 * WINDOW_MS, 4 * WINDOW_MS + 90) == 0
