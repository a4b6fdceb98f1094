"""Finding records by key: packs of the time range, newest first, by their key tables.

Pulsar has no index of keys, so the work is what the range holds; it is bounded, and
what lies further back than the bound is not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import Found
from ropeway.storage.pulsar.pack import hash_key

if TYPE_CHECKING:
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.read_ahead import Readers
    from ropeway.storage.pulsar.times import Times

WINDOW = 4096
"""Records that are read forward at a time, going back from the newest."""

MAX_LOOKED_BYTES = 64 * 1024 * 1024
"""A query reads no more of each partition: about a second's work."""


async def query(
    partitions: list[PulsarPartition],
    readers: Readers,
    times: Times,
    key: str,
    begin_ms: int,
    end_ms: int,
    max_count: int,
) -> list[Found]:
    """Records with a key that were stored in a range of time, newest first."""
    hits: list[tuple[int, Found]] = []
    key_hash = hash_key(key)
    for partition in partitions:
        low = max(await times.offset_at(partition, begin_ms), partition.first)
        high = await times.offset_at(partition, end_ms + 1)
        hits += await _search(partition, readers, key_hash, low, high, max_count)
    hits.sort(key=lambda hit: -hit[0])
    return [found for _, found in hits[:max_count]]


async def _search(
    partition: PulsarPartition,
    readers: Readers,
    key_hash: int,
    low: int,
    high: int,
    max_count: int,
) -> list[tuple[int, Found]]:
    """One partition's hits, each with its store time."""
    hits: list[tuple[int, Found]] = []
    looked = 0
    while high > low and len(hits) < max_count and looked < MAX_LOOKED_BYTES:
        offset = begin = max(high - WINDOW, low)
        window: list[tuple[int, Found]] = []
        while offset < high:
            pack = await readers.pack_at(partition, offset)
            if pack is None:
                break
            looked += pack.length
            times = pack.times
            for number in pack.having(key_hash):
                at = pack.base_offset + number
                if begin <= at < high:
                    found = Found(at, bytes(pack.record(number)))
                    window.append((times[number], found))
            offset = pack.end
        hits += reversed(window)
        high = begin
    return hits
