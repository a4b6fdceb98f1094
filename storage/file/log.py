"""The embedded log: opening it, its topics, and joining its parts."""

from __future__ import annotations

import asyncio
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.common.clock import now_ms
from ropeway.common.reasons import reason_at
from ropeway.storage.api import (
    MAX_OFFSET,
    LogBusyError,
    LogError,
    LogUnavailableError,
    LogUnfitError,
    NoSuchPartitionError,
)
from ropeway.storage.beginnings import refuse_impossible
from ropeway.storage.failures import unavailable
from ropeway.storage.file import catalog as catalogs
from ropeway.storage.file import lock
from ropeway.storage.file.expiry import Expired, floors, outlived, unlink
from ropeway.storage.file.fetcher import Fetcher
from ropeway.storage.file.file_config import FileLogSettings
from ropeway.storage.file.files import OpenFiles
from ropeway.storage.file.follower import Follower, identity
from ropeway.storage.file.partition import FilePartition
from ropeway.storage.file.query import Query
from ropeway.storage.file.reader import Sources, Tail
from ropeway.storage.file.recovery import Opened, hold_against, recheck, recover
from ropeway.storage.file.segments import Segments
from ropeway.storage.file.syncer import WriterThreads
from ropeway.storage.file.trim import trim
from ropeway.storage.file.windows import Windows
from ropeway.storage.file.writer import Writer
from ropeway.storage.trim_api import planned

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from ropeway.storage.api import EntryFormat, Found, Numbering
    from ropeway.storage.file.segment import Segment
    from ropeway.storage.replication import Stretch

READERS = 4
"""Threads that wait for disks on behalf of readers."""

_log = structlog.get_logger()


def open_log(
    directory: Path,
    settings: FileLogSettings | None = None,
    clock: Callable[[], int] = now_ms,
) -> FileLog:
    """Open the log in a directory, or make one there.

    It waits for the disk: it reads the directories of sealed indexes, and the blocks
    of the segment that was written to last.

    Args:
        directory: Made where it is missing.
        settings: The defaults, where it is None.
        clock: Milliseconds since 1970; dates blocks, for retention by age.

    Raises:
        LogInUseError: Another process has it open.
        LogDamagedError: There is damage in the middle; names file, place, way out.
        LogError: The directory cannot be used, or is of a newer format.
    """
    settings = settings or FileLogSettings()
    held = lock.take(directory)
    with ExitStack() as refused:
        refused.callback(os.close, held)
        try:
            skip = settings.on_damage == "skip"
            catalog = catalogs.open_catalog(directory, secrets.randbits(63), skip=skip)
            refused.callback(catalog.close)
            size = settings.segment_bytes
            segments, report = recover(directory, catalog, size, skip=skip)
            refused.callback(os.close, segments[-1].descriptor)
            hold_against(catalog, segments, report, skip=skip)
        except OSError as error:
            text = f"cannot open the log in {directory}: {reason_at(error)}"
            raise LogError(text) from error
        refused.pop_all()
    if report.dropped or report.skipped or report.rebuilt:
        _log.warning("log recovered", directory=str(directory), report=report)
    return FileLog(directory, settings, clock, Opened(held, catalog, segments, report))


