"""Choosing records by their entries: neighbours at once, others one by one."""

import pytest

from storage.file.block import ENTRY
from storage.file.picking import Pick, adjacent, pick


def entries_of(*records: tuple[int, int]) -> bytes:
    return b"".join(ENTRY.pack(place, size, 0, 0) for place, size in records)


def test_neighbours_are_one_extent_without_a_look_at_each() -> None:
    found = adjacent(entries_of((64, 100), (164, 50), (214, 7)), 9, 157)
    assert found == Pick([(64, 157, 3)], [100, 50, 7], 12, 3, full=False)


@pytest.mark.parametrize(
    "records",
    [
        ((64, 100), (165, 50)),
        ((64, 100), (164, 50), (164, 0), (214, 7)),
        ((64, 100), (164, 58)),
    ],
    ids=["a gap", "a lost record", "over the limit"],
)
def test_what_is_not_whole_or_too_long_is_looked_at_one_by_one(
    records: tuple[tuple[int, int], ...],
) -> None:
    assert adjacent(entries_of(*records), 9, 157) is None


def test_records_that_match_a_tag_are_extents_of_neighbours() -> None:
    entries = b"".join(
        ENTRY.pack(place, 10, tag_hash, 0)
        for place, tag_hash in ((0, 1), (10, 1), (20, 2), (30, 1))
    )
    found = pick(entries, 5, 9, 100, {1}, forced=True)
    assert found == Pick([(0, 20, 2), (30, 10, 1)], [10, 10, 10], 9, 4, full=False)
    assert pick(entries, 5, 2, 100, {1}, forced=True).next_offset == 7
    assert pick(entries, 5, 9, 25, {1}, forced=True).full


def test_only_a_forced_pick_takes_a_record_over_the_limit() -> None:
    entries = entries_of((64, 100))
    assert pick(entries, 0, 1, 50, None, forced=True).sizes == [100]
    assert pick(entries, 0, 1, 50, None, forced=False).sizes == []
