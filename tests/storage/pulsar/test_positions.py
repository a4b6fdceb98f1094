"""The sparse array forgets and is never wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.pulsar.positions import Positions, Spot


def spot(offset: int) -> Spot:
    return Spot(offset, offset * 10, offset // 100, offset % 100)


@given(
    st.lists(st.integers(0, 2000), max_size=300, unique=True),
    st.integers(4, 40),
    st.integers(-1, 2001),
)
def test_what_it_says_was_told_and_lies_on_the_right_side(
    offsets: list[int], limit: int, offset: int
) -> None:
    positions = Positions(limit)
    for one in offsets:
        positions.add(*spot(one))
    assert len(positions) <= limit
    floor, above = positions.floor(offset), positions.above(offset)
    assert floor is None or (floor == spot(floor.offset) and floor.offset <= offset)
    assert above is None or (above == spot(above.offset) and above.offset > offset)
    before, since = positions.before(offset), positions.since(offset)
    assert before is None or before.time_ms < offset
    assert since is None or since.time_ms >= offset


@given(st.integers(1, 3000), st.integers(4, 64))
def test_appends_leave_the_newest_close_and_the_oldest_there(
    count: int, limit: int
) -> None:
    positions = Positions(limit)
    for offset in range(0, 10 * count, 10):
        positions.add(*spot(offset))
    newest = 10 * (count - 1)
    assert positions.floor(newest + 5) == spot(newest)
    assert positions.floor(5) == spot(0)


def test_a_reader_that_goes_through_all_does_not_push_the_rest_out() -> None:
    positions = Positions(64)
    for offset in range(0, 100_000, 100):
        positions.add(*spot(offset))
    for offset in range(50, 100_000, 100):
        positions.add(*spot(offset))
    assert 32 <= len(positions) <= 64
    assert positions.floor(10) == spot(0)
    assert positions.floor(99_900) == spot(99_900)


def test_what_retention_deletes_is_forgotten() -> None:
    positions = Positions(8)
    for offset in (0, 10, 20):
        positions.add(*spot(offset))
    positions.trim(10)
    assert positions.floor(9) is None
    assert positions.floor(15) == spot(10)


def test_what_is_known_or_close_to_it_is_not_added_again() -> None:
    positions = Positions(10)
    for offset in (0, 50, 100):
        positions.add(*spot(offset))
    for offset in (0, 50, 100, 51, 69):
        positions.add(*spot(offset))
        assert len(positions) == 3
    positions.add(*spot(70))
    assert len(positions) == 4
    assert positions.floor(75) == spot(70)


def test_partitions_of_which_nothing_is_known_share_what_they_know_nothing_in():
    """Four empty columns each were a third of what an unused partition took."""
    first, second = Positions(8), Positions(8)
    first.trim(5)
    assert first._offsets is second._entries
    first.add(3, 30, 1, 2)
    assert (len(first), len(second)) == (1, 0)
    assert second.floor(9) is second.since(0) is None
    second.add(4, 40, 5, 6)
    assert (first.floor(9), second.floor(9)) == ((3, 30, 1, 2), (4, 40, 5, 6))
