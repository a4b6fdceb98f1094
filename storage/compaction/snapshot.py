"""The compacted records of a partition as one round left them. In any thread.

It never changes: a round makes another one.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING

from ropeway.storage.compaction.file import CompactedFile
from ropeway.storage.sealed.pick import Pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import Filter
    from ropeway.storage.compaction.file import Fetch, Kept


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
        return sum(one.index.about.records for one in self.files)

    @property
    def data_bytes(self) -> int:
        """How many bytes they have."""
        return sum(one.index.about.data_bytes for one in self.files)

    @property
    def newest_ms(self) -> int:
        """The latest store time."""
        return max((one.index.about.most_ms for one in self.files), default=0)

    @property
    def due_ms(self) -> int:
        """When the first record may go that nothing replaces; 0: never."""
        times = [one.index.about.due_ms for one in self.files]
        return min(filter(None, times), default=0)

    def _at(self, offset: int) -> int:
        return max(bisect_right(self._firsts, offset) - 1, 0)

    def read(
        self,
        offset: int,
        limits: tuple[int, int],
        wanted: Filter | None,
        fetch: Fetch = os.pread,
    ) -> Pick:
        """Records from an offset on; see `Pick`."""
        pick = Pick(offset, limits, wanted)
        for file in self.files[self._at(offset) :]:
            file.read(pick, fetch)
            if pick.offset < file.end or not pick.goes_on:
                return pick
        pick.offset = max(pick.offset, self.clean_end)
        return pick

    def first_after(self, time_ms: int) -> int | None:
        """The first record stored at or after a time; None where there is none."""
        for file in self.files:
            if file.index.about.most_ms >= time_ms:
                found = file.at_time(time_ms)
                if found is not None:
                    return found
        return None

    def last_before(self, offset: int) -> int | None:
        """The last record before an offset; None where there is none."""
        for file in reversed(self.files):
            if file.first < offset:
                return file.before(offset)
        return None

    def store_time(self, offset: int) -> int | None:
        """When a record was stored; None where there is none at that offset."""
        if not self.files or offset < self.files[0].first:
            return None
        return self.files[self._at(offset)].store_time(offset)

    def find(self, digest: bytes) -> Kept | None:
        """The record of a key; None where there is none."""
        for file in reversed(self.files):
            found = file.find(digest)
            if found is not None:
                return found
        return None
