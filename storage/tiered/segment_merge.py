"""Putting small neighbouring segments together, so that their number stays small.

Blocks are taken as they are, so nothing is compressed or cut anew. Only segments of
about one size are put together: a byte is copied once for each factor of 16 that its
segment grows, however slowly the partition fills. What was uploaded because it was much
is large enough, and never copied again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ropeway.storage.api import LogDamagedError
from ropeway.storage.tiered import segment as segments
from ropeway.storage.tiered.columns import in_runs
from ropeway.storage.tiered.compiled import crc32
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.pending_segment import Encoded
from ropeway.storage.tiered.segment import HEAD, KEYS_A_RUN, About, Block, SegmentError
from ropeway.storage.tiered.tier_config import MAX_RECORDS

if TYPE_CHECKING:
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.object_names import Part
    from ropeway.storage.tiered.segment import Index
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
            index = await in_thread(segments.decode_index, raw)
            part = "data"
            stored = await provider.get(one.name.object("data"))
            await in_thread(_check_blocks, stored, index)
            if index.about.keys:
                part = "keys"
                its_keys = await provider.get(one.name.object("keys"))
                decoded = await in_thread(segments.decode_keys, its_keys, index.about)
                # Counted from the first record of all; sorted again below.
                keys += in_runs(decoded, -first & 0xFFFFFFFF, KEYS_A_RUN)
        except SegmentError as error:
            raise LogDamagedError(
                f"{provider.label}, object {one.name.object(part)}: {error}; "
                "restore the object, or delete it to go on without its messages"
            ) from error
        if indexes and index.about.compression != indexes[0].about.compression:
            break  # set otherwise meanwhile; those before it become one
        data.append(memoryview(stored)[HEAD.size :])
        indexes.append(index)
        first += index.about.records
    return await in_thread(_joined, indexes, data, bytes(keys))


def _check_blocks(stored: bytes, index: Index) -> None:
    segments.check_data_header(stored, index.about)
    for block, place in zip(index.blocks, index.places, strict=False):
        _check(stored, place, block)


def _check(stored: bytes, place: int, block: Block) -> None:
    piece = memoryview(stored)[place : place + block.stored_bytes]
    if crc32(piece) != block.crc32:
        raise SegmentError(f"the block at {place} has another checksum than its index")


def _joined(
    indexes: list[Index], data: list[bytes | memoryview], all_keys: bytes
) -> Encoded:
    keys = in_runs(all_keys, 0, KEYS_A_RUN)
    abouts = [index.about for index in indexes]
    begin = abouts[0]
    about = About(
        begin.topic,
        begin.number,
        begin.identity,
        begin.base_offset,
        sum(one.records for one in abouts),
        min(one.least_ms for one in abouts),
        max(one.most_ms for one in abouts),
        max(one.written_ms for one in abouts),
        HEAD.size + sum(map(len, data)),
        len(keys) // segments.KEY_BYTES,
        begin.compression,
    )
    key_object = None
    if keys:
        key_object = segments.encode_keys(about.base_offset, about.identity, keys)
    name = SegmentName(
        about.topic, about.number, about.identity, about.base_offset, about.end
    )
    header = segments.data_header(
        about.base_offset, about.identity, about.records, about.compression
    )
    index = segments.encode_index(
        about,
        [block for one in indexes for block in one.blocks],
        b"".join(bytes(one.times) for one in indexes),
        b"".join(bytes(one.sizes) for one in indexes),
        b"".join(bytes(one.tags) for one in indexes),
    )
    return Encoded(name, about, [header, *data], key_object, index)
