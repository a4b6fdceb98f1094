"""Copying a log into the tier: what was written, a segment a partition, in order.

The log is read in the order of writing, from a *position* on. What is read collects by
partition and becomes a segment when it is much, many, or old. The position that a
restart begins with is the smallest one of all that is not in the tier yet; the log
keeps its files from there on. So nothing is left out, and what is copied twice is
passed over: a partition's segments know which offsets they have.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.replication import ENTRY
from ropeway.storage.tiered.pending_segment import Pending
from ropeway.storage.tiered.tier_config import MAX_RECORDS, SCAN_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.storage.pace import Pace
    from ropeway.storage.replication import Followed, Run, Stretch
    from ropeway.storage.tiered.tier_config import TieredSettings
    from ropeway.storage.tiered.tier_index import TierIndex

POSITION, PAUSED, BACKFILL, FAILURE = "position", "paused", "backfill", "failure"
URL = "url"
"""Words in the metadata; `ropeway tier` sets the second and the third."""

LONGEST_WAIT_S = 30.0
"""Between attempts, while the provider does not answer."""

_log = structlog.get_logger()


class Dispatcher:
    """Copies one log."""

    def __init__(
        self,
        log: Followed,
        tier_index: TierIndex,
        settings: TieredSettings,
        wants: Callable[[str], bool],
        clock_s: Callable[[], float],
        pace: Pace,
    ) -> None:
        self._log = log
        self._tier_index = tier_index
        self._settings = settings
        self._wants = wants
        self._clock_s = clock_s
        self._pace = pace
        self._pending: dict[int, Pending] = {}
        """By identity, those first whose position is smallest."""
        self._closed: dict[int, list[Pending]] = {}
        """What is to be uploaded as it is, by identity; each becomes a segment."""
        self.waiting_bytes = 0
        self._one_round = asyncio.Lock()
        kept = tier_index.metadata.get_state(POSITION)
        if kept is not None:
            self.position = int(kept)
        else:
            self.position = 0 if settings.backfill else log.written_to
            tier_index.metadata.put_state(POSITION, str(self.position))
        self._kept = self.position
        self.failure: str | None = None
        """Why the last attempt failed, where it did."""

    @property
    def safe_position(self) -> int:
        """All that was written before is in the tier, or is not wanted there."""
        positions = [closed[0].position for closed in self._closed.values()]
        if self._pending:
            positions.append(next(iter(self._pending.values())).position)
        return min(positions, default=self.position)

    @property
    def is_behind(self) -> bool:
        """Whether so much waits that it has to be uploaded however busy the node is."""
        return self._log.written_to - self.position > self._settings.lag_bytes

    async def is_paused(self) -> bool:
        """Whether somebody has said that nothing is to be uploaded for now."""
        state = self._tier_index.metadata.get_state
        return await self._tier_index.note(lambda: state(PAUSED)) is not None

    async def round(self, *, everything: bool = False) -> bool:
        """Read on in the log, and upload what is due.

        Args:
            everything: All that waits is due.

        Returns:
            Whether there is more to do at once.

        Raises:
            LogError: The log or the provider did not answer; nothing is forgotten.
        """
        async with self._one_round:
            if await self._obey():
                return False
            before = self.position
            full = self.waiting_bytes >= self._settings.buffer_bytes
            if not full:
                stretch = await self._log.follow(self.position, SCAN_BYTES)
                for run in stretch.runs:
                    self._take(run, stretch)
                self.position = stretch.position
            try:
                await self._upload(everything=everything)
            finally:
                await self._keep_position()
            return full or self.position != before

    async def all(self) -> None:
        """Return when all that the log has on its disk now is in the tier.

        Raises:
            LogError: The log or the provider did not answer.
        """
        while await self.round(everything=True):
            pass

    async def _obey(self) -> bool:
        """Begin anew where a backfill is asked for; whether there is a pause."""

        def asked() -> tuple[bool, bool]:
            metadata = self._tier_index.metadata
            if metadata.get_state(PAUSED) is not None:
                return True, False
            if metadata.get_state(BACKFILL) is None:
                return False, False
            metadata.put_state(POSITION, "0")
            metadata.put_state(BACKFILL, None)
            return False, True

        paused, backfill = await self._tier_index.note(asked)
        if backfill:
            # What waits is read again: it would come before older records otherwise.
            self._pending.clear()
            self._closed.clear()
            self.waiting_bytes = 0
            self.position = self._kept = 0
        return paused

    def _take(self, run: Run, stretch: Stretch) -> None:
        """Have what the tier has not of a run wait."""
        if not self._wants(run.topic):
            return
        base, end = run.base_offset, run.base_offset + run.records
        flat = self._tier_index.flats.get(run.identity)
        while base < end:
            after = end
            if flat is not None:
                base, after = flat.uncovered(base, end)
            while base < after:
                base = self._add(part_of(run, base, after), stretch)

    def _add(self, run: Run, stretch: Stretch) -> int:
        """Have as much of a run wait as one segment may have; the offset behind it."""
        pending = self._pending.get(run.identity)
        if pending is not None and pending.end != run.base_offset:
            # A gap: they cannot stand in one segment.
            self._close(pending)
            pending = None
        if pending is None:
            pending = self._pending[run.identity] = Pending(
                run, self.position, self._clock_s()
            )
        most = min(self._settings.commit_records, MAX_RECORDS)
        left = most - pending.records
        part = part_of(run, run.base_offset, run.base_offset + min(left, run.records))
        pending.add(part, stretch.written_ms)
        self.waiting_bytes += len(part.data)
        if pending.records == most or pending.bytes >= self._settings.commit_bytes:
            self._close(pending)
        return pending.end

    def _close(self, pending: Pending) -> None:
        identity = pending.whose.identity
        del self._pending[identity]
        self._closed.setdefault(identity, []).append(pending)

    def _close_due(self, *, everything: bool) -> None:
        """Close what has waited for long; and the largest, where all is too much."""
        old_s = self._clock_s() - self._settings.commit_ms / 1000
        for pending in [*self._pending.values()]:
            if not everything and pending.since_s > old_s:
                break
            self._close(pending)
        if self.waiting_bytes >= self._settings.buffer_bytes:
            waiting = sorted(self._pending.values(), key=lambda one: -one.bytes)
            for pending in waiting[: self._settings.uploads]:
                self._close(pending)

    async def _upload(self, *, everything: bool) -> None:
        """Upload all that is closed, several partitions at the same time.

        Raises:
            LogError: Something could not be uploaded; the rest was.
        """
        self._close_due(everything=everything)
        if not self._closed:
            return
        identities = iter([*self._closed])
        results = await asyncio.gather(
            *(self._upload_some(identities) for _ in range(self._settings.uploads)),
            return_exceptions=True,
        )
        for result in results:
            if result is not None:
                raise result

    async def _upload_some(self, identities: Iterator[int]) -> None:
        loop = asyncio.get_running_loop()
        for identity in identities:
            closed = self._closed[identity]
            while closed:
                pending = closed[0]
                encoded = await loop.run_in_executor(
                    None, pending.encode, self._settings.compression
                )
                await self._tier_index.put(encoded)
                self.waiting_bytes -= pending.bytes
                del closed[0]
            del self._closed[identity]

    async def _keep_position(self) -> None:
        position = self.safe_position
        if position != self._kept:
            put = self._tier_index.metadata.put_state
            await self._tier_index.note(lambda: put(POSITION, str(position)))
            self._kept = position

    async def run(self) -> None:
        """Go on until cancelled; failures are waited out, longer each time."""
        wait_s = self._settings.poll_ms / 1000
        failures = 0
        while True:
            more = False
            self._pace.begin()
            try:
                more = await self.round()
                if not self.is_behind:
                    await self._pace.rest()
                await self._note_failure(None)
                failures = 0
            except LogDamagedError as error:
                # Waiting does not help, and no copy of it is to be made.
                await self._note_failure(str(error))
                return
            except LogError as error:
                await self._note_failure(str(error))
                failures += 1
            except Exception:  # noqa: BLE001 - nobody would begin it again
                _log.exception("tier not written to")
                await self._note_failure("a fault of Ropeway; the log says more")
                failures += 1
            if not more:
                longest = max(LONGEST_WAIT_S, wait_s)
                await asyncio.sleep(min(wait_s * 2 ** min(failures, 16), longest))

    async def _note_failure(self, failure: str | None) -> None:
        if (self.failure is None) != (failure is None):
            if failure is None:
                _log.info("tier is written to again")
            else:
                _log.warning("tier not written to", reason=failure)
        if failure != self.failure:
            self.failure = failure
            put = self._tier_index.metadata.put_state
            # Where the metadata are what fails, the log tells of it alone.
            with suppress(LogError):
                await self._tier_index.note(lambda: put(FAILURE, failure))


def part_of(run: Run, base: int, end: int) -> Run:
    """The records of a run from an offset to another."""
    first, after = base - run.base_offset, end - run.base_offset
    if (first, after) == (0, run.records):
        return run
    sizes = memoryview(run.entries).cast("I")[1 :: ENTRY.size // 4].tolist()
    begin, size = sum(sizes[:first]), sum(sizes[first:after])
    keys = [
        key
        for key in memoryview(run.keys).cast("Q")
        if (key - base) & 0xFFFFFFFF < end - base
    ]
    return run._replace(
        base_offset=base,
        records=end - base,
        data=run.data[begin : begin + size],
        entries=run.entries[first * ENTRY.size : after * ENTRY.size],
        keys=struct.pack(f"<{len(keys)}Q", *keys),
    )
