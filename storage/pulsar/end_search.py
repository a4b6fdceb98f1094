"""Where a topic ends: its newest entry, and back from there past what cannot tell.

The first marker of a term does not know the end. It is followed by one that does,
unless its owner died between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import Found, Scan, scan
from ropeway.storage.pulsar.pack_search import Path

if TYPE_CHECKING:
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.partition import PulsarPartition

BEGINNING = Position(0, 0)
"""At or before all entries."""

WIDER = 4
"""Going back, each look takes in so many times as many entries as the one before."""


async def ends(
    client: PulsarClient, partition: PulsarPartition
) -> tuple[Found | None, Found | None]:
    """The oldest entry that tells its offset, and the newest of all; None: no such."""
    async with Scan(client, partition, "earliest") as entries:
        last = await entries.last_position()
        if last is None:
            return None, None
        oldest = await entries.next()
        while not oldest.tells and oldest.position < last:
            oldest = await entries.next()
    if oldest.position < last:
        newest = await scan(client, partition, last, last, bool)
    else:
        newest = oldest
    return oldest if oldest.tells else None, newest


class Search:
    """Looks for the end of a partition.

    Args:
        client: Reads entries.
        admin: Knows ledgers; asked only where owners have died.
        partition: Which one.
        floor: Where the end is, or behind.
    """

    def __init__(
        self,
        client: PulsarClient,
        admin: Admin,
        partition: PulsarPartition,
        floor: int,
    ) -> None:
        self.floor = floor
        """Where the end is, or behind, by all that was read."""
        self._client = client
        self._admin = admin
        self._partition = partition

    async def before(self, claim: Position, newest: Found | None) -> Found | None:
        """The last entry before a position that tells its offset; None: there is none.

        Args:
            claim: The position, of an entry.
            newest: The newest entry as of some time before that.
        """
        start = BEGINNING
        if newest is not None:
            start = Position(newest.position.ledger, newest.position.entry + 1)
        if start != claim:
            between = await self._scan(start, claim)
            if between is not None and between.position < claim:
                return await self._go_back(claim)
        return newest if newest is None or newest.tells else await self._go_back(claim)

    async def _scan(self, start: Position, until: Position) -> Found | None:
        """The first entry there."""
        return await scan(self._client, self._partition, start, until, bool)

    async def _go_back(self, before: Position) -> Found | None:
        """Look at entries before a position, until one tells its offset."""
        if before.entry:
            last = Position(before.ledger, before.entry - 1)
            found = await self._scan(last, last)
            if found is not None and found.tells:
                return found
        partition = self._partition
        path = Path(await self._admin.ledgers(partition.name, partition.number))
        stop, step = path.number(*before), WIDER
        while stop > 0:
            begin = max(stop - step, 0)
            told: list[Found] = []
            await scan(
                self._client,
                partition,
                path.position(begin),
                path.position(stop - 1),
                lambda found, told=told: self._note(found, told),  # type: ignore[misc]
            )
            if told:
                return told[-1]
            stop, step = begin, step * WIDER
        return None

    def _note(self, found: Found, told: list[Found]) -> None:
        if found.tells:
            told.append(found)
        else:
            # It did not know the end; but the end was there or behind.
            self.floor = max(self.floor, found.pack.base_offset)
