"""Trimming: the contract. A topic's oldest records are given up before retention does.

What is below a partition's floor is never read again, whatever asks for it: by offset,
by time or by key, also after a restart. Offsets stay as they are, and the next append
gets the offset that it would have got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from ropeway.storage.api import Log, LogUnfitError, Partition

if TYPE_CHECKING:
    from collections.abc import Mapping


class Trimmable(Protocol):
    """What a log does that can trim, beside `storage.api.Log`."""

    async def trim(
        self, topic: str, floors: Mapping[int, int], *, dry_run: bool = False
    ) -> dict[int, int]:
        """Give up the records of partitions below an offset of each.

        Args:
            topic: The topic.
            floors: The offset by the partition's number. One below its `first`, or
                beyond its `end`, counts as that.
            dry_run: Only say what would be.

        Returns:
            Where each begins then.

        Raises:
            LogUnfitError: This log, or this topic, cannot be trimmed there; says why.
            LogUnavailableError: The storage refused; it can be asked again.
            NoSuchPartitionError: There is none.
        """


class FloorsOutside(Protocol):
    """What a log does beside `Trimmable` that does not keep floors over a restart."""

    def keep_floors(self, topic: str, floors: Mapping[int, int]) -> None:
        """Know the floors of a topic, by the partition's number.

        Whoever trims keeps them first, tells them before the first use of a partition,
        and again when they have changed. A floor that was known never goes down.
        """


class TrimmedPartition(Partition, Protocol):
    """A partition that knows what was trimmed."""

    floor: int
    """Nothing below it is read any more."""


def planned(
    partitions: Mapping[int, Partition], floors: Mapping[int, int]
) -> dict[int, int]:
    """Say where partitions would begin if they were trimmed; see `Trimmable.trim`."""
    return {
        number: max(one.first, min(floors[number], one.end))
        for number, one in partitions.items()
    }


def trimmable(log: Log) -> Trimmable:
    """A log that can trim.

    Raises:
        LogUnfitError: It cannot.
    """
    if not hasattr(log, "trim"):
        raise LogUnfitError("this log cannot be trimmed; retention deletes")
    return cast("Trimmable", log)


def floors_outside(log: Log) -> FloorsOutside | None:
    """A log whose floors are kept outside of it; None where it keeps them itself."""
    return cast("FloorsOutside", log) if hasattr(log, "keep_floors") else None
