"""A partition's segments: which has an offset, what is missing, what replaces what."""

import pytest

from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_partition import Segment, TierPartition, chosen


def segment(base, end):
    return Segment(SegmentName("t", 0, 1, base, end), 0, 0, 0, 0, 0)


@pytest.fixture
def flat():
    made = TierPartition("t", 0, 1)
    for base, end in [(20, 30), (0, 10), (10, 20), (50, 60)]:
        made.add(segment(base, end))
    return made


def test_an_offset_is_located_or_the_next_one_there_is(flat):
    for offset, base in [
        (-5, 0),
        (0, 0),
        (9, 0),
        (10, 10),
        (29, 20),
        (30, 50),
        (59, 50),
    ]:
        found = flat.locate(offset)
        assert found is not None
        assert found.base == base
    assert flat.locate(60) is None
    assert (flat.first, flat.end) == (0, 60)
    empty = TierPartition("t", 0, 1)
    assert (empty.locate(0), empty.first, empty.end) == (None, 0, 0)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ((0, 30), (30, 30)),
        ((5, 40), (30, 40)),
        ((25, 100), (30, 50)),
        ((55, 70), (60, 70)),
        ((35, 45), (35, 45)),
        ((100, 110), (100, 110)),
    ],
)
def test_the_first_part_that_is_missing_is_told(flat, asked, missing):
    assert flat.uncovered(*asked) == missing


def test_a_larger_segment_takes_the_place_of_those_it_covers(flat):
    old = flat.locate(10)
    flat.add(segment(0, 30))
    assert [(one.base, one.end) for one in flat.segments] == [(0, 30), (50, 60)]
    assert not flat.has(old)
    flat.drop(old)
    flat.drop(segment(50, 60))
    assert [(one.base, one.end) for one in flat.segments] == [(0, 30)]


def test_of_a_listing_the_larger_ones_count():
    kept, covered = chosen(
        [segment(*one) for one in [(0, 10), (10, 20), (0, 20), (20, 30), (20, 21)]]
    )
    assert [(one.base, one.end) for one in kept] == [(0, 20), (20, 30)]
    assert [(one.base, one.end) for one in covered] == [(0, 10), (10, 20), (20, 21)]
