"""Finding packs in Pulsar: one by its position, or the one before an offset or a time.

A search begins with what `positions` knows, and halves what is between by reading one
pack at a time. Each pack tells its own offset, so nothing here is taken on trust. Where
there is a marker, the next pack is read instead.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import probe
from ropeway.storage.pulsar.positions import Spot

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.pack import Pack
    from ropeway.storage.pulsar.partition import PulsarPartition

NEAR = 4
"""So many packs are read through rather than halved."""


class Finder:
    """Finds where a reader has to begin.

    Args:
        client: Reads packs.
        admin: Knows ledgers, and on newer brokers positions by index.
    """

    def __init__(self, client: PulsarClient, admin: Admin) -> None:
        self._client = client
        self._admin = admin

    async def by_offset(self, partition: PulsarPartition, offset: int) -> Spot:
        """The pack that has an offset, or one shortly before it."""

        def side(pack: Pack) -> int:
            return (pack.base_offset > offset) - (pack.end <= offset)

        positions = partition.positions
        return await self._narrow(
            partition, positions.floor(offset), positions.above(offset), side, offset
        )

    async def by_time(self, partition: PulsarPartition, time_ms: int) -> Spot:
        """The pack that reaches a time, or one shortly before it."""

        def side(pack: Pack) -> int:
            return (pack.times[0] >= time_ms) - (pack.times[-1] < time_ms)

        positions = partition.positions
        return await self._narrow(
            partition, positions.before(time_ms), positions.since(time_ms), side, None
        )

    async def _narrow(
        self,
        partition: PulsarPartition,
        low: Spot | None,
        high: Spot | None,
        side: Callable[[Pack], int],
        index: int | None,
    ) -> Spot:
        """Halve what is between two packs.

        Args:
            partition: Whose.
            low: A pack before what is wanted; None for the oldest.
            high: A pack behind it; None for the end.
            side: -1 for a pack before what is wanted, 1 behind it, 0 where it is.
            index: The offset, where a broker that knows may be asked.
        """
        path = await self._path(partition, low, high)
        if not path.total:
            return Spot(partition.first_offset, 0, -1, -1)
        if low is None:
            # What is compacted may be of ledgers that are gone.
            start = Position(0, 0) if partition.compacted else path.position(0)
            low = Spot(partition.first_offset, 0, *start)
        begin = path.number(low.ledger, low.entry)
        stop = path.number(high.ledger, high.entry) if high else path.total
        hint = None
        if index is not None and stop - begin > NEAR:
            hint = await self._admin.position(partition.name, partition.number, index)
        step = path.total
        while stop - begin > NEAR:
            middle = begin + min(step, (stop - begin) // 2)
            step *= 2
            if hint is not None:
                middle = min(max(path.number(*hint), begin + 1), stop - 1)
                # The broker counts markers, too: it is there or shortly behind.
                hint, step = None, NEAR
            found = await probe(
                self._client,
                partition,
                path.position(middle),
                path.position(stop - 1),
            )
            if found is None:
                # Markers alone: what is wanted is before them, or behind `stop`.
                stop = middle
                continue
            partition.positions.add(*found.spot)
            where = side(found.pack)
            if where == 0:
                return found.spot
            if where < 0:
                low, begin = found.spot, middle
            else:
                stop = middle
        return low

    async def _path(
        self, partition: PulsarPartition, low: Spot | None, high: Spot | None
    ) -> Path:
        if low and high and low.ledger == high.ledger:
            return Path([(low.ledger, high.entry)])
        return Path(await self._admin.ledgers(partition.name, partition.number))


class Path:
    """A partition's entries in a row, numbered over all its ledgers.

    Args:
        ledgers: From the oldest, each with how many entries it has.
    """

    def __init__(self, ledgers: list[tuple[int, int]]) -> None:
        self._ledgers = [one[0] for one in ledgers]
        self._starts = list(accumulate((one[1] for one in ledgers), initial=0))
        self.total = self._starts.pop()
        """How many entries there are."""

    def position(self, number: int) -> Position:
        """Where an entry is; there must be one."""
        at = bisect_right(self._starts, number) - 1
        return Position(self._ledgers[at], number - self._starts[at])

    def number(self, ledger: int, entry: int) -> int:
        """Which entry is at a position; the first one where that ledger is gone."""
        at = bisect_right(self._ledgers, ledger) - 1
        if at < 0:
            return 0
        behind = self._starts[at] + entry if self._ledgers[at] == ledger else self.total
        return min(behind, max(self.total - 1, 0))
