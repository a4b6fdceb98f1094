"""All segments of a log: which is written to, the next one, sealing, dropping.

Loop's thread only; the work on disks that may take long is done by `chores`, one
thread, in the order it was handed in.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

from ropeway.common.reasons import reason_of
from ropeway.common.system import sync_data
from ropeway.storage.file import segment as files
from ropeway.storage.file.index import HEADER as INDEX_HEADER
from ropeway.storage.file.index import SealedIndex, load
from ropeway.storage.file.segment import ActiveIndex

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from ropeway.storage.file.files import OpenFiles
    from ropeway.storage.file.segment import Segment

_log = structlog.get_logger()


class Segments:
    """The segments in order. The last one is active: blocks go to its end."""

    def __init__(
        self,
        directory: Path,
        log_id: int,
        segment_bytes: int,
        found: list[Segment],
        open_files: OpenFiles,
        chores: ThreadPoolExecutor,
    ) -> None:
        self.all = found
        self.active = found[-1]
        """The one that is written to."""
        self.log_id = log_id
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._files = open_files
        self._chores = chores
        self._ahead: Future[Segment] | None = None
        self.sync_failed: Callable[[OSError], None]
        """Told when a segment could not be synced; the writer's to set."""

    def prepare(self) -> None:
        """Have the next segment made, unless that is being done."""
        active = self.active
        if self._ahead is None:
            self._ahead = self._chores.submit(
                files.create,
                self._directory,
                active.base + active.capacity,
                self._segment_bytes,
            )

    @property
    def preparing(self) -> Future[Segment] | None:
        """The next segment, while it is being made: to roll now would wait for it."""
        return None if self._ahead is None or self._ahead.done() else self._ahead

    def roll(self, block_bytes: int, loop: asyncio.AbstractEventLoop) -> Segment:
        """Make a new segment the active one, and have the old one sealed.

        Raises:
            OSError: There is no room for a segment; the old one stays active.
        """
        old = self.active
        new = self._next(old.base + old.capacity, block_bytes)
        self.all.append(new)
        self.active = new
        self._chores.submit(self._seal, old, loop)
        return new

    def _next(self, base: int, block_bytes: int) -> Segment:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            try:
                made = ahead.result()
            except OSError:
                made = None
            if made is not None and made.capacity >= block_bytes:
                return made
            if made is not None:
                os.close(made.descriptor)
                made.path.unlink()
        return files.create(
            self._directory, base, max(self._segment_bytes, block_bytes)
        )

    def _seal(self, old: Segment, loop: asyncio.AbstractEventLoop) -> None:
        """Write a segment's index beside it. In the chores' thread."""
        try:
            sync_data(old.descriptor)
        except OSError as error:
            loop.call_soon_threadsafe(self.sync_failed, error)
            return
        try:
            sealed = write_index(old, self.log_id)
            os.ftruncate(old.descriptor, old.written)
        except OSError as error:
            # The index stays in memory, and the next start makes the file.
            _log.warning(
                "segment not sealed", file=str(old.path), error=reason_of(error)
            )
            return
        loop.call_soon_threadsafe(self._sealed, old, sealed)

    def _sealed(self, old: Segment, sealed: SealedIndex) -> None:
        old.index = sealed
        if old.descriptor >= 0:
            self._files.keep(old.path, old.descriptor)
            old.descriptor = -1

    def drop(self, old: Segment) -> None:
        """Forget a sealed segment; its files are the caller's to delete."""
        old.gone = True
        self.all.remove(old)
        if old.descriptor >= 0:  # it could not be sealed
            os.close(old.descriptor)
            old.descriptor = -1
        self._files.drop(old.path)
        self._files.drop(old.index_path)

    def close(self) -> None:
        """Close what is open for writing. The chores must have ended."""
        if self._ahead is not None and self._ahead.exception() is None:
            ahead = self._ahead.result()
            os.close(ahead.descriptor)
            ahead.path.unlink()
        for one in self.all:
            if one.descriptor >= 0:
                os.close(one.descriptor)


def write_index(segment: Segment, log_id: int) -> SealedIndex:
    """Write the index file of a segment whose index is in memory.

    Raises:
        OSError: The file could not be made.
    """
    index = segment.index
    assert isinstance(index, ActiveIndex)
    pieces = index.dump(
        base=segment.base,
        log_id=log_id,
        segment_bytes=segment.written,
        newest_ms=segment.newest_ms,
    )
    files.write_file(segment.index_path, pieces)
    sealed = load(bytes(pieces[0]), bytes(pieces[1]))
    assert sealed is not None
    assert len(pieces[0]) == INDEX_HEADER.size
    sealed.checked = True
    return sealed
