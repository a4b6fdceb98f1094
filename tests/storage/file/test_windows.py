"""Windows give entries that were read before, and are a bounded number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.segment import Segment
from ropeway.storage.file.windows import MOST_WINDOWS, Windows

if TYPE_CHECKING:
    from pathlib import Path


def entries(first: int, count: int) -> memoryview:
    return memoryview(b"".join(ENTRY.pack(first + n, 1, 0, 0) for n in range(count)))


def test_entries_are_found_where_all_are_there(tmp_path: Path) -> None:
    segment, other = Segment(tmp_path, 0, 1), Segment(tmp_path, 1, 1)
    windows = Windows()
    windows.keep(segment, 3, 10, entries(10, 5))
    assert windows.get(segment, 3, 10, 5) == entries(10, 5)
    assert windows.get(segment, 3, 12, 2) == entries(12, 2)
    for where in [(segment, 3, 9, 2), (segment, 3, 14, 2), (segment, 3, 15, 1)]:
        assert windows.get(*where) is None
    assert windows.get(segment, 4, 10, 1) is None
    assert windows.get(other, 3, 10, 1) is None


def test_new_ones_take_the_place_of_those_that_came_first(tmp_path: Path) -> None:
    segment = Segment(tmp_path, 0, 1)
    windows = Windows()
    for ordinal in range(MOST_WINDOWS + 1):
        windows.keep(segment, ordinal, 0, entries(0, 1))
    windows.keep(segment, 1, 5, entries(5, 1))
    assert windows.get(segment, 0, 0, 1) is None
    assert windows.get(segment, 1, 0, 1) is None
    assert windows.get(segment, 1, 5, 1) == entries(5, 1)
    assert windows.get(segment, MOST_WINDOWS, 0, 1) == entries(0, 1)
