"""A partition of a compacted topic: older records in files, newer ones in the log.

What is below `clean_end` is read from compacted files, the rest from the log beneath.
A round gives a new snapshot at once, between two events of the loop; a read that is
under way and finds its file gone begins anew. As offsets never change, no reader can
tell.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ropeway.common.reasons import reason_of
from ropeway.storage.api import Chunk, Filter, LogDamagedError, LogUnavailableError
from ropeway.storage.compaction.accepted_parts import accepted
from ropeway.storage.compaction.file import ColdError, fetch_hot
from ropeway.storage.wrapper import WrappedPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from ropeway.storage.api import Partition
    from ropeway.storage.compaction.snapshot import Snapshot
    from ropeway.storage.sealed.pick import Pick

T = TypeVar("T")

_ALL = Filter()


class Clean:
    """The compacted part of a partition, as it is now. The loop's thread only."""

    __slots__ = ("_generation", "_threads", "directory", "identity", "now")

    def __init__(
        self,
        directory: Path,
        now: Snapshot,
        threads: ThreadPoolExecutor,
        identity: int = 0,
    ) -> None:
        self.directory = directory
        self.identity = identity
        """The partition's in its log; 0 where the log gives none."""
        self.now = now
        self._generation = now.generation
        self._threads = threads

    def next_generation(self) -> int:
        """A number for new files' names: no attempt's before, failed ones included."""
        self._generation += 1
        return self._generation

    async def ask(self, look: Callable[[Snapshot], T]) -> T:
        """What a thread finds in the snapshot; in the next one, if its files go.

        Raises:
            LogDamagedError: A file is not what was written.
            LogUnavailableError: The disk refused.
        """
        loop = asyncio.get_running_loop()
        while True:
            snapshot = self.now
            try:
                return await loop.run_in_executor(self._threads, look, snapshot)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and snapshot is not self.now:
                    continue
                raise LogUnavailableError(
                    f"cannot read {error.filename or self.directory}: "
                    f"{reason_of(error)}"
                ) from error


class CompactedPartition(WrappedPartition):
    """Both parts as one; see `storage.api.Partition` for what it promises."""

    __slots__ = ("clean",)

    def __init__(self, inner: Partition, clean: Clean) -> None:
        super().__init__(inner)
        self.clean = clean

    @property
    def first(self) -> int:
        """The offset of the oldest record that is left; `end` where there is none."""
        snapshot = self.clean.now
        return snapshot.files[0].first if snapshot.files else self.dirty_first

    @property
    def dirty_first(self) -> int:
        """The first offset that is not compacted yet."""
        return max(self.inner.first, self.clean.now.clean_end)

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk | None:
        """Read from memory alone; None where that is not enough."""
        snapshot = self.clean.now
        while offset < snapshot.clean_end:
            if filter is not None:
                return None  # it may have to look at many
            try:
                found = snapshot.read(offset, (max_count, max_bytes), None, fetch_hot)
            except (ColdError, LogDamagedError, OSError):
                return None  # `read` waits for the disk, or says what is wrong
            if found.looked:
                return found.chunk()
            offset = found.offset
        return self.inner.read_now(offset, max_count, max_bytes, filter)

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk:
        """Read records from an offset on, or from the next one there is."""
        wanted = filter or _ALL
        # What accepts is the loop's, and files are read by a thread.
        by_tag = Filter(wanted.tag_hashes, None, wanted.looks)
        while offset < self.clean.now.clean_end:
            found: Pick = await self.clean.ask(
                lambda snapshot, at=offset: snapshot.read(  # type: ignore[misc]
                    at, (max_count, max_bytes), by_tag
                )
            )
            if found.looked:
                chunk = found.chunk()
                if wanted.accept is None:
                    return chunk
                data = accepted(chunk.data, wanted.accept)
                return Chunk(data, len(data), chunk.next_offset)
            # Nothing is left between this offset and the log.
            offset = found.offset
        return await self.inner.read(offset, max_count, max_bytes, filter)

    async def offset_at(self, time_ms: int, *, upper: bool = False) -> int:
        """Find an offset by store time; see `storage.api`."""
        wanted_ms = time_ms + upper
        after = await self.clean.ask(lambda snapshot: snapshot.first_after(wanted_ms))
        if after is None:
            after = max(await self.inner.offset_at(wanted_ms), self.dirty_first)
        if not upper:
            return after
        if after > self.dirty_first:
            return after - 1
        before = await self.clean.ask(lambda snapshot: snapshot.last_before(after))
        return self.first if before is None else before

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored; None where it is not there."""
        if offset >= self.clean.now.clean_end:
            return await self.inner.store_time(offset)
        return await self.clean.ask(lambda snapshot: snapshot.store_time(offset))
