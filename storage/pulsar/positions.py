"""Where packs are in Pulsar: a sparse array from offsets to positions. No I/O here.

It may forget, and never be wrong: what it says is where a reader begins, and each pack
says its own offset. So nothing of it is stored; appends and reads fill it again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

_NONE = array("q")
"""A column of a partition of which nothing is known, as of most of many topics."""


class Spot(NamedTuple):
    """Where one pack is."""

    offset: int
    """Of its first record."""
    time_ms: int
    """Store time of its first record."""
    ledger: int
    entry: int


class Positions:
    """Spots of one partition, ascending; the newest stand close, older ones far apart.

    Args:
        limit: Keep at most so many, at least 4.
    """

    __slots__ = ("_entries", "_ledgers", "_limit", "_offsets", "_times")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._offsets = self._times = self._ledgers = self._entries = _NONE

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int, time_ms: int, ledger: int, entry: int) -> None:
        """Learn where a pack is; one behind all others is always kept."""
        if self._offsets is _NONE:
            self._offsets, self._times = array("q"), array("q")
            self._ledgers, self._entries = array("q"), array("q")
        offsets = self._offsets
        if not offsets or offset > offsets[-1]:
            at = len(offsets)
        else:
            at = bisect_left(offsets, offset)
            if offsets[at] == offset or self._is_close(at, offset):
                return
        offsets.insert(at, offset)
        self._times.insert(at, time_ms)
        self._ledgers.insert(at, ledger)
        self._entries.insert(at, entry)
        if len(offsets) > self._limit:
            self._thin()

    def _is_close(self, at: int, offset: int) -> bool:
        """Whether one more between two that are known would tell little."""
        offsets = self._offsets
        share = (offsets[-1] - offsets[0]) * 2 // self._limit
        return at > 0 and offset - offsets[at - 1] < share

    def _thin(self) -> None:
        """Forget every second one but for the newest; so the oldest go most often."""
        for column in (self._offsets, self._times, self._ledgers, self._entries):
            del column[1:-1:2]

    def floor(self, offset: int) -> Spot | None:
        """The last known pack that begins at or before an offset."""
        at = bisect_right(self._offsets, offset)
        return self._spot(at - 1) if at else None

    def above(self, offset: int) -> Spot | None:
        """The first known pack that begins behind an offset."""
        at = bisect_right(self._offsets, offset)
        return self._spot(at) if at < len(self._offsets) else None

    def before(self, time_ms: int) -> Spot | None:
        """The last known pack whose first record was stored before a time."""
        at = bisect_left(self._times, time_ms)
        return self._spot(at - 1) if at else None

    def since(self, time_ms: int) -> Spot | None:
        """The first known pack whose first record was stored at or after a time."""
        at = bisect_left(self._times, time_ms)
        return self._spot(at) if at < len(self._offsets) else None

    def trim(self, first: int) -> None:
        """Forget the packs before an offset; they are no longer there."""
        at = bisect_left(self._offsets, first)
        for column in (self._offsets, self._times, self._ledgers, self._entries):
            del column[:at]

    def _spot(self, at: int) -> Spot:
        return Spot(
            self._offsets[at], self._times[at], self._ledgers[at], self._entries[at]
        )
