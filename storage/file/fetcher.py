"""Getting bytes of segments and indexes: from the tail, the page cache, the disk.

Where bytes would have to come from the disk, `ColdError` says which. Then `warm` has
a thread get them, into a dictionary that the next attempt looks into first.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ropeway.common.reasons import reason_of
from ropeway.common.system import read_resident, will_need
from ropeway.storage.api import LogDamagedError, LogUnavailableError
from ropeway.storage.file.selection import are_whole, grouped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from ropeway.storage.api import LogError
    from ropeway.storage.file.files import OpenFiles
    from ropeway.storage.file.segment import Segment
    from ropeway.storage.file.selection import Extent

    Checker = Callable[[Segment], Awaitable[None]]
    Piece = tuple[bytes | memoryview, int]
    """Records back to back, and how many they are."""

AHEAD_BYTES = 1 << 20
"""What the kernel is asked to read ahead for those who read a segment on."""

PIECE_BYTES = 128 * 1024
"""What the kernel reads ahead by itself, and always when it is asked to."""


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
        self.path = segment.index_path


class Warm(dict[tuple[str, int, int], bytes]):
    """What a thread has fetched, by file, place and size."""

    __slots__ = ("missing",)

    missing: ColdError | UncheckedError
    """What lacks since it was looked at last."""


class Fetcher:
    """Fetches bytes on behalf of all readers of one log."""

    def __init__(
        self,
        files: OpenFiles,
        threads: ThreadPoolExecutor,
        check: Checker,
        *,
        skip: bool,
    ) -> None:
        self._files = files
        self._threads = threads
        self._check = check
        self._skip = skip
        self.closed: LogError | None = None
        """What reads are answered once the log is closed."""

    async def warm(self, warm: Warm) -> None:
        """Get what was missing, waiting for the disk.

        Raises:
            LogUnavailableError: The disk did not answer.
        """
        if self.closed is not None:
            raise self.closed
        missing = warm.missing
        path, segment = missing.path, missing.segment
        loop = asyncio.get_running_loop()
        try:
            if isinstance(missing, UncheckedError):
                await self._check(segment)
                return
            descriptor, found = await loop.run_in_executor(
                self._threads, fetch, path, missing.ranges, read_ahead(missing)
            )
        except OSError as error:
            if segment.gone:  # retention was faster; try what comes after it
                return
            raise LogUnavailableError(
                f"cannot read {path}: {reason_of(error)}"
            ) from error
        if segment.gone:
            os.close(descriptor)
        else:
            self._files.keep(path, descriptor)
        warm.update(found)

    def bytes_of(
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
        if not read_resident(descriptor, buffer, place):
            raise ColdError(segment, path, [(place, size)])
        return memoryview(buffer)

    def records(
        self,
        segment: Segment,
        extents: list[Extent],
        sizes: list[int],
        warm: Warm | None,
    ) -> list[Piece]:
        """The bytes of the records that were picked, with how many a piece holds.

        Raises:
            ColdError: Some are not in memory.
            LogDamagedError: The file has other records than the index says.
        """
        groups = grouped(extents)
        got: list[bytes | memoryview] = []
        missing: list[tuple[int, int]] = []
        for place, size, _ in groups:
            try:
                got.append(
                    self.bytes_of(
                        segment, segment.path, segment.descriptor, place, size, warm
                    )
                )
            except ColdError as cold:
                missing += cold.ranges
        if missing:
            raise ColdError(segment, segment.path, missing)
        pieces: list[Piece] = []
        done = 0
        for (start, _, members), data in zip(groups, got, strict=True):
            view = memoryview(data)
            for place, size, count in members:
                piece = view[place - start : place - start + size]
                its_sizes = sizes[done : done + count]
                done += count
                if are_whole(piece, its_sizes):
                    pieces.append((piece, count))
                else:
                    pieces += self._whole_ones(segment, place, piece, its_sizes)
        return pieces

    def _whole_ones(
        self, segment: Segment, place: int, piece: memoryview, sizes: list[int]
    ) -> Iterator[tuple[memoryview, int]]:
        """The parts of a piece where each record is as long as the index says."""
        at = start = good = 0
        for size in sizes:
            if not are_whole(piece[at : at + size], [size]):
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


def read_ahead(missing: ColdError) -> int:
    """How much is worth reading behind what is missing.

    Nothing, where it is not about there that the segment was read from the disk before:
    who reads here and there would have all that read for nothing.
    """
    segment = missing.segment
    if missing.path != segment.path:
        return 0
    start = missing.ranges[0][0]
    end = sum(missing.ranges[-1])
    ahead = AHEAD_BYTES if abs(start - segment.fetched_to) <= AHEAD_BYTES else 0
    segment.fetched_to = end + ahead
    return ahead


def fetch(
    path: Path, ranges: list[tuple[int, int]], ahead_bytes: int
) -> tuple[int, Warm]:
    """Read from a file, waiting for the disk. In a reader's thread.

    Args:
        path: The file.
        ranges: Place and size of each piece.
        ahead_bytes: How much the kernel is to have in memory soon, behind them.

    Returns:
        A descriptor to keep, and what was read.

    Raises:
        OSError: The file is gone, or the disk failed.
    """
    descriptor = os.open(path, os.O_RDONLY)
    found = Warm()
    try:
        if ahead_bytes:
            start = ranges[0][0]
            end = sum(ranges[-1]) + ahead_bytes
            # Piecewise: of one long piece the kernel reads what suits the device.
            for place in range(start, end, PIECE_BYTES):
                will_need(descriptor, place, PIECE_BYTES)
        for place, size in ranges:
            data = os.pread(descriptor, size, place)
            # Short where the file is: zeros fail the check of each record's size.
            found[path.name, place, size] = data.ljust(size, b"\0")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found
