"""Trimming: partitions of the embedded log forget what is below an offset of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ropeway.storage.file.catalog import Catalog
    from ropeway.storage.file.partition import FilePartition


async def trim(
    partitions: Mapping[int, FilePartition],
    floors: Mapping[int, int],
    catalog: Catalog,
    flush: Callable[[], Awaitable[None]],
    make_durable: Callable[[str], Awaitable[None]],
) -> None:
    """Move the floors of partitions up to offsets; for errors see `storage.trim_api`.

    Args:
        partitions: By number.
        floors: The offsets, likewise.
        catalog: Keeps them over a restart.
        flush: Makes all appends so far durable.
        make_durable: Has the catalog on the disk, or raises an error that begins so.
    """
    wanted = {
        number: min(floors[number], one.end) for number, one in partitions.items()
    }
    # So that no end is before its floor after a power cut.
    await flush()
    if any(one.gone for one in partitions.values()):
        raise NoSuchPartitionError("the topic was deleted meanwhile")
    higher = {one: at for n, one in partitions.items() if (at := wanted[n]) > one.floor}
    catalog.trim({one.ordinal: at for one, at in higher.items()})
    await make_durable("cannot trim")
    for one, at in higher.items():
        one.floor = max(one.floor, at)
