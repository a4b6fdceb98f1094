"""Entries of sealed indexes that were read last: who reads on finds the next ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.file.block import ENTRY

if TYPE_CHECKING:
    from ropeway.storage.file.segment import Segment

WINDOW = 200
"""Entries that are read where fewer are wanted: about a page."""

MOST_WINDOWS = 512
"""With what they hold, 3 MiB."""


class Windows:
    """A run of entries for each partition of a segment, a bounded number of them."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: dict[tuple[Segment, int], tuple[int, memoryview]] = {}
        """By segment and ordinal: the number of the first one, and the bytes."""

    def get(
        self, segment: Segment, ordinal: int, first: int, count: int
    ) -> memoryview | None:
        """So many entries from the first on; None where some are not there."""
        found = self._windows.get((segment, ordinal))
        if found is None:
            return None
        start, data = found
        begin = (first - start) * ENTRY.size
        end = begin + count * ENTRY.size
        if begin < 0 or end > len(data):
            return None
        return data[begin:end]

    def keep(
        self, segment: Segment, ordinal: int, first: int, data: memoryview
    ) -> None:
        """Keep entries in place of those of the same partition."""
        self._windows[segment, ordinal] = first, data
        if len(self._windows) > MOST_WINDOWS:
            del self._windows[next(iter(self._windows))]
