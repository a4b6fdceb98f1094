"""Store times: the offset at a time, and the time of an offset."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.storage.pulsar.pack_search import Finder
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.read_ahead import Readers


class Times:
    """Looks times up in packs; as ordered as the times that callers gave.

    Args:
        finder: Finds the pack to begin with.
        readers: Read from there.
    """

    def __init__(self, finder: Finder, readers: Readers) -> None:
        self._finder = finder
        self._readers = readers

    async def offset_at(self, partition: PulsarPartition, time_ms: int) -> int:
        """The first record stored at or after a time; the end where there is none."""
        end = partition.end_offset
        if partition.first_offset >= end:
            return end
        spot = await self._finder.by_time(partition, time_ms)
        offset = max(spot.offset, partition.first_offset)
        while offset < end:
            pack = await self._readers.pack_at(partition, offset)
            if pack is None:
                return end
            number = bisect_left(pack.times, time_ms)
            if number < pack.count:
                return max(pack.base_offset + number, partition.first_offset)
            offset = pack.end
        return end

    async def store_time(self, partition: PulsarPartition, offset: int) -> int | None:
        """When a record was stored; None where it has been deleted meanwhile."""
        pack = await self._readers.pack_at(partition, offset)
        if pack is None or pack.base_offset > offset:
            return None
        return int(pack.times[offset - pack.base_offset])
