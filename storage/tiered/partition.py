"""One partition that may be read from two places: the log, and the tier below it.

Appends, ends and watchers are the log's own, without a step in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import LogError
from ropeway.storage.tiered.fetcher import GoneError
from ropeway.storage.tiered.reader import TierRead
from ropeway.storage.wrapper import WrappedPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Chunk, Filter
    from ropeway.storage.tiered.reader import Reader
    from ropeway.storage.tiered.tier_config import ReadLevel
    from ropeway.storage.tiered.tier_partition import TierPartition
    from ropeway.storage.trim_api import TrimmedPartition

_log = structlog.get_logger()


class TieredPartition(WrappedPartition):
    """A partition of a tiered log."""

    inner: TrimmedPartition

    def __init__(
        self,
        inner: TrimmedPartition,
        flat: Callable[[], TierPartition | None],
        reader: Reader,
        level: ReadLevel,
    ) -> None:
        super().__init__(inner)
        self._flat = flat
        self._reader = reader
        self._level = level
        self.may_refuse = False
        """Whether the log below may have reasons by now not to be read at all."""

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still somewhere."""
        first = self.inner.first
        flat = self._flat()
        if flat is None or not flat.segments:
            return first
        return max(min(first, flat.first), self.inner.floor)

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk | None:
        """Read from memory alone; see `storage.api`."""
        flat, first = self._flat(), self.inner.first
        if flat is not None:
            offset = max(offset, min(flat.first, first), self.inner.floor)
        if flat is None or (
            offset >= first and (self._level != "FORCE" or offset >= flat.end)
        ):
            return self.inner.read_now(offset, max_count, max_bytes, filter)
        self._refuse_if_inner_does()
        end = self._tier_end(flat, offset, first)
        if end <= offset:
            return self.inner.read_now(offset, max_count, max_bytes, filter)
        limits = max_count, max_bytes
        return self._reader.read_now(TierRead(flat, offset, end, limits, filter))

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk:
        """Read records from an offset on; see `storage.api`."""
        inner = self.inner
        flat, first = self._flat(), inner.first
        if flat is None:
            return await inner.read(offset, max_count, max_bytes, filter)
        offset = max(offset, min(flat.first, first), inner.floor)
        local = offset >= first
        if local and self._level != "FORCE":
            if self._level == "NOT_IN_DISK" or offset >= flat.end:
                return await inner.read(offset, max_count, max_bytes, filter)
            found = inner.read_now(offset, max_count, max_bytes, filter)
            if found is not None:
                return found
        self._refuse_if_inner_does()
        end = self._tier_end(flat, offset, first)
        if end <= offset:
            return await inner.read(offset, max_count, max_bytes, filter)
        try:
            limits = max_count, max_bytes
            return await self._reader.read(TierRead(flat, offset, end, limits, filter))
        except LogError as error:
            if not local:
                raise
            _log.warning("tier not read, the log is", reason=str(error))
            return await inner.read(offset, max_count, max_bytes, filter)

    def _tier_end(self, flat: TierPartition, offset: int, first: int) -> int:
        """Up to where a read that begins at an offset is the tier's."""
        if offset < first:
            # What is missing there is nowhere, and is passed over.
            return first if flat.segments else offset
        if self._level in ("FORCE", "NOT_IN_MEM"):
            return flat.uncovered(offset, self.inner.end)[0]
        return offset

    async def offset_at(self, time_ms: int, *, upper: bool = False) -> int:
        """Find an offset by store time; see `storage.api`."""
        inner, flat, first = self.inner, self._flat(), self.inner.first
        if flat is None or not flat.segments or flat.first >= first:
            return await inner.offset_at(time_ms, upper=upper)
        self._refuse_if_inner_does()
        if upper:
            newer = await inner.offset_at(time_ms, upper=True)
            stored_ms = await inner.store_time(newer)
            if stored_ms is not None and stored_ms <= time_ms:
                return newer
        try:
            older = await self._reader.offset_at(flat, time_ms, first, upper=upper)
        except GoneError:
            return await self.offset_at(time_ms, upper=upper)
        if older is not None:
            return max(older, self.first)
        if upper:
            return self.first
        return await inner.offset_at(time_ms)

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored; see `storage.api`."""
        flat = self._flat()
        if flat is None or offset >= self.inner.first or offset < self.inner.floor:
            return await self.inner.store_time(offset)
        self._refuse_if_inner_does()
        try:
            return await self._reader.store_time(flat, offset)
        except GoneError:
            return await self.store_time(offset)

    def _refuse_if_inner_does(self) -> None:
        """Raise what the log raises once it is closed, or the topic is gone."""
        if self.may_refuse:
            self.inner.read_now(self.inner.end, 1, 1)
