"""Reading records here and there in a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire import record_rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import Partition

_GAP = 32
"""Reading over so many records costs less than beginning another read."""
_BYTES = 1024 * 1024


async def read_scattered(
    partition: Partition, offsets: Sequence[int]
) -> dict[int, bytes]:
    """Read the records at some offsets; those that are gone are left out.

    Returns:
        The records by their offsets.

    Raises:
        LogError: As in `Partition.read`.
    """
    found: dict[int, bytes] = {}
    wanted = sorted(offsets)
    at = 0
    while at < len(wanted):
        first = wanted[at]
        last = at
        while last + 1 < len(wanted) and wanted[last + 1] - wanted[last] <= _GAP:
            last += 1
        count = wanted[last] - first + 1
        chunk = partition.read_now(first, count, _BYTES)
        if chunk is None:
            chunk = await partition.read(first, count, _BYTES)
        ours = set(wanted[at : last + 1])
        for piece in chunk.data:
            found.update(
                (offset, record)
                for offset, _, record in record_rewrite.records_in(piece)
                if offset in ours
            )
        while at <= last and wanted[at] < max(chunk.next_offset, first + 1):
            at += 1
    return found
