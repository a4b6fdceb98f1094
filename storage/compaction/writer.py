"""Writing files of compacted records, one after the other, each with its index.

Records are gathered on the loop, and written by a thread, a mebibyte at a time. A
file counts only when a manifest names it, so nothing here needs to be undone.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ropeway.storage.compaction.file import DATA_SUFFIX, INDEX_SUFFIX, CompactedFile
from ropeway.storage.compaction.pile import Pile

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from ropeway.storage.compaction.disk import Disk
    from ropeway.storage.compaction.layout import Index
    from ropeway.storage.compaction.pile import Waiting
    from ropeway.storage.compaction.steps import Buffer

_WRITE_BYTES = 1 << 20


class Writer:
    """Makes the new files of one round.

    Args:
        disk: What writes.
        threads: Where it does so.
        directory: The partition's.
        generation: Part of the files' names; of no earlier round's.
        file_bytes: How large a file grows.
    """

    def __init__(
        self,
        disk: Disk,
        threads: ThreadPoolExecutor,
        directory: Path,
        generation: int,
        file_bytes: int,
    ) -> None:
        self._disk = disk
        self._threads = threads
        self._directory = directory
        self._generation = generation
        self._file_bytes = file_bytes
        self._descriptor = -1
        self._name = ""
        self.made: list[CompactedFile] = []
        """Closed files, which a manifest may name."""
        self.written = 0
        """Bytes of records, in all files."""
        self._pile = Pile()

    @property
    def place(self) -> int:
        """Where the next record will be in its file."""
        return self._pile.place

    def add(
        self, records: Buffer, entries: Buffer, newest_ms: int, due_ms: int
    ) -> None:
        """Put records behind all others; they are copied.

        Args:
            records: Back to back.
            entries: Theirs, the first one's place being `place`.
            newest_ms: Their latest store time.
            due_ms: When the first of them is due; 0 for never.
        """
        self._pile.add(records, entries, newest_ms, due_ms)
        self.written += len(records)

    async def breathe(self) -> None:
        """Write what has gathered, where that is much; end a file that is full.

        Raises:
            OSError: The disk refused.
        """
        if self._pile.place >= self._file_bytes:
            await self.end_file()
        elif self._pile.waiting_bytes >= _WRITE_BYTES:
            await self._write()

    async def _write(self) -> None:
        if self._descriptor < 0:
            self._name = f"{self._pile.first:020}-{self._generation}"
        waiting = self._pile.take()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, self._append, waiting)

    def _append(self, waiting: Waiting) -> None:
        if self._descriptor < 0:
            path = self._directory / (self._name + DATA_SUFFIX)
            self._descriptor = self._disk.create(path)
        self._pile.sum_up(waiting)
        self._disk.append(self._descriptor, [waiting.data])

    async def end_file(self) -> None:
        """Make the file durable that grows, if there is one.

        Raises:
            OSError: The disk refused.
        """
        if not self._pile.records:
            return
        await self._write()
        loop = asyncio.get_running_loop()
        index = await loop.run_in_executor(self._threads, self._finish)
        # Up to the next file there is nothing; who makes the manifest knows better.
        end = self._pile.last + 1
        self.made.append(CompactedFile(self._directory, self._name, index, end))
        self._pile = Pile()

    def _finish(self) -> Index:
        index = self._pile.index()
        self._disk.sync(self._descriptor)
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        path = self._directory / (self._name + INDEX_SUFFIX)
        descriptor = self._disk.create(path)
        try:
            self._disk.append(descriptor, [index.dump(), self._pile.entries])
            self._disk.sync(descriptor)
        finally:
            os.close(descriptor)
        self._disk.sync_directory(self._directory)
        return index

    def give_up(self) -> None:
        """Close what is open; its bytes are left-overs. In any thread."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
