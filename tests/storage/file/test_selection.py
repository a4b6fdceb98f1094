"""Choosing records by their entries: neighbours at once, others one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.storage.file import selection
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.compiled import may_be_compiled
from ropeway.storage.file.selection import are_whole, grouped, pick
from tests.compiler import needs_compiled_forms

if TYPE_CHECKING:
    from collections.abc import Callable

FORMS = [
    pytest.param(0, id="Python"),
    pytest.param(1, id="compiled", marks=needs_compiled_forms),
]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[..., object]:
    """Each form of `pick`."""
    found = may_be_compiled.twins[pick.__name__][request.param]
    assert found is not None
    return found


def entries_of(*records: tuple[int, int]) -> bytes:
    return b"".join(ENTRY.pack(place, size, 0, 0) for place, size in records)


@pytest.mark.parametrize("entries", [b"", bytes(19), bytes(21)])
def test_entries_have_to_be_whole(form: Callable[..., object], entries: bytes) -> None:
    with pytest.raises(ValueError, match="allowed: at least 1 times 20"):
        form(entries, 9, 3, 157, None, True)


def test_neighbours_are_one_extent(form: Callable[..., object]) -> None:
    entries = entries_of((64, 100), (164, 50), (214, 7))
    found = form(entries, 9, 3, 157, None, True)
    assert found == ([(64, 157, 3)], [100, 50, 7], 12, 3, False)


@pytest.mark.parametrize(
    ("records", "found"),
    [
        (((64, 100), (165, 50)), ([(64, 100, 1), (165, 50, 1)], [100, 50], 11, 2, 0)),
        (
            ((64, 100), (164, 50), (164, 0), (214, 7)),
            ([(64, 157, 3)], [100, 50, 7], 13, 4, 0),
        ),
        (((64, 100), (164, 58)), ([(64, 100, 1)], [100], 10, 1, 1)),
        (((64, 0),), ([], [], 10, 1, 0)),
        (
            ((64, 10), (500, 10), (84, 10)),
            ([(64, 10, 1), (500, 10, 1), (84, 10, 1)], [10, 10, 10], 12, 3, 0),
        ),
    ],
    ids=[
        "a gap",
        "a lost record",
        "over the limit",
        "nothing but lost ones",
        "one from elsewhere whose neighbours seem to be adjacent",
    ],
)
def test_what_is_not_whole_or_too_long_ends_an_extent(
    form: Callable[..., object],
    records: tuple[tuple[int, int], ...],
    found: tuple[object, ...],
) -> None:
    assert form(entries_of(*records), 9, 4, 157, None, True) == found


def test_records_that_match_a_tag_are_extents_of_neighbours(
    form: Callable[..., tuple[object, ...]],
) -> None:
    entries = b"".join(
        ENTRY.pack(place, 10, tag_hash, 0)
        for place, tag_hash in ((0, -1), (10, -1), (20, 2), (30, -1))
    )
    extents = [(0, 20, 2), (30, 10, 1)]
    assert form(entries, 5, 9, 100, {-1}, True) == (extents, [10] * 3, 9, 4, False)
    assert form(entries, 5, 2, 100, {-1}, True)[2] == 7
    assert form(entries, 5, 9, 25, {-1}, True)[4] is True


def test_only_a_forced_pick_takes_a_record_over_the_limit(
    form: Callable[..., tuple[object, ...]],
) -> None:
    entries = entries_of((64, 100))
    assert form(entries, 0, 1, 50, None, True)[1] == [100]
    assert form(entries, 0, 1, 50, None, False) == ([], [], 0, 1, True)


def test_records_are_whole_where_each_says_its_own_size() -> None:
    records = b"\0\0\0\5a" + b"\0\0\0\6bc"
    assert are_whole(records, [5, 6])
    assert are_whole(memoryview(records), [5])
    assert not are_whole(records, [5, 7])
    assert not are_whole(records, [6, 5])
    assert not are_whole(records[:-1], [5, 6])
    assert not are_whole(b"\0\0\0\3", [3])


def test_records_back_to_back_are_found_without_a_look_at_each() -> None:
    entries = b"".join(ENTRY.pack(100 + 10 * n, 10, 0, 1) for n in range(40))
    found = selection._adjacent(entries, 7, 1 << 20)
    assert found == ([(100, 400, 40)], [10] * 40, 47, 40, False)
    assert selection._adjacent(entries, 7, 399) is None
    assert (
        selection._adjacent(entries[: 20 * len(entries) // 40] * 2, 7, 1 << 20) is None
    )


@pytest.mark.parametrize(
    ("extents", "groups"),
    [
        ([], []),
        ([(0, 10, 1), (50, 10, 1)], [(0, 60)]),
        ([(0, 10, 1), (5000, 10, 1)], [(0, 10), (5000, 10)]),
        ([(5000, 10, 1), (0, 10, 1)], [(5000, 10), (0, 10)]),
    ],
)
def test_extents_near_each_other_are_fetched_at_once(
    extents: list[tuple[int, int, int]], groups: list[tuple[int, int]]
) -> None:
    found = grouped(extents)
    assert [(place, size) for place, size, _ in found] == groups
    assert [one for _, _, members in found for one in members] == extents
