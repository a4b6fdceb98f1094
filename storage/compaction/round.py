"""One round of compaction: which records stay, and writing them anew.

1. The records that came since the last round are read in order, and the last offset
   of each of their keys goes into a map, until it is full or there are no more.
2. The index of each older file is held against the map: what it has of these keys goes.
3. What stays of the files that lose records, and of the new ones, is written to new
   files. Files that lose nothing are taken as they are.
4. The manifest names the new files: that is the swap.

So a round ends with one record a key below `clean_end`, however many rounds it took.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.api import LogDamagedError
from ropeway.storage.compaction import source, steps
from ropeway.storage.compaction.bits import Bits
from ropeway.storage.compaction.compiled import may_be_compiled
from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.offset_map import OffsetMap
from ropeway.storage.compaction_api import ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.storage.api import Partition
    from ropeway.storage.compaction.compaction_config import CompactionSettings
    from ropeway.storage.compaction.file import CompactedFile
    from ropeway.storage.compaction.snapshot import Snapshot
    from ropeway.storage.compaction.source import Read
    from ropeway.storage.compaction.writer import Writer
    from ropeway.storage.compaction_api import Describer
    from ropeway.storage.pace import Pace

THREADS = 2
"""One for rounds, and one for reads at least."""
READ_COUNT = 128 if may_be_compiled.is_pure else 1024
"""Records that are looked at without making way for others: about a millisecond."""
_WRITE_COUNT = 256
"""Records that are written without looking whether the file is full."""
_NEAR = 64
"""Reading so many records more costs less than another read."""
_SMALL = 2
"""A file of less than half the size is written anew with its neighbours."""
_BLOCKS_AT_ONCE = 8
_SLOTS_AT_ONCE = 2048 if may_be_compiled.is_pure else 1 << 18


@dataclass(frozen=True)
class CompactionContext:
    """What all rounds of a log go by, and work with."""

    settings: CompactionSettings
    """When and how to compact."""
    describer: Describer
    """Reads keys."""
    clock: Callable[[], int]
    """Milliseconds since 1970."""
    disk: Disk = field(default_factory=Disk)
    """Changes files."""
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, "log-compaction")
    )
    """Wait for the disk; they end with the log."""


class Outcome(NamedTuple):
    """What a round made of a partition."""

    files: list[CompactedFile]
    clean_end: int
    read_records: int
    read_bytes: int
    written_bytes: int


class Round:
    """Steps 1 to 3 over one partition.

    Args:
        partition: All records, as they were appended.
        old: What the last round left, and where it ended.
        target: Go no further.
        context: What all rounds go by.
        pace: Says when to rest.
        writer: Of the files that come of it.
    """

    def __init__(
        self,
        partition: Partition,
        old: Snapshot,
        target: int,
        context: CompactionContext,
        pace: Pace,
        writer: Writer,
    ) -> None:
        self._source = partition
        self._files = old.files
        # It may begin far behind 0, and what is noted of records is from there on.
        self._begin = begin = max(old.clean_end, partition.first)
        self._target = target
        self._now_ms = context.clock()
        self._settings = settings = context.settings
        self._describer = context.describer
        self._pace = pace
        self._writer = writer
        self._threads = context.threads
        self._map = OffsetMap(settings.map_bytes, max(target - begin, 0))
        self._stays = Bits(begin)
        self._read_records = self._read_bytes = self._paced = 0

    async def run(self) -> Outcome:
        """Do steps 1 to 3.

        Raises:
            LogError: The source cannot be read, or an older file is damaged.
            OSError: The disk refused.
        """
        self._pace.begin()
        try:
            end = await self._choose()
            kept = await self._carry_over()
            await self._add_new(end)
            await self._writer.end_file()
        finally:
            self._writer.give_up()
        files = sorted([*kept, *self._writer.made], key=lambda one: one.first)
        return Outcome(
            files, end, self._read_records, self._read_bytes, self._writer.written
        )

    async def _choose(self) -> int:
        """Step 1. Where it ended."""
        offset = max(self._begin, self._source.first)
        while offset < self._target:
            found = await source.read(self._source, offset, self._target, READ_COUNT)
            rows = self._rows(found)
            taken = self._map.note(rows, found.first, self._stays)
            self._read_records += taken
            if taken < len(rows) // ROW.size:
                return await self._mark(found.first + taken)
            offset = found.next_offset
            await self._rest(len(found.data))
        return await self._mark(self._target)

    def _rows(self, found: Read) -> bytes:
        try:
            return self._describer.rows(found.data)
        except ValueError as error:
            raise LogDamagedError(
                f"topic {self._source.topic}, partition {self._source.number}, offset "
                f"{found.first} and on: {error}; stop the node, and let ropeway log "
                "verify find what is damaged"
            ) from error

    async def _mark(self, end: int) -> int:
        """Note which of the new records stay: the last ones of their keys."""
        for slot in range(0, self._map.slots, _SLOTS_AT_ONCE):
            self._map.mark(slot, _SLOTS_AT_ONCE, self._stays, end)
            await self._rest(0)
        return end

    async def _rest(self, read_bytes: int) -> None:
        self._read_bytes += read_bytes
        written = self._writer.written
        await self._pace.rest(read_bytes + written - self._paced)
        self._paced = written

    async def _carry_over(self) -> list[CompactedFile]:
        """Steps 2 and 3 for the older files. Those that stay as they are."""
        kept = []
        for file in self._files:
            staying = await self._staying(file)
            large = file.index.about.data_bytes * _SMALL >= self._settings.file_bytes
            if large and staying.count(1) == file.index.about.records:
                await self._writer.end_file()
                kept.append(file)
            elif any(staying):
                await self._copy(file, staying)
        return kept

    async def _staying(self, file: CompactedFile) -> bytearray:
        """Which records of an older file stay, a byte each."""
        loop = asyncio.get_running_loop()
        staying = bytearray()
        for first in range(0, file.index.blocks, _BLOCKS_AT_ONCE):
            end = min(first + _BLOCKS_AT_ONCE, file.index.blocks)
            some = await loop.run_in_executor(self._threads, file.columns, first, end)
            for one in some:
                staying += self._map.staying(one.due, one.digests, self._now_ms)
            await self._rest(0)
        return staying

    async def _copy(self, file: CompactedFile, staying: bytearray) -> None:
        """Write what stays of an older file behind what was written before."""
        loop = asyncio.get_running_loop()
        starts = file.index.starts
        for first in range(0, file.index.blocks, _BLOCKS_AT_ONCE):
            end = min(first + _BLOCKS_AT_ONCE, file.index.blocks)
            if not any(staying[starts[first] : starts[end]]):
                continue
            blocks = await loop.run_in_executor(self._threads, file.blocks, first, end)
            for number, block in enumerate(blocks, first):
                some = staying[starts[number] : starts[number + 1]]
                self._writer.add(*steps.carry_over(block, some))
            await self._writer.breathe()
            await self._rest(sum(len(block.data) for block in blocks))

    async def _add_new(self, end: int) -> None:
        """Step 3 for the new records."""
        for begin, before in self._stays.windows(end, _WRITE_COUNT):
            numbers = self._stays.within(begin, before)
            read_bytes = 0
            for first, last in _runs(numbers):
                read_bytes += await self._add_range(first, last + 1)
            await self._writer.breathe()
            await self._rest(read_bytes)

    async def _add_range(self, offset: int, end: int) -> int:
        read_bytes = 0
        keyless_ms = self._settings.keyless_ms
        while offset < end:
            found = await source.read(self._source, offset, end, _WRITE_COUNT)
            self._writer.add(
                *steps.lay_out(
                    found.data,
                    self._rows(found),
                    found.first,
                    self._stays.cover(end),
                    self._stays.base,
                    self._now_ms,
                    -1 if keyless_ms is None else keyless_ms,
                    self._settings.tombstone_ms,
                )
            )
            offset = found.next_offset
            read_bytes += len(found.data)
        return read_bytes


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges to read at once: what lies between numbers that are near is read, too."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number - last > _NEAR:
            yield first, last
            first = number
        last = number
    yield first, last
