"""One partition in the tier: its segments in order, without gaps in memory or I/O.

Where log and tier were apart for a while, records may be missing between two segments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ropeway.storage.sealed.layout import About
    from ropeway.storage.tiered.object_names import SegmentName


class Segment(NamedTuple):
    """A sealed segment, and what is known of it without reading it."""

    name: SegmentName
    least_ms: int
    most_ms: int
    """The smallest and the largest store time."""
    written_ms: int
    """When its newest record was written, by the gateway's clock."""
    bytes: int
    """Of its data object."""
    keys: int

    @property
    def base(self) -> int:
        """The offset of its first record."""
        return self.name.base

    @property
    def end(self) -> int:
        """One past the offset of its last record."""
        return self.name.end


def segment_of(name: SegmentName, about: About | None = None) -> Segment:
    """A segment by what its index says; without that, nothing is known of it."""
    if about is None:
        return Segment(name, 0, 0, 0, 0, 0)
    times = about.least_ms, about.most_ms, about.written_ms
    return Segment(name, *times, about.data_bytes, about.keys)


class TierPartition:
    """The segments of one partition; no two of them share a record."""

    __slots__ = ("_bases", "identity", "number", "segments", "topic")

    def __init__(self, topic: str, number: int, identity: int) -> None:
        self.topic = topic
        self.number = number
        self.identity = identity
        self.segments: list[Segment] = []
        self._bases: list[int] = []

    @property
    def first(self) -> int:
        """The oldest offset; 0 where there is none."""
        return self._bases[0] if self._bases else 0

    @property
    def end(self) -> int:
        """One past the newest offset; 0 where there is none."""
        return self.segments[-1].end if self.segments else 0

    def locate(self, offset: int) -> Segment | None:
        """The segment that has an offset, or the next one there is."""
        at = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self.segments[at : at + 2]:
            if offset < segment.end:
                return segment
        return None

    def uncovered(self, base: int, end: int) -> tuple[int, int]:
        """The first part of a range that is not here yet; empty where all of it is."""
        segment = self.locate(base)
        while segment is not None and segment.base <= base:
            base = segment.end
            if base >= end:
                return end, end
            segment = self.locate(base)
        return base, end if segment is None else min(end, segment.base)

    def add(self, segment: Segment) -> None:
        """Have one more segment; those that it covers wholly make room for it."""
        low = bisect_left(self._bases, segment.base)
        high = low
        while high < len(self.segments) and self.segments[high].end <= segment.end:
            high += 1
        self.segments[low:high] = [segment]
        self._bases[low:high] = [segment.base]

    def has(self, segment: Segment) -> bool:
        """Whether it is here still."""
        return self.locate(segment.base) == segment

    def drop(self, segment: Segment) -> None:
        """Forget a segment."""
        if self.has(segment):
            at = bisect_left(self._bases, segment.base)
            del self.segments[at], self._bases[at]


def chosen(found: list[Segment]) -> tuple[list[Segment], list[Segment]]:
    """Which of a listing's segments count, and which are covered by larger ones.

    Segments are put together by putting the larger one before the small ones go, so a
    listing may have both.
    """
    kept: list[Segment] = []
    covered: list[Segment] = []
    for segment in sorted(found, key=lambda one: (one.base, -one.end)):
        if kept and segment.end <= kept[-1].end:
            covered.append(segment)
        else:
            kept.append(segment)
    return kept, covered
