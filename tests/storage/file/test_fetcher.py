"""Fetching: how extents are put together."""

from __future__ import annotations

import pytest

from storage.file.fetcher import grouped


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
