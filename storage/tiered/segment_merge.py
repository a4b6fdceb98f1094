"""Putting small neighbouring segments together, so that their number stays small.

Blocks are taken as they are, so nothing is compressed or cut anew. Only segments of
about one size are put together: a byte is copied once for each factor of 16 that its
segment grows, however slowly the partition fills. What was uploaded because it was much
is large enough, and never copied again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from ropeway.storage.sealed.columns import in_runs
from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import (
    KEY_BYTES,
    KEYS_A_RUN,
    SegmentError,
    decode_keys,
)
from ropeway.storage.sealed.writer import join
from ropeway.storage.tiered.fetcher import damaged
from ropeway.storage.tiered.pending_segment import Encoded, key_object
from ropeway.storage.tiered.tier_config import MAX_RECORDS

if TYPE_CHECKING:
    from ropeway.storage.sealed.index import Index
    from ropeway.storage.sealed.verify import Part
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.tier_config import TieredSettings
    from ropeway.storage.tiered.tier_partition import Segment, TierPartition

_BITS_A_LEVEL = 4


def mergeable(flat: TierPartition, settings: TieredSettings) -> list[Segment]:
    """Neighbours of a partition that are to become one; none, or at least two."""
    run: list[Segment] = []
    size = records = 0
    for segment in flat.segments:
        count = segment.end - segment.base
        is_small = segment.bytes < settings.commit_bytes // 2
        fits = (
            bool(run)
            and is_small
            and run[-1].end == segment.base
            and _level(run[-1]) == _level(segment)
            and size + segment.bytes <= settings.segment_bytes
            and records + count <= MAX_RECORDS
        )
        if not fits:
            if len(run) > 1 and _is_enough(run, size, settings):
                return run
            run, size, records = [], 0, 0
        if not is_small:
            continue
        run.append(segment)
        size, records = size + segment.bytes, records + count
    return run if len(run) > 1 and _is_enough(run, size, settings) else []


def _level(segment: Segment) -> int:
    return segment.bytes.bit_length() // _BITS_A_LEVEL


def _is_enough(run: list[Segment], size: int, settings: TieredSettings) -> bool:
    return len(run) >= settings.merge_count or size > settings.segment_bytes // 2


async def merged(run: list[Segment], provider: Provider) -> Encoded:
    """The objects of one segment that has all records of several.

    Raises:
        ProviderError: The provider did not answer.
        LogDamagedError: One of the segments is not what was put.
    """
    indexes: list[Index] = []
    data: list[bytes | memoryview] = []
    keys = bytearray()
    first = 0
    # Whatever looks at all bytes is for a thread: the loop has clients to serve.
    in_thread = partial(asyncio.get_running_loop().run_in_executor, None)
    for one in run:
        part: Part = "index"
        try:
            raw = await provider.get(one.name.object("index"))
            index = await in_thread(decode_index, raw)
            part = "data"
            stored = await provider.get(one.name.object("data"))
            await in_thread(_check_blocks, stored, index)
            if index.about.keys:
                part = "keys"
                its_keys = await provider.get(one.name.object("keys"))
                decoded = await in_thread(decode_keys, its_keys, index.about)
                # Counted from the first record of all; sorted again below.
                keys += in_runs(decoded, -first & 0xFFFFFFFF, KEYS_A_RUN)
        except SegmentError as error:
            raise damaged(provider, one.name.object(part), error) from error
        if indexes and index.about.flags != indexes[0].about.flags:
            break  # set otherwise meanwhile; those before it become one
        data.append(memoryview(stored)[index.about.data_at :])
        indexes.append(index)
        first += index.about.records
    return await in_thread(_joined, indexes, data, bytes(keys))


def _check_blocks(stored: bytes, index: Index) -> None:
    for block, (place, end) in enumerate(pairwise(index.places)):
        index.check_block(block, memoryview(stored)[place:end])


def _joined(
    indexes: list[Index], data: list[bytes | memoryview], all_keys: bytes
) -> Encoded:
    keys = in_runs(all_keys, 0, KEYS_A_RUN)
    about, index = join(indexes, len(keys) // KEY_BYTES)
    return Encoded(about, data, key_object(about, keys), index)
