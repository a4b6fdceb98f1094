"""The newest entries of a partition as they come, from its opening on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.errors import PulsarError
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.reader import Reader

PERMITS = 1000
"""Messages that may be on their way here; asked for by halves."""


class Newest:
    """A reader that stands at the end of a partition.

    Args:
        partition: Whose.
        take: Called with each entry, in order, once the partition is open. What it
            has let readers see, those who wait for it are told of at the tick's end.
        lost: Called when no more entries come.
    """

    __slots__ = (
        "_early",
        "_lost",
        "_partition",
        "_permits",
        "_reader",
        "_take",
        "_telling",
    )

    def __init__(
        self,
        partition: PulsarPartition,
        take: Callable[[Entry], None],
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._partition = partition
        self._take = take
        self._lost = lost
        self._reader: Reader
        self._permits = PERMITS
        self._early: list[Entry] | None = []
        """What came before the partition was open."""
        self._telling = False

    async def open(self, client: PulsarClient, after: Position | None) -> None:
        """Follow what comes behind an entry; None: from the first one on.

        Raises:
            PulsarError: Refused, or not possible in time.
        """
        self._reader = await client.reader(
            self._partition.full_name,
            after or "earliest",
            inclusive=after is None,
            received=self._received,
            lost=self._lost,
            permits=PERMITS,
        )

    def begin(self) -> None:
        """The partition is open: take what has come so far."""
        early, self._early = self._early or [], None
        for entry in early:
            self._take(entry)

    def _received(self, entry: Entry) -> None:
        self._permits -= 1
        if self._permits <= PERMITS // 2:
            self._reader.more(PERMITS - self._permits)
            self._permits = PERMITS
        if self._early is None:
            self._take(entry)
        else:
            self._early.append(entry)

    def tell(self) -> None:
        """Have those who wait for the partition to grow look again, once a tick."""
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._telling = False
        self._partition.grown()

    async def close(self) -> None:
        """Let no more entries come."""
        await self._reader.close()
