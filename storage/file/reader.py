"""Reading: from the tail in memory, the page cache, or the disk.

A read first picks entries from an index, then fetches their bytes, neighbours as one
slice. Where that would wait for the disk it stops with `ColdError`, which says what
is missing; `read` has a thread get it, and tries again with it at hand.
"""

from __future__ import annotations

import asyncio
import os
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from storage.api import Chunk, LogDamagedError, LogUnavailableError
from storage.file.block import ENTRY
from storage.file.index import ActiveIndex
from storage.file.partition import LENGTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from storage.api import Filter, LogError
    from storage.file.files import OpenFiles
    from storage.file.partition import FilePartition
    from storage.file.segment import Segment
    from storage.file.tail import Tail

LOOKS = 4096
"""Index entries that one read with a filter looks at."""
GAP_BYTES = 4096
"""Records so near to each other are fetched at once: a page costs less than a call."""

Warm = dict[tuple[str, int, int], bytes]
"""What a thread has fetched: file, place, size."""

_length = LENGTH.unpack_from


class ColdError(Exception):
    """The bytes of a file that are not in memory."""

    def __init__(
        self, segment: Segment, path: Path, ranges: list[tuple[int, int]]
    ) -> None:
        super().__init__(path)
        self.segment = segment
        self.path = path
        self.ranges = ranges


