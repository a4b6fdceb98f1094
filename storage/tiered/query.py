"""Finding records by key in the tier, newest first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from zlib import crc32

from ropeway.storage.api import Found
from ropeway.storage.sealed.layout import records_with
from ropeway.storage.tiered.fetcher import GoneError, MissingError
from ropeway.storage.tiered.reader import TierRead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.tiered.fetcher import Fetcher
    from ropeway.storage.tiered.reader import Reader
    from ropeway.storage.tiered.tier_partition import Segment, TierPartition

_RUNS_AT_ONCE = 256
"""Runs of keys that are searched without a pause where none has the key: a millisecond.
One whose keys are all the same takes as long."""


async def query(
    parts: Sequence[tuple[TierPartition, range]],
    fetcher: Fetcher,
    reader: Reader,
    key: str,
    times_ms: tuple[int, int],
    max_count: int,
) -> list[Found]:
    """Records that were appended with a key.

    Args:
        parts: Partitions of one topic, each with the offsets to look at.
        fetcher: Gets indexes and keys.
        reader: Gets the records.
        key: Looked for by its hash, so the caller checks each record's own keys.
        times_ms: The least and the most store time.
        max_count: Records at most.

    Raises:
        LogError: The provider did not answer, or has something else.
    """
    begin_ms, end_ms = times_ms
    candidates = [
        (segment, flat, offsets)
        for flat, offsets in parts
        for segment in flat.segments
        if segment.keys
        and segment.base < offsets.stop
        and segment.end > offsets.start
        and segment.least_ms <= end_ms
        and segment.most_ms >= begin_ms
    ]
    candidates.sort(key=lambda one: (one[0].most_ms, one[0].base), reverse=True)
    hits: list[tuple[int, int, int, TierPartition]] = []
    for number, (segment, flat, offsets) in enumerate(candidates):
        newest = await _newest(fetcher, segment, offsets, key, times_ms, max_count)
        hits += [(store_ms, offset, flat.number, flat) for store_ms, offset in newest]
        hits.sort(key=lambda hit: hit[:3], reverse=True)
        del hits[max_count:]
        # What is left is older than the oldest of those that were found so far.
        rest = candidates[number + 1 : number + 2]
        if len(hits) == max_count and rest and rest[0][0].most_ms < hits[-1][0]:
            break
    found = []
    for _, offset, _, flat in hits:
        chunk = await reader.read(TierRead(flat, offset, offset + 1, (1, 0)))
        if chunk.records:
            found.append(Found(offset, bytes(chunk.data[0])))
    return found


async def _newest(
    fetcher: Fetcher,
    segment: Segment,
    offsets: range,
    key: str,
    times_ms: tuple[int, int],
    max_count: int,
) -> list[tuple[int, int]]:
    """Times and offsets of a segment's newest records with a key, newest first.

    Others go on in between: very many may have the key.
    """
    key_hash = crc32(key.encode(), crc32(segment.name.topic.encode()))
    while True:
        try:
            index, keys = fetcher.index(segment), fetcher.keys(segment)
        except MissingError as error:
            missing = error.with_traceback(None)
        else:
            break
        try:
            await fetcher.fetch(missing)
        except GoneError:
            return []
    begin_ms, end_ms = times_ms
    found: list[tuple[int, int]] = []
    last = -1
    for number, records in enumerate(records_with(keys, key_hash), 1):
        for record in records:
            store_ms, offset = index.time_of(record), segment.base + record
            if record != last and offset in offsets and begin_ms <= store_ms <= end_ms:
                found.append((store_ms, offset))
                if len(found) == max_count:
                    return found
            last = record
        if records or number % _RUNS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return found
