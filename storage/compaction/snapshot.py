"""The compacted records of a partition as one round left them. In any thread.

It never changes: a round makes another one.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING

from ropeway.storage.compaction.file import CompactedFile, Slice

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ropeway.storage.compaction.file import Fetch
    from ropeway.storage.compaction.layout import Entry


class Snapshot:
    """Files by offset, of which each but the last ends where the next one begins.

    Every method that looks into files raises `LogDamagedError` where they are not what
    was written, and `OSError` where the disk refuses or a file is gone.
    """

    __slots__ = ("_firsts", "clean_end", "files", "generation")

    def __init__(
        self,
        files: Sequence[CompactedFile] = (),
        clean_end: int = 0,
        generation: int = 0,
    ) -> None:
        ends = [one.first for one in files[1:]] + [clean_end]
        self.files = tuple(
            CompactedFile(one.data_path.parent, one.name, one.index, end)
            for one, end in zip(files, ends, strict=False)
        )
        self.clean_end = clean_end
        self.generation = generation
        self._firsts = [one.first for one in files]

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(one.index.records for one in self.files)

    @property
    def data_bytes(self) -> int:
        """How many bytes they have."""
        return sum(one.index.data_bytes for one in self.files)

    @property
    def newest_ms(self) -> int:
        """The latest store time."""
        return max((one.index.newest_ms for one in self.files), default=0)

    @property
    def due_ms(self) -> int:
        """When the first record may go that nothing replaces; 0: never."""
        times = [one.index.due_ms for one in self.files if one.index.due_ms]
        return min(times, default=0)

    def _at(self, offset: int) -> int:
        return max(bisect_right(self._firsts, offset) - 1, 0)

    def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags: Collection[int] | None,
        looks: int,
        fetch: Fetch = os.pread,
    ) -> Slice:
        """Records of one file from an offset on; none of later files."""
        if not self.files:
            return Slice([], 0, self.clean_end)
        file = self.files[self._at(offset)]
        return file.read(offset, max_count, max_bytes, tags, looks, fetch)

    def first_after(self, time_ms: int) -> int | None:
        """The first record stored at or after a time; None where there is none."""
        for file in self.files:
            if file.index.newest_ms >= time_ms:
                found = file.at_time(time_ms)
                if found is not None:
                    return found.offset
        return None

    def last_before(self, offset: int) -> int | None:
        """The last record before an offset; None where there is none."""
        for file in reversed(self.files):
            if file.first < offset:
                return file.before(offset).offset
        return None

    def entry_at(self, offset: int) -> Entry | None:
        """The entry of an offset; None where it has no record."""
        if not self.files or offset < self.files[0].first:
            return None
        return self.files[self._at(offset)].entry_at(offset)

    def find(self, digest: bytes) -> tuple[Entry, bytes] | None:
        """The record of a key, with its entry; None where there is none."""
        for file in reversed(self.files):
            entry = file.find(digest)
            if entry is not None:
                return entry, file.record(entry)
        return None
