"""Group commit: what one tick appends is one block, one write, and one sync.

With `async` the block is written by the loop itself, and `syncer` syncs later. With
`sync` a thread writes and syncs it while the next block collects, so the loop never
waits and a slower disk makes larger blocks. One block is on its way at a time.
While the disk is slow, a thread writes with `async` too; and while a block is on its
way for longer than `wait_ms`, appends are refused as busy.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from ropeway.common.reasons import reason_of
from ropeway.common.system import sync_data
from ropeway.storage.api import (
    LogBusyError,
    LogError,
    LogUnavailableError,
    OutcomeUnknownError,
)
from ropeway.storage.file.block import (
    ENTRY,
    HEADER,
    KEY_BYTES,
    WAITING_KEY_BYTES,
    Encoded,
    HasRuns,
    Run,
    lay_out,
)
from ropeway.storage.file.disk_latency import DiskLatency
from ropeway.storage.file.segment import ActiveIndex, write_block
from ropeway.storage.file.syncer import Syncer, WriterThreads

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.file.catalog import Catalog
    from ropeway.storage.file.file_config import FileLogSettings
    from ropeway.storage.file.reader import Tail
    from ropeway.storage.file.segment import Segment
    from ropeway.storage.file.segments import Segments

    Runs = list[Run["WrittenPartition"]]

_HALF = 0.5  # a segment that is filled by more has the next one made
_log = structlog.get_logger()


class WrittenPartition(HasRuns, Protocol):
    """A partition, as its writer knows it; see `partition.FilePartition`."""

    run: Run[Any] | None
    next_offset: int
    end: int
    watchers: dict[Callable[[], None], None]

    def grown(self) -> None:
        """Tell all who watch."""

    def enter(self, segment: Segment, base_offset: int) -> None:
        """Know that a segment has records from this offset on."""

    def answer(self, run: Run[Any], error: LogError | None = None) -> None:
        """Tell callers what has become of their appends."""


class Writer:
    """Collects appends into blocks, and commits them."""

    __slots__ = (
        "_blocks",
        "_busy",
        "_catalog",
        "_clock",
        "_closed",
        "_committer",
        "_finished",
        "_flushes",
        "_pace",
        "_scheduled",
        "_segments",
        "_settings",
        "_syncer",
        "_tail",
        "block_bytes",
        "limit_bytes",
        "refusal",
        "runs",
        "sync_failed",
        "waiting_bytes",
    )

    def __init__(
        self,
        segments: Segments,
        catalog: Catalog,
        tail: Tail,
        settings: FileLogSettings,
        threads: WriterThreads,
        clock: Callable[[], int],
    ) -> None:
        self._segments = segments
        segments.sync_failed = self._sync_failed
        self._catalog = catalog
        self._tail = tail
        self._settings = settings
        self._committer = threads.commit
        self._clock = clock
        self._scheduled = False
        self._busy = False
        self._pace = DiskLatency(settings.wait_ms, self._refuse_as_busy)
        self._blocks: deque[Runs] = deque()
        self._closed = 0
        self._finished = 0
        self._flushes: list[tuple[int, asyncio.Future[None]]] = []
        """Whom to wake when so many of the blocks that were closed are finished."""
        self._syncer = Syncer(
            catalog,
            threads.sync,
            settings.flush_interval_ms,
            segments.active.end,
            self._sync_failed,
        )
        self.runs: Runs = []
        """The block that collects."""
        self.block_bytes = 0
        self.waiting_bytes = 0
        """What was appended and is not done takes, keys included."""
        self.limit_bytes = settings.in_flight_bytes
        self.refusal: LogError | None = None
        self.sync_failed = False
        """Why appends are refused, once they are."""

    def open_run(self, partition: WrittenPartition) -> Run[WrittenPartition]:
        """Begin a partition's part of the collecting block."""
        run = Run(partition, partition.next_offset)
        self.runs.append(run)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)
        return run

    def close_block(self) -> None:
        """Let the next append begin another block."""
        for run in self.runs:
            run.partition.run = None
        self._blocks.append(self.runs)
        self._closed += 1
        self.runs = []
        self.block_bytes = 0

    def _tick(self) -> None:
        self._scheduled = False
        if self.runs and not self._busy:
            self.close_block()
        self._pump()

    def _pump(self) -> None:
        while self._blocks and not self._busy:
            runs = self._blocks.popleft()
            try:
                placed = self._place(runs)
                if placed is None:
                    self._blocks.appendleft(runs)
                    return
                segment, block = placed
                began = time.monotonic()
                if self._settings.flush == "sync" or began < self._pace.away_until:
                    self._depart()
                    call = asyncio.get_running_loop().call_soon_threadsafe
                    self._committer.submit(self._write_away, call, segment, block, runs)
                    return
                write_block(segment, [block.header, block.body])
            except OSError as error:
                self._failed(runs, error)
                continue
            if (now := time.monotonic()) - began > self._pace.slow_s:
                self._pace.slow(now)
            if segment not in self._syncer.unsynced:
                self._syncer.note(segment)
            self._written(segment, block, runs)
        if self.refusal is not None and not self._busy:
            self._accept_again()

    def _depart(self) -> None:
        self._busy = True
        self._pace.depart()
        self._accept_again()

    def _accept_again(self) -> None:
        """Refuse no longer, unless blocks wait that were closed while it took long."""
        if not self._blocks and isinstance(self.refusal, LogBusyError):
            self.refusal = None

    def _arrive(self) -> None:
        self._busy = False
        self._pace.arrive()

    def overdue_ms(self) -> int:
        """How long the oldest append has been on its way, once that is too long."""
        if not isinstance(self.refusal, LogBusyError):
            return 0
        return int((time.monotonic() - self._pace.departed) * 1000)

    def _refuse_as_busy(self) -> None:
        if self.refusal is None:
            self.refusal = LogBusyError(
                f"busy: {self.waiting_bytes} bytes have waited for the disk for longer "
                f"than {self._settings.wait_ms} ms"
            )

    def _place(self, runs: Runs) -> tuple[Segment, Encoded] | None:
        """Lay a block out for the active segment, or for a new one if it is full.

        None where the new one is still being made; then it goes on when it is there.
        """
        segment = self._segments.active
        now_ms = self._clock()
        said = self._segments.log_id, self._syncer.durable, now_ms
        loop = asyncio.get_running_loop()
        block = Encoded(*lay_out(runs, segment.base, segment.written, *said))
        length = HEADER.size + len(block.body)
        if (filled := segment.filled(length)) > 1:
            if preparing := self._segments.preparing:
                self._depart()
                preparing.add_done_callback(
                    lambda _: loop.call_soon_threadsafe(self._go_on)
                )
                return None
            segment = self._segments.roll(length, loop)
            block = Encoded(*lay_out(runs, segment.base, segment.written, *said))
            filled = segment.filled(length)
        if filled > _HALF:
            self._segments.prepare()
        segment.newest_ms = now_ms
        return segment, block

    def _go_on(self) -> None:
        self._arrive()
        self._tick()

    def _write_away(
        self, call: Callable[..., object], segment: Segment, block: Encoded, runs: Runs
    ) -> None:
        """Write one block, and sync it with `sync`. In the committer's thread.

        `call` has the loop's thread call something.
        """
        began = time.monotonic()
        try:
            write_block(segment, [block.header, block.body])
        except OSError as error:
            call(self._not_written, runs, error)
            return
        if (now := time.monotonic()) - began > self._pace.slow_s:
            self._pace.slow(now)
        if self._settings.flush == "sync":
            try:
                self._catalog.sync()
                sync_data(segment.descriptor)
            except OSError as error:
                call(self._not_synced, runs, error)
                return
        call(self._written_away, segment, block, runs)

    def _written_away(self, segment: Segment, block: Encoded, runs: Runs) -> None:
        self._arrive()
        self._written(segment, block, runs)
        if self._settings.flush == "sync":
            self._syncer.durable = segment.end
        else:
            self._syncer.note(segment)
        self._tick()

    def _not_written(self, runs: Runs, error: OSError) -> None:
        self._arrive()
        self._failed(runs, error)
        self._tick()

    def _not_synced(self, runs: Runs, error: OSError) -> None:
        self._arrive()
        self._sync_failed(error)
        self._fail(runs, OutcomeUnknownError(str(self.refusal)))
        self._tick()

    def _written(self, segment: Segment, block: Encoded, runs: Runs) -> None:
        """Index a block, move the ends over it, and tell whoever waits."""
        index = segment.index
        assert isinstance(index, ActiveIndex)
        start = segment.base + segment.written + HEADER.size
        self._tail.add(start, block.body)
        entries = block.entries
        at = 0
        for run in runs:
            partition = run.partition
            after = at + run.count * ENTRY.size
            if index.add(partition.ordinal, run.base_offset, entries[at:after]):
                partition.enter(segment, run.base_offset)
            at = after
            partition.end = run.base_offset + run.count
        if block.keys:
            index.add_keys(block.keys)
        segment.written += HEADER.size + len(block.body)
        self.waiting_bytes -= block.data_bytes
        self.waiting_bytes -= len(block.keys) // KEY_BYTES * WAITING_KEY_BYTES
        for run in runs:
            run.partition.answer(run)
        for run in runs:
            if run.partition.watchers:
                run.partition.grown()
        self._finished += 1
        if self._flushes:
            self._wake_flushes()

    def _failed(self, runs: Runs, error: OSError) -> None:
        """Nothing was stored, and later it may be; unless zeros cannot be written."""
        text = f"the log cannot write: {reason_of(error)}; nothing was stored"
        if error.__cause__ is not None:
            self.refusal = LogUnavailableError(
                f"{text}, and part of a block could not be cleared: the log is "
                "read-only until it is opened again"
            )
        self._fail(runs, LogUnavailableError(text))

    def _sync_failed(self, error: OSError) -> None:
        # The kernel forgets pages it failed to write, so a later sync that succeeds
        # says nothing about them: only reading the medium again can tell.
        self.sync_failed = True
        self.refusal = LogUnavailableError(
            f"the disk failed to keep what was written: {reason_of(error)}; the log is "
            "read-only until it is opened again"
        )
        _log.error("log is read-only", error=reason_of(error))

    def _fail(self, runs: Runs, error: LogError) -> None:
        """Fail a block and all behind it, so that offsets stay as promised."""
        failed = [*runs]
        for block in self._blocks:
            failed += block
        failed += self.runs
        self._blocks.clear()
        finished = self._closed
        self.runs = []
        self.block_bytes = self.waiting_bytes = 0
        for run in failed:
            run.partition.run = None
            run.partition.next_offset = run.partition.end
        for run in failed:
            run.partition.answer(run, error)
        self._finished = finished
        self._wake_flushes()

    def durable_to(self) -> int:
        """Before which position of the log all is on the disk."""
        return self._syncer.durable

    def roll_if_older(self, now_ms: int, age_ms: int | None) -> None:
        """Begin a new segment when all in the active one has outlived an age."""
        active = self._segments.active
        if age_ms is None or self._busy or not active.written:
            return
        if active.newest_ms < now_ms - age_ms:
            self._segments.roll(0, asyncio.get_running_loop())

    async def flush(self) -> None:
        """Return when all appends before are done and synced.

        Raises:
            LogError: The disk did not keep them.
        """
        if self.runs:
            self.close_block()
        if self._finished < self._closed:
            finished = asyncio.get_running_loop().create_future()
            self._flushes.append((self._closed, finished))
            await finished
        with suppress(OSError):
            await self._syncer.sync()
        if self.sync_failed:
            raise OutcomeUnknownError(str(self.refusal))

    def stop(self) -> None:
        """Sync nothing more; nothing is appended any more."""
        self._syncer.stop()

    def _wake_flushes(self) -> None:
        waiting, self._flushes = self._flushes, []
        for target, future in waiting:
            if target > self._finished:
                self._flushes.append((target, future))
            elif not future.done():
                future.set_result(None)
