"""Reading: from the tail in memory, the page cache, or the disk.

A read first picks entries from an index, then fetches their bytes, neighbours as one
slice. Where that would wait for the disk it stops with `ColdError`, which says what
is missing; `read` has a thread get it, and tries again with it at hand.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.api import MAX_LOOKED_BYTES, Chunk, Filter
from ropeway.storage.file import selection
from ropeway.storage.file.block import ENTRY, LENGTH
from ropeway.storage.file.fetcher import ColdError, Fetcher, UncheckedError, Warm
from ropeway.storage.file.segment import ActiveIndex
from ropeway.storage.file.windows import WINDOW, Windows
from ropeway.storage.watched_partition import WatchedPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.file.fetcher import Piece
    from ropeway.storage.file.index import SealedIndex, Span
    from ropeway.storage.file.segment import Segment
    from ropeway.storage.file.selection import Extent

    Acceptor = Callable[[bytes | memoryview], bool]
    Located = tuple[int, Segment, bytes | bytearray | memoryview]
    """An offset, its segment, and entries from there on."""

_length = LENGTH.unpack_from


OVERHEAD_BYTES = 150
"""What a block costs beside its bytes: two list slots, two objects' headers."""


class Tail:
    """The newest blocks as they were written, by position in the log, for who keeps up.

    Args:
        limit_bytes: What they may take.
    """

    __slots__ = ("_bodies", "_limit", "_size", "_starts")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._starts: list[int] = []
        self._bodies: list[bytes] = []
        # Not views, of which each full garbage collection would look at every one.

    def add(self, position: int, body: bytes) -> None:
        """Keep a body that begins at a position after all earlier ones."""
        self._starts.append(position)
        self._bodies.append(body)
        self._size += len(body) + OVERHEAD_BYTES
        if self._size > self._limit:
            self._shrink()

    def records(self, base: int, extents: list[Extent]) -> list[Piece] | None:
        """The bytes of records, without a copy; None where some are not kept.

        Args:
            base: The position that the records' places are counted from.
            extents: The records, neighbours together.

        Returns:
            Pieces, with how many records each holds.
        """
        pieces: list[Piece] = []
        for place, size, count in extents:
            position = base + place
            at = bisect_right(self._starts, position) - 1
            if at < 0:
                return None
            begin = position - self._starts[at]
            body = self._bodies[at]
            if begin + size > len(body):
                return None
            pieces.append((memoryview(body)[begin : begin + size], count))
        return pieces

    def _shrink(self) -> None:
        """Drop the oldest eighth at once, for dropping moves all that stay."""
        keep = self._limit - self._limit // 8
        count = 0
        while self._size > keep:
            self._size -= len(self._bodies[count]) + OVERHEAD_BYTES
            count += 1
        del self._starts[:count]
        del self._bodies[:count]


class Sources(NamedTuple):
    """What all partitions of one log are read from."""

    tail: Tail
    fetcher: Fetcher
    windows: Windows