class FileLog:
    """A log in one directory; see `storage.api` for what it promises."""

    numbering: Numbering = "rotating"

    def __init__(
        self,
        directory: Path,
        settings: FileLogSettings,
        clock: Callable[[], int],
        opened: Opened,
    ) -> None:
        self.directory = directory
        self._held, self._catalog, found, self.recovery = opened
        catalog = self._catalog
        self._settings = settings
        self._files = OpenFiles(settings.open_files)
        self._threads = WriterThreads(
            ThreadPoolExecutor(1, "log-commit"), ThreadPoolExecutor(1, "log-sync")
        )
        self._chores = ThreadPoolExecutor(1, "log-chores")
        self._readers = ThreadPoolExecutor(READERS, "log-read")
        self._querying = asyncio.Lock()
        tail = Tail(settings.tail_bytes)
        self._segments = Segments(
            directory,
            catalog.log_id,
            settings.segment_bytes,
            found,
            self._files,
            self._chores,
        )
        self._writer = Writer(
            self._segments,
            catalog,
            tail,
            settings,
            self._threads,
            clock,
        )
        self.overdue_ms: Callable[[], int] = self._writer.overdue_ms
        # No step of Python's: it is asked once a tick.
        self.waiting_bytes: Callable[[], int] = partial(
            getattr, self._writer, "waiting_bytes"
        )
        self._fetcher = Fetcher(
            self._files,
            self._readers,
            self._check,
            skip=settings.on_damage == "skip",
        )
        self._sources = Sources(tail, self._fetcher, Windows())
        self._follower = Follower(
            self._segments,
            catalog.names,
            self._writer.durable_to,
            skip=settings.on_damage == "skip",
        )
        self._partitions: dict[str, dict[int, FilePartition]] = {}
        self._needed: dict[int, int] = {}
        """By ordinal: from which offset on retention leaves a partition's records."""
        self._closing: asyncio.Task[None] | None = None

    async def create(
        self,
        topic: str,
        partitions: Collection[int],
        entry_format: EntryFormat = "packed",
        generation: int = 0,  # noqa: ARG002 - what is deleted here is gone at once
        begins: Mapping[int, int] | None = None,
    ) -> None:
        """Make partitions of a topic; see `storage.api`."""
        self._refuse_when_closed()
        if entry_format != "packed":
            raise LogUnfitError(
                f"entry format {entry_format} of topic {topic}; allowed in the "
                "embedded log: packed, for it has no other clients"
            )
        refuse_impossible(topic, partitions, begins or {}, MAX_OFFSET)
        self._catalog.create(topic, partitions, begins or {})
        if begins:
            await self._sync_catalog(f"cannot make topic {topic}")

    async def delete(self, topic: str, generation: int = 0) -> None:  # noqa: ARG002 - likewise
        """Forget a topic; see `storage.api`."""
        self._refuse_when_closed()
        if topic not in self._catalog.topics:
            return
        self._catalog.delete(topic)
        for partition in self._partitions.pop(topic, {}).values():
            partition.gone = True
            partition.watchers.clear()
            self._needed.pop(partition.ordinal, None)

    def partition(self, topic: str, number: int) -> FilePartition:
        """The partition of that name; see `storage.api`."""
        try:
            return self._partitions[topic][number]
        except KeyError:
            return self._open_partition(topic, number)

    async def ready(self, topic: str, numbers: Collection[int] | None = None) -> None:
        """Nothing to wait for; see `storage.api`."""
        del numbers
        if topic not in self._catalog.topics:
            raise NoSuchPartitionError(f"no topic {topic}")

    def _open_partition(self, topic: str, number: int) -> FilePartition:
        self._refuse_when_closed()
        ordinal = self._catalog.topics.get(topic, {}).get(number)
        if ordinal is None:
            known = sorted(self._catalog.topics.get(topic, ()))
            raise NoSuchPartitionError(
                f"no partition {number} of topic {topic}; it has {known or 'none'}"
            )
        partition = FilePartition(topic, number, ordinal, self._writer, self._sources)
        end = self._catalog.ends.get(ordinal, 0)
        for segment in self._segments.all:
            span = segment.index.span(ordinal)
            if span is not None:
                partition.enter(segment, span.base_offset)
                end = max(end, span.base_offset + span.records)
        trimmed = self._catalog.trimmed.get(ordinal, 0)
        if trimmed > end:
            # Damage at the end was skipped; what comes next is not to be hidden.
            self._catalog.trim({ordinal: end})
        partition.floor = min(trimmed, end)
        partition.end = partition.next_offset = end
        return self._partitions.setdefault(topic, {}).setdefault(number, partition)

    def topics(self) -> dict[str, frozenset[int]]:
        """Every topic with the numbers of its partitions."""
        return {
            topic: frozenset(numbers)
            for topic, numbers in self._catalog.topics.items()
            if numbers
        }

    async def hosts(self, topic: str, partitions: Collection[int]) -> dict[int, str]:
        """None: files are where their log is."""
        del topic, partitions
        return {}

    @property
    def misfits(self) -> int:
        """None: the ends are what the directory says."""
        return 0

    async def query(
        self, topic: str, key: str, begin_ms: int, end_ms: int, max_count: int
    ) -> list[Found]:
        """Records that were appended with a key, newest first; see `storage.api`."""
        self._refuse_when_closed()
        numbers = self._catalog.topics.get(topic, {})
        partitions = [self.partition(topic, number) for number in numbers]
        query = Query(self._segments, self._readers, self._check)
        # A key that very many have takes seconds: one of those at a time.
        async with self._querying:
            return await query.run(
                partitions, topic, key, (begin_ms, end_ms), max_count
            )

    async def follow(self, position: int, max_bytes: int) -> Stretch:
        """What was written from a position on; see `storage.replication`."""
        self._refuse_when_closed()
        read = self._follower.submit(position, max_bytes)
        return await asyncio.get_running_loop().run_in_executor(self._readers, read)

    def identity(self, topic: str, number: int) -> int:
        """A number that no other partition has; see `storage.replication`."""
        ordinal = self.partition(topic, number).ordinal
        return identity(self._catalog.log_id, ordinal)

    @property
    def written_to(self) -> int:
        """The position at which the next record will be written."""
        return self._segments.active.end

    async def expire(self, now_ms: int, keep_from: int | None = None) -> Expired:
        """Drop the segments that retention no longer keeps.

        Args:
            now_ms: This machine's time, in milliseconds since 1970.
            keep_from: Nothing goes that reaches past this position.

        Raises:
            LogUnavailableError: Files could not be deleted.
        """
        self._refuse_when_closed()
        settings = self._settings
        segments = self._segments
        with unavailable("cannot begin a segment"):
            self._writer.roll_if_older(now_ms, settings.retention_ms)
        old = outlived(
            segments.all,
            now_ms,
            settings.retention_ms,
            settings.retention_bytes,
            {
                ordinal: least_ms
                for topic, least_ms in settings.kept_ms.items()
                for ordinal in self._catalog.topics.get(topic, {}).values()
            },
            self._needed,
            self._catalog.trimmed,
            keep_from,
        )
        if not old:
            return Expired(0, 0)
        kept = segments.all[len(old) :]
        loop = asyncio.get_running_loop()
        with unavailable("cannot drop segments"):
            ends = await loop.run_in_executor(self._chores, floors, old, kept)
            if ends:
                self._catalog.set_ends(ends)
                await self._sync_catalog("cannot drop segments")
            for segment in old:
                segments.drop(segment)
            await loop.run_in_executor(self._chores, unlink, old)
        return Expired(len(old), sum(segment.written for segment in old))

    async def trim(
        self, topic: str, floors: Mapping[int, int], *, dry_run: bool = False
    ) -> dict[int, int]:
        """Give up records below an offset of each partition; see `storage.trim_api`.

        Their segments go when nothing of them is left, or when retention drops them.
        """
        partitions = {number: self.partition(topic, number) for number in floors}
        if dry_run:
            return planned(partitions, floors)
        await trim(partitions, floors, self._catalog, self.flush, self._sync_catalog)
        return {number: one.first for number, one in partitions.items()}

    async def _sync_catalog(self, failure: str) -> None:
        """Have the journal on the disk; `failure` says what else was not done."""
        loop = asyncio.get_running_loop()
        with unavailable(failure):
            await loop.run_in_executor(self._chores, self._catalog.sync)

    def need(self, topic: str, number: int, offset: int | None) -> None:
        """Keep a partition's records from an offset on, whatever retention says.

        None ends that. It is not kept over a restart.
        """
        ordinal = self._catalog.topics.get(topic, {}).get(number)
        if ordinal is not None and offset is not None:
            self._needed[ordinal] = offset
        elif ordinal is not None:
            self._needed.pop(ordinal, None)

    async def flush(self) -> None:
        """Return when all that was appended before is on the disk."""
        self._refuse_when_closed()
        await self._writer.flush()

    async def close(self) -> None:
        """Flush, give everything up, refuse further calls. Twice is fine."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        closed = LogUnavailableError(f"the log in {self.directory} is closed")
        refusal = self._writer.refusal
        failed = refusal is not None and not isinstance(refusal, LogBusyError)
        self._writer.refusal = refusal if failed else closed
        try:
            if not failed:
                await self._writer.flush()
        finally:
            self._writer.stop()
            self._fetcher.closed = closed
            loop = asyncio.get_running_loop()
            pools = (*self._threads, self._chores, self._readers)
            for pool in pools:
                await loop.run_in_executor(None, pool.shutdown)
            # What the threads have handed back is still to be taken.
            await asyncio.sleep(0)
            self._segments.close()
            self._files.close()
            self._catalog.close()
            os.close(self._held)
            self._partitions.clear()

    async def _check(self, segment: Segment) -> None:
        """Hold a sealed index against its checksum; make it again if it is damaged."""
        loop = asyncio.get_running_loop()
        skip = self._settings.on_damage == "skip"
        index = await loop.run_in_executor(
            self._readers, recheck, segment, self._catalog.log_id, skip
        )
        if not segment.gone:
            segment.index = index

    def _refuse_when_closed(self) -> None:
        if self._closing is not None:
            raise LogUnavailableError(f"the log in {self.directory} is closed")
