"""A log whose old records are on a provider: the contract of the log below it, kept."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog

from ropeway.common.throttle import Throttle
from ropeway.storage.api import Log, LogDamagedError, LogError, NoSuchPartitionError
from ropeway.storage.pace import Pace, WhatIsLeft
from ropeway.storage.replication import Followed
from ropeway.storage.tiered import tier_retention
from ropeway.storage.tiered.dispatcher import POSITION, URL, Dispatcher
from ropeway.storage.tiered.fetcher import Fetcher
from ropeway.storage.tiered.loop_share import LoopShare
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.metadata_rebuild import rebuild
from ropeway.storage.tiered.partition import TieredPartition
from ropeway.storage.tiered.query import query
from ropeway.storage.tiered.reader import Reader
from ropeway.storage.tiered.retention_clock import RetentionClock
from ropeway.storage.tiered.segment_merge import mergeable, merged
from ropeway.storage.tiered.tier_config import TieredSettings
from ropeway.storage.tiered.tier_index import TierIndex
from ropeway.storage.trim_api import Trimmable, planned
from ropeway.storage.wrapper import WrappedLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ropeway.storage.api import Found
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.object_names import SegmentName
    from ropeway.storage.tiered.tier_partition import Segment, TierPartition
    from ropeway.storage.trim_api import TrimmedPartition

SEEN_MS = "seen_ms"
"""Of the metadata's words: what time it was last."""

_log = structlog.get_logger()


class Tierable(Log, Followed, Trimmable, Protocol):
    """A log that can have a tier."""

    def partition(self, topic: str, number: int) -> TrimmedPartition:
        """The partition of that name; see `storage.api`."""


def everything(_topic: str) -> bool:
    """Every topic goes into the tier."""
    return True


def as_the_settings_say(_topic: str) -> int | None:
    """No topic says how long it is kept."""
    return None


