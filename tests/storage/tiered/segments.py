"""Segments for tests: records that waited, made into objects and put."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

from ropeway.storage.replication import ENTRY, Run
from ropeway.storage.tiered.listing import index_of
from ropeway.storage.tiered.pending_segment import Pending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ropeway.storage.sealed.compression import Compression
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.object_names import SegmentName
    from ropeway.storage.tiered.pending_segment import Encoded

TOPIC, NUMBER, IDENTITY = "orders", 3, 0xABCDEF


def run(texts: Sequence[str], base_offset: int = 0, store_ms: int = 1000) -> Run:
    """Records as a log gives them: tags by length, a key each, a millisecond apart."""
    data, entries, keys = b"", b"", []
    for at, text in enumerate(texts):
        body = text.encode()
        record = struct.pack(">i", 4 + len(body)) + body
        entries += ENTRY.pack(len(data), len(record), -len(text), store_ms + at)
        key_hash = crc32(text.encode(), crc32(TOPIC.encode()))
        keys.append(key_hash << 32 | base_offset + at)
        data += record
    return Run(
        TOPIC,
        NUMBER,
        IDENTITY,
        base_offset,
        len(texts),
        data,
        entries,
        struct.pack(f"<{len(keys)}Q", *keys),
    )


def encoded(
    texts: Sequence[str],
    base_offset: int = 0,
    compression: Compression = "none",
    store_ms: int = 1000,
) -> Encoded:
    """The objects of a segment with these records."""
    made = run(texts, base_offset, store_ms=store_ms)
    pending = Pending(made, 0, 0.0)
    pending.add(made, 77)
    return pending.encode(compression)


async def put(provider: Provider, made: Encoded) -> SegmentName:
    """Put a segment without a gateway."""
    await provider.put(made.name.object("data"), made.data)
    if made.keys is not None:
        await provider.put(made.name.object("keys"), [made.keys])
    await provider.put(made.name.object("index"), [made.index_object])
    return made.name


async def records(
    provider: Provider, name: SegmentName, base: int = 0, end: int | None = None
) -> AsyncIterator[tuple[int, int, memoryview]]:
    """Records of a segment: offset, store time, the stored message as bytes.

    Args:
        provider: Has it.
        name: As `listed` has it.
        base: The first offset that is wanted.
        end: The first one that is not; None for all.

    Raises:
        ObjectMissingError: The segment is gone; list anew.
        SegmentError: It is not what was written.
    """
    index = await index_of(provider, name)
    last = name.end if end is None else min(end, name.end)
    for number in range(index.block_at(base), index.blocks):
        if index.firsts[number] >= last:
            break
        stored = await provider.get(
            name.object("data"), *index.data_at(number, number + 1)
        )
        data, places, columns = index.open_block(number, stored)
        for at in range(columns.at(base), columns.at(last)):
            record = data[places[at] : places[at + 1]]
            yield columns.offset(at), columns.times[at], record
