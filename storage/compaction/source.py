"""Reading the records of a partition with their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ropeway.storage.api import Partition

_READ_BYTES = 1 << 20


class Read(NamedTuple):
    """Some records of a partition, back to back, without a gap."""

    first: int
    """The first one's offset."""
    data: bytes | memoryview
    next_offset: int


async def read(partition: Partition, offset: int, end: int, max_count: int) -> Read:
    """Records from an offset on, none at or after `end`.

    Raises:
        LogError: The partition cannot be read.
    """
    count = min(max_count, end - offset)
    chunk = await partition.read(offset, count, _READ_BYTES)
    if chunk.next_offset - chunk.records != offset:
        # There is a gap somewhere: the offset of a record that is read alone is sure.
        chunk = await partition.read(offset, 1, _READ_BYTES)
        if chunk.next_offset > end:
            return Read(end, b"", chunk.next_offset)
    data = chunk.data[0] if len(chunk.data) == 1 else b"".join(chunk.data)
    return Read(chunk.next_offset - chunk.records, data, chunk.next_offset)
