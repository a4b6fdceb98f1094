"""What is old enough goes, oldest first, by the time that its topic asks for."""

from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_partition import Segment, TierPartition
from ropeway.storage.tiered.tier_retention import outlived


def flat(topic, *written_ms):
    made = TierPartition(topic, 0, 1)
    for at, ms in enumerate(written_ms):
        made.add(Segment(SegmentName(topic, 0, 1, at, at + 1), 0, 0, ms, 0, 0))
    return made


def bases(old):
    return [(one.name.topic, one.base) for one in old]


def test_the_oldest_go_and_one_that_is_kept_keeps_those_behind_it():
    old = outlived([flat("a", 10, 20, 90, 15)], 100, 60, lambda _: None)
    assert bases(old) == [("a", 0), ("a", 1)]


def test_a_topic_that_says_how_long_comes_before_the_settings():
    flats = [flat("a", 10, 50), flat("b", 10, 50)]
    asked = {"b": 95}.get
    assert bases(outlived(flats, 100, 60, asked)) == [("a", 0)]
    asked = {"b": 20}.get
    assert bases(outlived(flats, 100, None, asked)) == [("b", 0), ("b", 1)]


def test_without_a_time_all_stays():
    assert outlived([flat("a", 1, 2)], 1 << 50, None, lambda _: None) == []
