"""Partitions that begin at other offsets than 0: told before anybody opens them.

First the broker's state notes it, which nobody but `create` changes and retention does
not touch; then the topic is made; then each partition is opened, and its second marker
says the offset. So a kill in between leaves a topic that is not there, or begins there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ropeway.storage.api import LogUnfitError
from ropeway.storage.beginnings import refuse_impossible, refuse_other
from ropeway.storage.pulsar.terms import LAST_OFFSET

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ropeway.storage.api import EntryFormat
    from ropeway.storage.pulsar.catalog import Catalog
    from ropeway.storage.pulsar.end_offsets import EndOffsets
    from ropeway.storage.pulsar.ownership import Ownership
    from ropeway.storage.pulsar.partition import PulsarPartition


class Partitions(Protocol):
    """What has the partitions; see `log.PulsarLog`."""

    def partition(self, topic: str, number: int) -> PulsarPartition:
        """The partition of that name."""


class Beginnings:
    """Makes partitions that begin where they are told.

    Args:
        catalog: Makes them.
        ends: Know where they begin.
        ownership: Opens them.
        log: Gives them.
    """

    def __init__(
        self,
        catalog: Catalog,
        ends: EndOffsets,
        ownership: Ownership,
        log: Partitions,
    ) -> None:
        self._catalog = catalog
        self._ends = ends
        self._ownership = ownership
        self._partition = log.partition

    async def create(
        self,
        topic: str,
        partitions: Collection[int],
        begins: Mapping[int, int],
        entry_format: EntryFormat,
    ) -> None:
        """Make partitions, and all before them; see `storage.api.Log.create`.

        Those before them come to be by the way, so one that begins at 0 and has no
        record can still be told where to begin.
        """
        refuse_impossible(topic, partitions, begins, LAST_OFFSET)
        if entry_format != "packed" and any(begins.values()):
            raise LogUnfitError(
                f"topic {topic} of entry format {entry_format} cannot begin at offset "
                f"{max(begins.values())}; allowed: 0, where Pulsar begins to count"
            )
        count = self._catalog.topics.get(topic, 0)
        there = [self._partition(topic, one) for one in sorted(begins) if one < count]
        await self._ownership.open(there)
        told = {n: at for n, at in begins.items() if at and n >= count}
        for one in there:
            begin, wanted = self._begin_of(one), begins[one.number]
            if begin or one.end_offset or not wanted:
                refuse_other(topic, one.number, begin, wanted)
            else:
                told[one.number] = wanted
        if told:
            await self._ends.put_begins(self._catalog.name(topic), told)
        await self._catalog.create(topic, partitions)
        made = [self._partition(topic, number) for number in told]
        for one in made:
            await self._ownership.shut(one, f"it is to begin at {told[one.number]}")
        await self._ownership.open(made)

    def _begin_of(self, partition: PulsarPartition) -> int:
        begin = self._ends.begin(partition)
        return partition.first_offset if begin is None else begin
