"""Sets of offsets, against Python's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.compaction.bits import Bits

BASE = 1000
NUMBERS = st.sets(st.integers(BASE, BASE + 5000), max_size=60)


@given(NUMBERS, st.integers(BASE, BASE + 5000), st.integers(BASE, BASE + 5000))
def test_what_is_set_is_there_and_nothing_else(
    numbers: set[int], begin: int, end: int
) -> None:
    bits = Bits(BASE)
    for one in numbers:
        bits.set(one)
    assert {one for one in range(BASE, BASE + 5001) if one in bits} == numbers
    assert bits.within(begin, end) == sorted(n for n in numbers if begin <= n < end)


@given(NUMBERS, st.integers(BASE, BASE + 6000))
def test_windows_leave_nothing_out_and_have_something_each(
    numbers: set[int], end: int
) -> None:
    bits = Bits(BASE)
    for one in numbers:
        bits.set(one)
    found = [bits.within(*window) for window in bits.windows(end, 64)]
    assert [one for each in found for one in each] == sorted(
        one for one in numbers if one < end
    )
