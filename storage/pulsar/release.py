"""Giving partitions up in good order: what is on its way is stored, and ends are noted.

For a node that leads no more, and for a queue that another broker gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.pulsar.append_path import let_go
from ropeway.storage.pulsar.appender import Appender

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.storage.pulsar.end_offsets import EndOffsets
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.read_ahead import Readers


async def release(
    partitions: Iterable[PulsarPartition],
    readers: Readers,
    ends: EndOffsets,
    wait_ms: int,
) -> None:
    """Close partitions; appends are waited for, and then of unknown outcome.

    Args:
        partitions: Those that are not open are left as they are.
        readers: Those of a partition are closed with it.
        ends: Note where they end, while this node leads.
        wait_ms: How long an append may be waited for.
    """
    released = [
        (partition, partition.appender)
        for partition in partitions
        if partition.appender is not None
    ]
    for partition, _ in released:
        partition.appender = None
        readers.forget(partition)
    await let_go(
        [appender for _, appender in released],
        "this node has given it up",
        wait_ms / 1000,
    )
    for partition, appender in released:
        if isinstance(appender, Appender):
            ends.note(partition)
        partition.forget_ends()
