"""Trimming on Pulsar: the log reads nothing below a floor, and retention deletes it.

Pulsar deletes whole ledgers, and before their time only by truncating a topic. That
empties the cursor that deduplication keeps its sequence ids in: once the topic is
loaded again, what is appended is refused as not ours. So nothing is deleted here.

Law: a floor is never above the end. Whoever opens a partition takes its floor for a
lower bound of its end, so no record ever gets an offset below the floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import LogUnfitError
from ropeway.storage.trim_api import planned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ropeway.storage.pulsar.partition import PulsarPartition


class Floors:
    """Where partitions are read from; kept over a restart by whoever calls `keep`.

    Args:
        partition: Gives a partition.
        known: Those of a topic that were asked for so far.
    """

    def __init__(
        self,
        partition: Callable[[str, int], PulsarPartition],
        known: Callable[[str], Iterable[PulsarPartition]],
    ) -> None:
        self._partition = partition
        self._known = known
        self._floors: dict[str, Mapping[int, int]] = {}

    def of(self, topic: str, number: int) -> int:
        """The floor of a partition; 0 where it was never trimmed."""
        return self._floors.get(topic, {}).get(number, 0)

    def keep(self, topic: str, floors: Mapping[int, int]) -> None:
        """Know the floors of a topic; see `storage.trim_api.FloorsOutside`."""
        if floors:
            self._floors[topic] = floors
        else:
            self._floors.pop(topic, None)
        for one in self._known(topic):
            one.floor = max(one.floor, floors.get(one.number, 0))

    def forget(self, topic: str) -> None:
        """Know nothing of a topic that was deleted."""
        self._floors.pop(topic, None)

    async def trim(
        self, topic: str, floors: Mapping[int, int], *, dry_run: bool = False
    ) -> dict[int, int]:
        """Give up the oldest records; see `storage.trim_api`.

        Raises:
            LogUnfitError: The topic is compacted, or native clients write to it.
        """
        partitions = {number: self._partition(topic, number) for number in floors}
        for one in partitions.values():
            if one.compacted:
                raise LogUnfitError(
                    f"topic {topic} is compacted, and keeps the last message of each "
                    "key; a message without a body deletes its key"
                )
            if one.converter is not None:
                raise LogUnfitError(
                    f"topic {topic} is shared with native clients, which would go on "
                    "reading what is trimmed; set the retention of its namespace "
                    "(pulsar-admin namespaces set-retention)"
                )
        wanted = planned(partitions, floors)
        if not dry_run:
            for number, one in partitions.items():
                one.floor = max(one.floor, wanted[number])
        return wanted
