"""Places for everybody: who comes always finds some."""

from __future__ import annotations

from ropeway.gateway.node.fair_share import FairShare


def taken(places: FairShare, whose: str) -> int:
    """As many as there are for somebody."""
    count = 0
    while places.take(whose):
        count += 1
    return count


def test_nobody_takes_what_others_need():
    places = FairShare(1000)
    assert taken(places, "first") == 501
    assert taken(places, "second") == 250
    assert taken(places, "third") == 125
    for _ in range(501):
        places.leave("first")
    assert taken(places, "second") == 188
    assert places.taken == 250 + 125 + 188


def test_the_last_place_is_anybodys():
    places = FairShare(1)
    assert places.take("first")
    assert not places.take("second")
    places.leave("first")
    assert places.take("second")
    assert not FairShare(0).take("first")
