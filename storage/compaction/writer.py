"""Writing files of compacted records, one after the other, each with its index.

Records are gathered on the loop, and written by a thread, a mebibyte at a time. A
file counts only when a manifest names it, so nothing here needs to be undone.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ropeway.storage.compaction.file import CompactedFile
from ropeway.storage.sealed.columns import ROW
from ropeway.storage.sealed.index import Index
from ropeway.storage.sealed.layout import (
    DATA_SUFFIX,
    INDEX_SUFFIX,
    SPARSE,
    decode_head,
)
from ropeway.storage.sealed.writer import BlockLimits, SegmentWriter

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from ropeway.storage.compaction.disk import Disk
    from ropeway.storage.sealed.columns import Buffer
    from ropeway.storage.sealed.layout import Whose

BLOCK = BlockLimits(records=64, bytes=1 << 16)
"""What a read fetches at least, and checks: a few records of many are wanted."""
_WRITE_BYTES = 1 << 20


def new_segment(whose: Whose) -> SegmentWriter:
    """Takes the records of one file, with `storage.sealed.columns.ROW` of each."""
    return SegmentWriter(whose, SPARSE, BLOCK)


class Writer:
    """Makes the new files of one round.

    Args:
        disk: What writes.
        threads: Where it does so.
        directory: The partition's.
        generation: Part of the files' names; of no earlier round's.
        file_bytes: How large a file grows.
        whose: The partition.
    """

    def __init__(
        self,
        disk: Disk,
        threads: ThreadPoolExecutor,
        directory: Path,
        generation: int,
        file_bytes: int,
        whose: Whose,
    ) -> None:
        self._disk = disk
        self._threads = threads
        self._directory = directory
        self._generation = generation
        self._file_bytes = file_bytes
        self._whose = whose
        self._descriptor = -1
        self._name = ""
        self.made: list[CompactedFile] = []
        """Closed files, which a manifest may name."""
        self.written = 0
        """Bytes of records, in all files."""
        self._segment = new_segment(whose)

    def add(self, records: Buffer, rows: bytes) -> None:
        """Put records behind all others.

        Args:
            records: Back to back; must not be changed.
            rows: `ROW` of each.
        """
        if not rows:
            return
        if self._segment.is_empty:
            first, *_ = ROW.unpack_from(rows)
            self._name = f"{first:020}-{self._generation}"
        self._segment.add(records, rows)
        self.written += len(records)

    async def breathe(self) -> None:
        """Write what has gathered, where that is much; end a file that is full.

        Raises:
            OSError: The disk refused.
        """
        waiting = self._segment.waiting_bytes
        if self._segment.data_bytes + waiting >= self._file_bytes:
            await self.end_file()
        elif waiting >= _WRITE_BYTES:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, self._append)

    def _append(self, *, everything: bool = False) -> None:
        if self._descriptor < 0:
            path = self._directory / (self._name + DATA_SUFFIX)
            self._descriptor = self._disk.create(path)
        self._disk.append(self._descriptor, self._segment.cut(everything=everything))

    async def end_file(self) -> None:
        """Make the file durable that grows, if there is one.

        Raises:
            OSError: The disk refused.
        """
        if self._segment.is_empty:
            return
        loop = asyncio.get_running_loop()
        index = await loop.run_in_executor(self._threads, self._finish)
        # Up to the next file there is nothing; who makes the manifest knows better.
        file = CompactedFile(self._directory, self._name, index, index.about.end)
        self.made.append(file)
        self._segment = new_segment(self._whose)

    def _finish(self) -> Index:
        self._append(everything=True)
        _, index = self._segment.seal()
        self._disk.sync(self._descriptor)
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        path = self._directory / (self._name + INDEX_SUFFIX)
        descriptor = self._disk.create(path)
        try:
            self._disk.append(descriptor, [index])
            self._disk.sync(descriptor)
        finally:
            os.close(descriptor)
        self._disk.sync_directory(self._directory)
        return Index(*decode_head(index))

    def give_up(self) -> None:
        """Close what is open; its bytes are left-overs. In any thread."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