class UncheckedError(Exception):
    """A sealed index that has not been held against its checksum yet."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.index_path)
        self.segment = segment


class Pick(NamedTuple):
    """Records chosen from an index."""

    extents: list[tuple[int, int, int]]
    """Place in the segment, bytes, records; adjacent records are one extent."""
    sizes: list[int]
    next_offset: int
    looked: int
    full: bool
    """Whether it stopped because of the limit in bytes."""


class Reader:
    """Reads records and entries of all partitions of one log."""

    def __init__(
        self,
        tail: Tail,
        files: OpenFiles,
        threads: ThreadPoolExecutor,
        check: Checker,
        *,
        skip: bool,
    ) -> None:
        self._tail = tail
        self._files = files
        self._threads = threads
        self._check = check
        self._skip = skip
        self.closed: LogError | None = None
        """What reads are answered once the log is closed."""

    def read_now(
        self,
        partition: FilePartition,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None,  # noqa: A002 - the contract's name
    ) -> Chunk | None:
        """Read from memory alone; None where that is not enough."""
        try:
            return self._read(partition, offset, max_count, max_bytes, filter, None)
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
        while True:
            try:
                return self._read(partition, offset, max_count, max_bytes, filter, warm)
            except (ColdError, UncheckedError) as cold:
                missing = cold
            await self._warm(missing, warm)

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
            at, segment = found
            try:
                data = self._entries(segment, partition.ordinal, at, 1, warm)
            except (ColdError, UncheckedError) as cold:
                missing = cold
            else:
                _, size, _, store_ms = ENTRY.unpack(data)
                return at if size else -1, store_ms
            await self._warm(missing, warm)

    async def _warm(self, missing: ColdError | UncheckedError, warm: Warm) -> None:
        if self.closed is not None:
            raise self.closed
        if isinstance(missing, UncheckedError):
            await self._check(missing.segment)
            return
        path = missing.path
        loop = asyncio.get_running_loop()
        try:
            descriptor, found = await loop.run_in_executor(
                self._threads, fetch, path, missing.ranges
            )
        except OSError as error:
            if missing.segment.gone:  # retention was faster; try what comes after it
                return
            raise LogUnavailableError(
                f"cannot read {path}: {error.strerror or error}"
            ) from error
        if missing.segment.gone:
            os.close(descriptor)
        else:
            self._files.keep(path, descriptor)
        warm.update(found)

    def _read(
        self,
        partition: FilePartition,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None,  # noqa: A002 - the contract's name
        warm: Warm | None,
    ) -> Chunk:
        if self.closed is not None:
            raise self.closed
        tags = accept = None
        if filter is not None:
            tags = filter.tag_hashes
            accept = filter.accept
        end = partition.end
        data: list[bytes | memoryview] = []
        records = used = 0
        looks = LOOKS
        while looks > 0 and records < max_count and offset < end:
            found = partition.locate(offset)
            if found is None:
                return Chunk(data, records, end)
            at, segment = found
            if records and accept is None:
                break
            pick = self._pick(
                segment,
                partition.ordinal,
                at,
                max_count - records,
                max_bytes - used if records else max_bytes,
                tags,
                looks,
                warm,
                forced=not records,
            )
            pieces = self._fetch(segment, pick, warm)
            if accept is not None:
                pieces = accepted(pieces, accept)
            for piece, count in pieces:
                data.append(piece)
                records += count
                used += len(piece)
            offset = pick.next_offset
            looks -= pick.looked
            if pick.full and not pick.sizes:
                break
        return Chunk(data, records, offset)

    def _pick(
        self,
        segment: Segment,
        ordinal: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags: Collection[int] | None,
        looks: int,
        warm: Warm | None,
        *,
        forced: bool,
    ) -> Pick:
        """Choose records of one segment by its index."""
        wanted = max_count if tags is None else looks
        entries = self._entries(segment, ordinal, offset, wanted, warm)
        extents: list[tuple[int, int, int]] = []
        sizes: list[int] = []
        start = stop = began = 0
        total = seen = 0
        full = False
        for place, size, tag_hash, _ in ENTRY.iter_unpack(entries):
            if size and (tags is None or tag_hash in tags):
                total += size
                if total > max_bytes and (sizes or not forced):
                    full = True
                    break
                if place != stop:
                    if stop:
                        extents.append((start, stop - start, len(sizes) - began))
                    start = place
                    began = len(sizes)
                stop = place + size
                sizes.append(size)
            seen += 1
            if len(sizes) == max_count:
                break
        if stop:
            extents.append((start, stop - start, len(sizes) - began))
        return Pick(extents, sizes, offset + seen, max(seen, 1), full)

    def _entries(
        self,
        segment: Segment,
        ordinal: int,
        offset: int,
        wanted: int,
        warm: Warm | None,
    ) -> bytes | bytearray | memoryview:
        """Up to so many entries of a partition from an offset on."""
        index = segment.index
        if isinstance(index, ActiveIndex):
            part = index.parts[ordinal]
            begin = (offset - part.base_offset) * ENTRY.size
            return part.data[begin : begin + wanted * ENTRY.size]
        if not index.checked:
            raise UncheckedError(segment)
        span = index.span(ordinal)
        assert span is not None
        skipped = offset - span.base_offset
        count = min(wanted, span.records - skipped)
        place = index.body_at + (span.entry + skipped) * ENTRY.size
        size = count * ENTRY.size
        return self._bytes(segment, segment.index_path, -1, place, size, warm)

    def _bytes(
        self,
        segment: Segment,
        path: Path,
        descriptor: int,
        place: int,
        size: int,
        warm: Warm | None,
    ) -> bytes | memoryview:
        """Bytes of a file that are in memory."""
        if warm is not None:
            known = warm.get((path.name, place, size))
            if known is not None:
                return known
        if descriptor < 0:
            found = self._files.get(path)
            if found is None:
                raise ColdError(segment, path, [(place, size)])
            descriptor = found
        buffer = bytearray(size)
        try:
            got = os.preadv(descriptor, [buffer], place, os.RWF_NOWAIT)
        except OSError:  # not in memory, or a file system that cannot tell
            got = -1
        if got != size:
            raise ColdError(segment, path, [(place, size)])
        return memoryview(buffer)

    def _fetch(
        self, segment: Segment, pick: Pick, warm: Warm | None
    ) -> list[tuple[bytes | memoryview, int]]:
        """The bytes of the records that were picked, with how many a piece holds."""
        pieces: list[tuple[bytes | memoryview, int]] = []
        base = segment.base
        for place, size, count in pick.extents:
            piece = self._tail.get(base + place, size)
            if piece is None:
                return self._fetch_from_file(segment, pick, warm)
            pieces.append((piece, count))
        return pieces

    def _fetch_from_file(
        self, segment: Segment, pick: Pick, warm: Warm | None
    ) -> list[tuple[bytes | memoryview, int]]:
        groups = grouped(pick.extents)
        got: list[bytes | memoryview] = []
        missing: list[tuple[int, int]] = []
        for place, size, _ in groups:
            try:
                got.append(
                    self._bytes(
                        segment, segment.path, segment.descriptor, place, size, warm
                    )
                )
            except ColdError as cold:
                missing += cold.ranges
        if missing:
            raise ColdError(segment, segment.path, missing)
        pieces: list[tuple[bytes | memoryview, int]] = []
        sizes = iter(pick.sizes)
        for (start, _, extents), data in zip(groups, got, strict=True):
            view = memoryview(data)
            for place, size, count in extents:
                piece = view[place - start : place - start + size]
                pieces += self._trusted(segment, place, piece, count, sizes)
        return pieces

    def _trusted(
        self,
        segment: Segment,
        place: int,
        piece: memoryview,
        count: int,
        sizes: Iterator[int],
    ) -> Iterable[tuple[memoryview, int]]:
        """The parts of a piece where each record is as long as the index says."""
        at = start = good = 0
        for size in islice(sizes, count):
            if _length(piece, at)[0] != size:
                if not self._skip:
                    raise LogDamagedError(
                        f"{segment.path}, place {place + at}: no record of {size} "
                        'bytes there; open with on_damage="skip" to read without it'
                    )
                if good:
                    yield piece[start:at], good
                start = at + size
                good = -1
            at += size
            good += 1
        if good:
            yield piece[start:at], good


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


def grouped(
    extents: list[tuple[int, int, int]],
) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    """Extents that are near each other, to be fetched at once: place, size, extents."""
    groups: list[tuple[int, int, list[tuple[int, int, int]]]] = []
    for extent in extents:
        place, size, _ = extent
        if groups:
            start, length, members = groups[-1]
            if 0 <= place - (start + length) <= GAP_BYTES:
                members.append(extent)
                groups[-1] = (start, place + size - start, members)
                continue
        groups.append((place, size, [extent]))
    return groups


def fetch(path: Path, ranges: list[tuple[int, int]]) -> tuple[int, Warm]:
    """Read from a file, waiting for the disk. In a reader's thread.

    Returns:
        A descriptor to keep, and what was read.

    Raises:
        OSError: The file is gone, or the disk failed.
    """
    descriptor = os.open(path, os.O_RDONLY)
    found: Warm = {}
    try:
        for place, size in ranges:
            data = os.pread(descriptor, size, place)
            # Short where the file is: zeros fail the check of each record's size.
            found[path.name, place, size] = data.ljust(size, b"\0")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Checker = Callable[[Segment], Awaitable[None]]
    Acceptor = Callable[[bytes | memoryview], bool]
