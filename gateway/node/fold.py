"""The loop of every fold: a partition's records, read in order up to its end.

Popping, timers, lite topics, batches and transactions make what they know of the log by
it, in a derived store or in memory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.wire import message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ropeway.storage.api import Chunk, Partition

LOST_MS = 60_000
"""Where a log has lost its end, all counts as not done that was due so long before the
last record that is left: what was done since then may be lost with it."""
READ_COUNT = 1024
READ_BYTES = 1024 * 1024
"""Of one read: what is made of it is one step, between which others have turns."""


async def next_chunk(
    partition: Partition, offset: int, count: int = READ_COUNT
) -> Chunk:
    """Read the records that come next, from memory where they are there.

    Args:
        partition: Where they are.
        offset: The first that is wanted.
        count: No more than so many, nor than one read takes.

    Raises:
        LogError: They cannot be read now.
    """
    most = min(count, READ_COUNT)
    chunk = partition.read_now(offset, most, READ_BYTES)
    if chunk is None:
        chunk = await partition.read(offset, most, READ_BYTES)
    return chunk


def first_above(partition: Partition, floor: int | None) -> int:
    """Where a fold into memory begins, which needs nothing below a floor.

    A floor that is ahead of the log has followed a longer one, from before the log was
    restored from a backup: then all that is there counts.
    """
    if floor is None or floor > partition.end:
        return partition.first
    return max(floor, partition.first)


async def last_ms(partition: Partition) -> int:
    """When the last record was stored that is there; 0 where there is none.

    Raises:
        LogError: It cannot be read now.
    """
    if partition.first == partition.end:
        return 0
    return await partition.store_time(partition.end - 1) or 0


async def chunks_from(
    partition: Partition, offset: int, end: int | None = None
) -> AsyncIterator[Chunk]:
    """Read from an offset on.

    Args:
        partition: What is read.
        offset: Where to begin.
        end: Where to end; the partition's own end, also as it grows, where it is None.

    Yields:
        Records that follow each other; none where all of them are lost to damage.

    Raises:
        LogError: They cannot be read now.
    """
    while (left := (partition.end if end is None else end) - offset) > 0:
        chunk = await next_chunk(partition, offset, left)
        yield chunk
        offset = chunk.next_offset
        if chunk.records < left:
            await asyncio.sleep(0)


def records_in(chunk: Chunk) -> Iterator[memoryview]:
    """Each record of what was read, as it was stored."""
    for piece in chunk.data:
        yield from message.split(piece)