async def open_log(
    inner: Tierable,
    provider: Provider,
    directory: Path,
    settings: TieredSettings | None = None,
    *,
    wants: Callable[[str], bool] = everything,
    reserve_ms: Callable[[str], int | None] = as_the_settings_say,
    clock_s: Callable[[], float] = time.monotonic,
    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> TieredLog:
    """Put a tier below a log. Nothing is uploaded until `start` or `dispatch`.

    Args:
        inner: The log; the tiered log's to close.
        provider: Keeps the segments; the tiered log's to close, too.
        directory: Of the metadata, made where it is missing. Without them the
            provider is listed.
        settings: The defaults, where it is None.
        wants: Which topics go into the tier.
        reserve_ms: How long a topic's segments are kept; see `retiring.outlived`.
        clock_s: Seconds that only grow.
        wall_ms: The machine's clock, in milliseconds since 1970; it may leap.

    Raises:
        LogDamagedError: The tier has more of a partition than the log; or, without
            metadata, neither of the two has some of it.
        LogError: Metadata or provider cannot be used.
    """
    settings = settings or TieredSettings()
    metadata = Metadata(directory)
    try:
        metadata.put_state(URL, provider.label)
        if metadata.get_state(POSITION) is None:
            await rebuild(
                metadata,
                provider,
                partial(_kept_from, inner),
                skip=settings.on_damage == "skip",
            )
        seen_ms = metadata.get_state(SEEN_MS)
        last_ms = None if seen_ms is None else int(seen_ms)
        retention_clock = RetentionClock(wall_ms, clock_s, last_ms)
        throttle = Throttle(settings.upload_bytes_per_s, clock_s)
        tier_index = TierIndex(provider, metadata, throttle)
        for flat in tier_index.flats.values():
            _refuse_what_is_ahead(flat, inner, provider)
    except LogError:
        metadata.close()
        raise
    dispatcher = Dispatcher(
        inner, tier_index, settings, wants, clock_s, Pace(WhatIsLeft())
    )
    return TieredLog(
        inner, tier_index, dispatcher, settings, reserve_ms, retention_clock
    )


def _refuse_what_is_ahead(
    flat: TierPartition, inner: Tierable, provider: Provider
) -> None:
    if not _is_of(flat, inner):
        return
    end = inner.partition(flat.topic, flat.number).end
    if flat.end > end:
        raise LogDamagedError(
            f"{provider.label} has partition {flat.number} of topic {flat.topic} up to "
            f"offset {flat.end}, the log only up to {end}: the log is an older copy; "
            "restore the newer one, or open it without the tier and delete the topic"
        )


def _kept_from(inner: Tierable, name: SegmentName) -> int | None:
    """The first offset that the log has of the partition that a segment is of."""
    if not _is_of(name, inner):
        return None
    return inner.partition(name.topic, name.number).first


def _is_of(flat: TierPartition | SegmentName, inner: Tierable) -> bool:
    """Whether the log has that partition still, and did not make it again."""
    try:
        return inner.identity(flat.topic, flat.number) == flat.identity
    except NoSuchPartitionError:
        return False


class TieredLog(WrappedLog[Tierable]):
    """A log with a tier; see `storage.api` for what it promises."""

    def __init__(
        self,
        inner: Tierable,
        tier_index: TierIndex,
        dispatcher: Dispatcher,
        settings: TieredSettings,
        reserve_ms: Callable[[str], int | None],
        retention_clock: RetentionClock,
    ) -> None:
        super().__init__(inner)
        self.identity = inner.identity
        self.tier_index = tier_index
        self.dispatcher = dispatcher
        self._settings = settings
        self._reserve_ms = reserve_ms
        self._fetcher = Fetcher(tier_index.provider, settings, self._is_there)
        self._reader = Reader(self._fetcher, LoopShare(lambda: inner.written_to))
        self._merging = Pace(WhatIsLeft())
        self._retention_clock = retention_clock
        self._partitions: dict[str, dict[int, TieredPartition]] = {}
        self._working: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Upload, put together and delete in the background from now on."""
        self._working = asyncio.get_running_loop().create_task(self._work())

    async def dispatch(self) -> None:
        """Return when all that the log has on its disk now is in the tier.

        Raises:
            LogError: The log or the provider did not answer.
        """
        await self.inner.flush()
        await self.tier_index.settle()
        await self.dispatcher.all()

    async def delete(self, topic: str, generation: int = 0) -> None:
        """Forget a topic; its segments are deleted in the background."""
        identities = {
            self.inner.identity(topic, number)
            for number in self.inner.topics().get(topic, ())
        }
        await self.inner.delete(topic, generation)
        for partition in self._partitions.pop(topic, {}).values():
            partition.may_refuse = True
        await self.tier_index.doom(identities)

    def partition(self, topic: str, number: int) -> TieredPartition:
        """The partition of that name; see `storage.api`."""
        try:
            return self._partitions[topic][number]
        except KeyError:
            inner = self.inner.partition(topic, number)
        identity = self.inner.identity(topic, number)
        level = self._settings.level
        flats = {} if level == "DISABLE" else self.tier_index.flats
        found = TieredPartition(inner, lambda: flats.get(identity), self._reader, level)
        found.may_refuse = self._closing is not None
        self._partitions.setdefault(topic, {})[number] = found
        return found

    async def query(
        self, topic: str, key: str, begin_ms: int, end_ms: int, max_count: int
    ) -> list[Found]:
        """Records that were appended with a key, newest first; see `storage.api`.

        What the log has is the log's to find, the rest the tier's; so no record is
        found twice.
        """
        found = await self.inner.query(topic, key, begin_ms, end_ms, max_count)
        if len(found) >= max_count or self._settings.level == "DISABLE":
            return found
        parts = [
            (flat, range(inner.floor, inner.first))
            for flat in self.tier_index.of_topic(topic)
            if flat.segments and _is_of(flat, self.inner)
            for inner in (self.inner.partition(topic, flat.number),)
        ]
        return found + await query(
            parts,
            self._fetcher,
            self._reader,
            key,
            (begin_ms, end_ms),
            max_count - len(found),
        )

    async def _note_reserve_times(self) -> None:
        """Keep in the metadata what the topics say; `ropeway tier status` shows it."""

        def note() -> None:
            metadata = self.tier_index.metadata
            for row in metadata.iterate_topic():
                reserve_ms = self._reserve_ms(row.topic)
                if reserve_ms != row.reserve_ms:
                    metadata.update_topic_reserve_time(row.topic, reserve_ms)

        await self.tier_index.note(note)

    async def retire(self, now_ms: int) -> int:
        """Delete the segments that nothing keeps any more; how many.

        Raises:
            ProviderError: Objects could not be deleted; that is tried again.
        """
        old = tier_retention.outlived(
            self.tier_index.flats.values(),
            now_ms,
            self._settings.retention_ms,
            self._reserve_ms,
            self._floor,
        )
        for segment in old:
            await self.tier_index.expire(segment)
        return len(old)

    def _floor(self, flat: TierPartition) -> int:
        """Up to which offset a partition was trimmed."""
        if not _is_of(flat, self.inner):
            return 0
        return self.inner.partition(flat.topic, flat.number).floor

    async def trim(
        self, topic: str, floors: Mapping[int, int], *, dry_run: bool = False
    ) -> dict[int, int]:
        """Give up the oldest records; see `storage.trim_api`.

        Segments of the tier that have none but those are deleted in the background.
        """
        partitions = {number: self.partition(topic, number) for number in floors}
        if dry_run:
            return planned(partitions, floors)
        await self.inner.trim(topic, floors)
        return {number: one.first for number, one in partitions.items()}

    async def merge(self) -> int:
        """Put small neighbouring segments together; how many came to be.

        Raises:
            ProviderError: The provider did not answer.
        """
        made = 0
        self._merging.begin()
        for flat in [*self.tier_index.flats.values()]:
            try:
                while await self._merge_some(flat):
                    made += 1
                    await self._merging.rest()
            except LogDamagedError as error:
                # Its neighbours stay as they are; other partitions go on.
                _log.error("segments not put together", reason=str(error))
        await self.tier_index.settle()
        return made

    async def _merge_some(self, flat: TierPartition) -> bool:
        run = mergeable(flat, self._settings)
        if not run:
            return False
        encoded = await merged(run, self.tier_index.provider)
        covered = [one for one in run if one.end <= encoded.name.end]
        if len(covered) == 1:  # the next one is compressed otherwise
            return False
        await self.tier_index.replace(covered, encoded)
        return True

    async def _work(self) -> None:
        dispatching: asyncio.Task[None] | None = None
        try:
            while True:
                try:
                    # First: what was half put would be put again beside it.
                    await self.tier_index.settle()
                    if dispatching is None:
                        dispatching = asyncio.create_task(self.dispatcher.run())
                    if not await self.dispatcher.is_paused():
                        await self._note_reserve_times()
                        await self.retire(await self._time_ms())
                        await self.merge()
                except LogError as error:
                    _log.warning("tier not kept up", reason=str(error))
                except Exception:  # noqa: BLE001 - nobody would begin it again
                    _log.exception("tier not kept up")
                await asyncio.sleep(self._settings.expire_every_ms / 1000)
        finally:
            if dispatching is not None:
                dispatching.cancel()
                await asyncio.gather(dispatching, return_exceptions=True)

    async def _time_ms(self) -> int:
        """The time that retention goes by, which the next process goes on from."""
        now_ms = self._retention_clock.now_ms()
        put = self.tier_index.metadata.put_state
        await self.tier_index.note(lambda: put(SEEN_MS, str(now_ms)))
        return now_ms

    def _is_there(self, segment: Segment) -> bool:
        flat = self.tier_index.flats.get(segment.name.identity)
        return flat is not None and flat.has(segment)

    async def close(self) -> None:
        """Close the log and the tier; what was not uploaded is by the next one."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
            for partitions in self._partitions.values():
                for partition in partitions.values():
                    partition.may_refuse = True
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        await self.inner.close()
        await self._fetcher.close()
        await self.tier_index.close()