class ReadPartition(WatchedPartition):
    """A partition, as it is read.

    Args:
        topic: As RocketMQ names it.
        number: Within the topic.
        ordinal: Within the log.
        sources: Where its records are.
    """

    __slots__ = ("_sources", "bases", "end", "floor", "ordinal", "segments")

    def __init__(self, topic: str, number: int, ordinal: int, sources: Sources) -> None:
        super().__init__(topic, number)
        self.ordinal = ordinal
        self.end = 0
        self.floor = 0
        """Nothing below it is read any more: it was trimmed."""
        self.bases: list[int] = []
        """Its first offset in each of its segments."""
        self.segments: list[Segment] = []
        self._sources = sources

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there."""
        while self.segments and self.segments[0].gone:
            del self.segments[0], self.bases[0]
        return max(self.bases[0], self.floor) if self.bases else self.end

    def enter(self, segment: Segment, base_offset: int) -> None:
        """Know that a segment has records from this offset on."""
        self.bases.append(base_offset)
        self.segments.append(segment)

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk:
        """Read records from an offset on; see `storage.api`."""
        warm = Warm()
        while True:
            chunk = self._look(offset, max_count, max_bytes, filter, warm)
            if chunk is not None:
                return chunk
            await self._sources.fetcher.warm(warm)

    async def offset_at(self, time_ms: int, *, upper: bool = False) -> int:
        """Find an offset by store time, by bisection; see `storage.api`."""
        if self.gone:
            raise self.deleted()
        low = first = self.first
        high = end = self.end
        while low < high:
            middle = (low + high) // 2
            found = await self._entry(middle)
            if found is None:  # dropped meanwhile
                low = middle + 1
                continue
            _, store_ms = found
            if store_ms <= time_ms if upper else store_ms < time_ms:
                low = middle + 1
            else:
                high = middle
        if upper:
            return max(low - 1, first)
        return min(low, end)

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored; see `storage.api`."""
        if self.gone:
            raise self.deleted()
        if not self.first <= offset < self.end:
            return None
        found = await self._entry(offset)
        return found[1] if found is not None and found[0] == offset else None

    async def _entry(self, offset: int) -> tuple[int, int] | None:
        """The first offset from this one on that has an entry, and its store time."""
        warm = Warm()
        while True:
            try:
                found = self.locate(offset, 1, warm)
            except (ColdError, UncheckedError) as cold:
                warm.missing = cold.with_traceback(None)
            else:
                if found is None:
                    return None
                _, size, _, store_ms = ENTRY.unpack(found[2])
                return found[0] if size else -1, store_ms
            await self._sources.fetcher.warm(warm)

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
        warm: Warm | None = None,
    ) -> Chunk | None:
        """Read from memory, and from what is warm; see `storage.api`.

        What is missing is noted in `warm`, where there is one.
        """
        tail, fetcher, _ = self._sources
        refusal = self.deleted() if self.gone else fetcher.closed
        if refusal is not None:
            raise refusal
        wants = filter or selection.ALL
        tags, accept, looks = wants.tag_hashes, wants.accept, wants.looks
        end = self.end
        data: list[bytes | memoryview] = []
        records = used = shown = 0
        began = offset
        # One segment's are enough, unless little of them may be wanted.
        enough = min(max_count, 1) if accept is None else max_count
        while looks > 0 and records < enough and offset < end:
            left = max_count - records
            wanted = min(left, looks) if tags is None else looks
            try:
                found = self.locate(offset, wanted, warm)
                if found is None:
                    return Chunk(data, records, end)
                begins, segment, entries = found
                extents, sizes, after, looked, full = selection.pick(
                    entries, begins, left, max_bytes - used, tags, not records
                )
                pieces = tail.records(segment.base, extents) or fetcher.records(
                    segment, extents, sizes, warm
                )
            except (ColdError, UncheckedError) as cold:
                if accept is not None and offset != began:
                    # What was asked about so far need not be asked about again.
                    break
                if warm is not None:
                    warm.missing = cold.with_traceback(None)
                return None
            offset = after
            if accept is not None:
                shown += sum(sizes)
                pieces = accepted(pieces, accept)
            for piece, count in pieces:
                data.append(piece)
                records += count
                used += len(piece)
            looks -= looked
            if (full and not sizes) or shown >= MAX_LOOKED_BYTES:
                break
        return Chunk(data, records, offset)

    _look = read_now
    """`read` goes by this, whatever somebody puts before `read_now`."""

    def locate(self, offset: int, wanted: int, warm: Warm | None) -> Located | None:
        """Up to so many entries, from an offset on or from the next one there is.

        Returns:
            The offset of the first, its segment, and the entries; None where no record
            is left.

        Raises:
            ColdError: They are in a file, and not in memory.
            UncheckedError: Or it is not known yet whether that file is whole.
        """
        offset, ordinal, segments = max(offset, self.floor), self.ordinal, self.segments
        at = max(bisect_right(self.bases, offset) - 1, 0)
        while at < len(segments):
            segment = segments[at]
            at += 1
            if segment.gone:
                continue
            index = segment.index
            if isinstance(index, ActiveIndex):
                part = index.parts[ordinal]
                first = max(offset - part.base_offset, 0)
                begin = first * ENTRY.size
                entries = part.data[begin : begin + wanted * ENTRY.size]
                if entries:
                    return part.base_offset + first, segment, entries
                continue
            span = index.span(ordinal)
            assert span is not None
            first = max(offset - span.base_offset, 0)
            if first < span.records:
                found = self._sealed(segment, index, span, first, wanted, warm)
                return span.base_offset + first, segment, found
        return None

    def _sealed(
        self,
        segment: Segment,
        index: SealedIndex,
        span: Span,
        first: int,
        wanted: int,
        warm: Warm | None,
    ) -> bytes | memoryview:
        """Entries of a partition from its index in a file."""
        if not index.checked:
            raise UncheckedError(segment)
        count = min(wanted, span.records - first)
        _, fetcher, windows = self._sources
        found = windows.get(segment, self.ordinal, first, count)
        if found is not None:
            return found
        place = index.body_at + (span.entry + first) * ENTRY.size
        size = min(max(count, WINDOW), span.records - first) * ENTRY.size
        data = memoryview(
            fetcher.bytes_of(segment, segment.index_path, -1, place, size, warm)
        )
        windows.keep(segment, self.ordinal, first, data)
        return data[: count * ENTRY.size]


def accepted(pieces: list[Piece], accept: Acceptor) -> list[Piece]:
    """The parts of pieces that a filter accepts, neighbours together."""
    kept: list[Piece] = []
    for piece, _ in pieces:
        view = memoryview(piece)
        at = start = good = 0
        while at < len(view):
            after = at + _length(view, at)[0]
            if accept(view[at:after]):
                good += 1
            else:
                if good:
                    kept.append((view[start:at], good))
                start = after
                good = 0
            at = after
        if good:
            kept.append((view[start:at], good))
    return kept
