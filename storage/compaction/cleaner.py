"""When partitions are compacted, one after the other, and the swap at the end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import structlog

from ropeway.common.reasons import reason_of
from ropeway.common.throttle import Throttle
from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.compaction import directory as directories
from ropeway.storage.compaction.round import Outcome, Round
from ropeway.storage.compaction.snapshot import Snapshot
from ropeway.storage.compaction.writer import Writer
from ropeway.storage.compaction_api import CompactionStatus
from ropeway.storage.failures import unavailable
from ropeway.storage.pace import OwnShare, Pace, StoppedError
from ropeway.storage.sealed.layout import Whose

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Log
    from ropeway.storage.compaction.partition import CompactedPartition
    from ropeway.storage.compaction.round import CompactionContext

_log = structlog.get_logger()

_LOOK_EVERY_S = 5.0
_FIRST_WAIT_MS = 10_000
_LONGEST_WAIT_MS = 600_000
"""How long a partition is left alone after a failure: twice as long each time."""


class _State:
    """What the cleaner knows of a partition."""

    __slots__ = ("dirty_since_ms", "not_before_ms", "problem", "wait_ms")

    def __init__(self) -> None:
        self.dirty_since_ms: int | None = None
        """When the oldest record was stored that is not compacted; None: not known."""
        self.problem: str | None = None
        self.wait_ms = _FIRST_WAIT_MS
        self.not_before_ms = 0


class Cleaner:
    """Compacts the partitions that it was given. The loop's thread only."""

    def __init__(
        self,
        inner: Log,
        context: CompactionContext,
        need: Callable[[str, int, int | None], None],
    ) -> None:
        self._inner = inner
        self._context = context
        self._settings = settings = context.settings
        self._disk = context.disk
        self._threads = context.threads
        self._clock = context.clock
        self._need = need
        throttle = Throttle(settings.bytes_per_s, time.monotonic)
        self._pace = Pace(OwnShare(settings.share), throttle)
        self._states: dict[CompactedPartition, _State] = {}
        self._retired: set[CompactedPartition] = set()
        """Of topics that are not compacted any more."""
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.last: Outcome | None = None
        """What the last round did."""

    def add(self, partition: CompactedPartition) -> None:
        """Compact a partition from now on."""
        self._retired.discard(partition)
        self._states[partition] = _State()
        self._hold(partition, partition.clean.now.clean_end)

    def remove(self, partition: CompactedPartition) -> None:
        """Leave it alone; what was compacted stays, and goes when it is old."""
        self._retired.add(partition)
        if self._states.pop(partition, None) is not None:
            self._hold(partition, None)

    def forget(self, partition: CompactedPartition) -> None:
        """Know nothing more of it: its topic was deleted."""
        self.remove(partition)
        self._retired.discard(partition)

    def _hold(self, partition: CompactedPartition, offset: int | None) -> None:
        self._need(partition.topic, partition.number, offset)

    def status(self, partition: CompactedPartition) -> CompactionStatus:
        """How far compaction of a partition is."""
        snapshot = partition.clean.now
        state = self._states.get(partition)
        return CompactionStatus(
            number=partition.number,
            clean_end=snapshot.clean_end,
            end=partition.end,
            clean_records=snapshot.records,
            clean_bytes=snapshot.data_bytes,
            problem=state.problem if state else None,
        )

    def start(self) -> None:
        """Look for work from time to time."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _LOOK_EVERY_S)
            try:
                await self.look()
            except StoppedError:
                return
            except Exception:  # noqa: BLE001 - nobody would begin it again
                _log.exception("compaction stood still for a moment")

    async def look(self) -> None:
        """Compact each partition for which it is time.

        Raises:
            StoppedError: The log is being closed.
        """
        if self._pace.stopped:
            raise StoppedError
        for partition in list(self._retired):
            if self._is_outlived(partition):
                await self._forget(partition)
        for partition, state in list(self._states.items()):
            now_ms = self._clock()
            # A clock that was set back must not make it wait for longer.
            if 0 < state.not_before_ms - now_ms <= _LONGEST_WAIT_MS:
                continue
            try:
                await self._compact_if_due(partition, state, now_ms)
            except StoppedError:
                raise
            except LogError as error:
                if partition in self._states:
                    self._failed(partition, state, str(error))
            except Exception:  # noqa: BLE001 - the others are compacted
                _log.exception("not compacted", topic=partition.topic)
                self._failed(partition, state, "a fault of Ropeway; the log says more")

    async def _compact_if_due(
        self, partition: CompactedPartition, state: _State, now_ms: int
    ) -> None:
        target = await self._target(partition, state, now_ms)
        if target is not None:
            await self._compact_to(partition, target)

    def _is_outlived(self, partition: CompactedPartition) -> bool:
        kept_ms = self._settings.keyless_ms
        snapshot = partition.clean.now
        if kept_ms is None or not snapshot.files:
            return False
        return snapshot.newest_ms < self._clock() - kept_ms

    async def _forget(self, partition: CompactedPartition) -> None:
        """Delete what was compacted, as retention deletes on any topic."""
        clean = partition.clean
        new = Snapshot((), clean.now.clean_end, clean.next_generation())
        async with self._turn:
            try:
                await self._swap(partition, new)
            except OSError as error:
                _log.warning(
                    "not deleted",
                    directory=str(clean.directory),
                    reason=reason_of(error),
                )

    def _failed(
        self, partition: CompactedPartition, state: _State, reason: str
    ) -> None:
        state.problem = reason
        state.not_before_ms = self._clock() + state.wait_ms
        _log.warning(
            "not compacted; nothing is lost, and it is tried again",
            topic=partition.topic,
            partition=partition.number,
            reason=reason,
            again_in_s=state.wait_ms // 1000,
        )
        state.wait_ms = min(state.wait_ms * 2, _LONGEST_WAIT_MS)

    async def _target(
        self, partition: CompactedPartition, state: _State, now_ms: int
    ) -> int | None:
        """Up to where it is time to compact; None where it is not."""
        settings = self._settings
        snapshot = partition.clean.now
        first, end = partition.dirty_first, partition.end
        is_due = 0 < snapshot.due_ms <= now_ms
        if first >= end:
            return end if is_due else None
        if state.dirty_since_ms is None:
            state.dirty_since_ms = await partition.inner.store_time(first)
        dirty = end - first
        is_late = (state.dirty_since_ms or 0) <= now_ms - settings.max_lag_ms
        is_dirty = dirty >= settings.dirty_ratio * (dirty + snapshot.records)
        if not (is_due or is_late or is_dirty):
            return None
        young_ms = now_ms - settings.min_lag_ms
        target = max(await partition.inner.offset_at(young_ms), first)
        return target if target > first or is_due else None

    async def compact(self, partition: CompactedPartition) -> None:
        """Compact all that a partition has by now.

        Raises:
            LogError: It could not be done; what was there before is there still.
        """
        try:
            await self._compact_to(partition, partition.end)
        except StoppedError:
            raise LogUnavailableError("the log is being closed") from None

    async def _compact_to(self, partition: CompactedPartition, target: int) -> None:
        """Rounds until all before `target` is compacted."""
        async with self._turn:
            while partition in self._states:
                if self._pace.stopped:
                    raise StoppedError
                await self._round(partition, target)
                if partition.clean.now.clean_end >= target:
                    break

    async def _round(self, partition: CompactedPartition, target: int) -> None:
        """One round, and the swap.

        The log's records up to `target` are made durable first: a compacted file must
        never have an offset that a power cut takes out of the log, which would give it
        to another record.
        """
        await self._inner.flush()
        clean = partition.clean
        old = clean.now
        generation = clean.next_generation()
        loop = asyncio.get_running_loop()
        remedy = "; it needs room for what is kept, twice"
        with unavailable(f"cannot compact into {clean.directory}", remedy):
            await loop.run_in_executor(
                self._threads, self._disk.make_directory, clean.directory
            )
            writer = Writer(
                self._disk,
                self._threads,
                clean.directory,
                generation,
                self._settings.file_bytes,
                Whose(partition.topic, partition.number),
            )
            work = Round(
                partition.inner,
                old,
                target,
                self._context,
                self._pace,
                writer,
            )
            outcome = await work.run()
            if partition not in self._states:
                return  # its topic was deleted, or is not compacted any more
            new = Snapshot(outcome.files, outcome.clean_end, generation)
            await self._swap(partition, new)
        self.last = outcome
        state = self._states.get(partition)
        if state is not None:
            state.dirty_since_ms = state.problem = None
            state.wait_ms = _FIRST_WAIT_MS
            self._hold(partition, new.clean_end)

    async def _swap(self, partition: CompactedPartition, new: Snapshot) -> None:
        """Have the manifest name other files; let readers have them; delete the old."""
        clean, disk = partition.clean, self._disk
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(
            self._threads,
            directories.swap,
            disk,
            clean.directory,
            Whose(partition.topic, partition.number, clean.identity),
            new,
        )
        clean.now = new
        await loop.run_in_executor(
            self._threads, directories.clear_up, disk, clean.directory, new
        )

    @property
    def is_idle(self) -> bool:
        """Whether no round is under way."""
        return not self._turn.locked()

    async def idle(self) -> None:
        """Return when no round is under way."""
        async with self._turn:
            return

    async def close(self) -> None:
        """End what is under way, and do no more. Twice is fine.

        Nothing is cancelled: a thread may be writing.
        """
        self._pace.stopped = True
        self._closing.set()
        if self._task is not None:
            await self._task
        await self.idle()
