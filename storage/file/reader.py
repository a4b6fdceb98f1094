"""Reading: from the tail in memory, the page cache, or the disk.

A read first picks entries from an index, then fetches their bytes, neighbours as one
slice. Where that would wait for the disk it stops with `ColdError`, which says what
is missing; `read` has a thread get it, and tries again with it at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import MAX_LOOKED_BYTES, Chunk, Filter
from ropeway.storage.file import selection
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.fetcher import ColdError, UncheckedError
from ropeway.storage.file.index import ActiveIndex
from ropeway.storage.file.partition import LENGTH
from ropeway.storage.file.windows import WINDOW, Windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.file.fetcher import Fetcher, Warm
    from ropeway.storage.file.index import Span
    from ropeway.storage.file.partition import FilePartition
    from ropeway.storage.file.segment import Segment

    Acceptor = Callable[[bytes | memoryview], bool]
    Located = tuple[int, Segment, Span]
    """The first offset that has an entry, and where that is."""

_ALL = Filter()

_length = LENGTH.unpack_from


class Reader:
    """Reads records and entries of all partitions of one log."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._windows = Windows()

    def read_now(
        self,
        partition: FilePartition,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None,  # noqa: A002 - the contract's name
    ) -> Chunk | None:
        """Read from memory alone; None where that is not enough."""
        wanted = filter or _ALL
        try:
            return self._read(partition, offset, max_count, max_bytes, wanted, None)
        except (ColdError, UncheckedError):
            return None

    async def read(
        self,
        partition: FilePartition,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None,  # noqa: A002 - the contract's name
    ) -> Chunk:
        """Read, from the disk where need be."""
        warm: Warm = {}
        wanted = filter or _ALL
        while True:
            try:
                return self._read(partition, offset, max_count, max_bytes, wanted, warm)
            except (ColdError, UncheckedError) as cold:
                missing = cold
            await self._fetcher.warm(missing, warm)

    async def offset_at(
        self, partition: FilePartition, time_ms: int, *, upper: bool
    ) -> int:
        """Find an offset by store time, by bisection over the entries."""
        low = first = partition.first
        high = end = partition.end
        while low < high:
            middle = (low + high) // 2
            found = await self._entry(partition, middle)
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

    async def store_time(self, partition: FilePartition, offset: int) -> int | None:
        """When a record was stored; None where it is not there."""
        if not partition.first <= offset < partition.end:
            return None
        found = await self._entry(partition, offset)
        return found[1] if found is not None and found[0] == offset else None

    async def _entry(
        self, partition: FilePartition, offset: int
    ) -> tuple[int, int] | None:
        """The first offset from this one on that has an entry, and its store time."""
        warm: Warm = {}
        while True:
            found = partition.locate(offset)
            if found is None:
                return None
            try:
                data = self._entries(found, partition.ordinal, 1, warm)
            except (ColdError, UncheckedError) as cold:
                missing = cold
            else:
                _, size, _, store_ms = ENTRY.unpack(data)
                return found[0] if size else -1, store_ms
            await self._fetcher.warm(missing, warm)

    def _read(
        self,
        partition: FilePartition,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter,  # noqa: A002 - the contract's name
        warm: Warm | None,
    ) -> Chunk:
        if self._fetcher.closed is not None:
            raise self._fetcher.closed
        tags, accept, looks = filter.tag_hashes, filter.accept, filter.looks
        end = partition.end
        data: list[bytes | memoryview] = []
        records = used = shown = 0
        began = offset
        while looks > 0 and records < max_count and offset < end:
            found = partition.locate(offset)
            if found is None:
                return Chunk(data, records, end)
            if records and accept is None:
                break
            left = max_count - records
            wanted = min(left, looks) if tags is None else looks
            try:
                entries = self._entries(found, partition.ordinal, wanted, warm)
                extents, sizes, after, looked, full = selection.pick(
                    entries, found[0], left, max_bytes - used, tags, not records
                )
                pieces = self._fetcher.records(found[1], extents, sizes, warm)
            except (ColdError, UncheckedError):
                if accept is None or offset == began:
                    raise
                # What was asked about so far need not be asked about again.
                break
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

    def _entries(
        self,
        located: Located,
        ordinal: int,
        wanted: int,
        warm: Warm | None,
    ) -> bytes | bytearray | memoryview:
        """Up to so many entries of a partition from where one was located on."""
        offset, segment, span = located
        index = segment.index
        first = offset - span.base_offset
        if isinstance(index, ActiveIndex):
            begin = first * ENTRY.size
            return index.parts[ordinal].data[begin : begin + wanted * ENTRY.size]
        if not index.checked:
            raise UncheckedError(segment)
        count = min(wanted, span.records - first)
        found = self._windows.get(segment, ordinal, first, count)
        if found is not None:
            return found
        place = index.body_at + (span.entry + first) * ENTRY.size
        size = min(max(count, WINDOW), span.records - first) * ENTRY.size
        data = memoryview(
            self._fetcher.bytes_of(segment, segment.index_path, -1, place, size, warm)
        )
        self._windows.keep(segment, ordinal, first, data)
        return data[: count * ENTRY.size]


def accepted(
    pieces: list[tuple[bytes | memoryview, int]], accept: Acceptor
) -> list[tuple[bytes | memoryview, int]]:
    """The parts of pieces that a filter accepts, neighbours together."""
    kept: list[tuple[bytes | memoryview, int]] = []
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
