"""Finding packs in Pulsar: one by its position, or the one before an offset or a time.

A search begins with what `positions` knows, and halves what is between by reading one
pack at a time. Each pack tells its own offset, so nothing here is taken on trust.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from storage.api import (
    LogDamagedError,
    LogError,
    LogUnavailableError,
    NoSuchPartitionError,
)
from storage.pulsar.entry import Position
from storage.pulsar.errors import EntryError, PulsarError, TopicNotFoundError
from storage.pulsar.native import to_pack
from storage.pulsar.pack import UnknownPackError, decode, peel
from storage.pulsar.positions import Spot

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.native import Converter
    from storage.pulsar.admin import Admin
    from storage.pulsar.client import PulsarClient
    from storage.pulsar.entry import Entry
    from storage.pulsar.pack import Pack
    from storage.pulsar.partition import PulsarPartition

PROBE_S = 10.0
"""How long one pack may take to come."""

NEAR = 4
"""So many packs are read through rather than halved."""


class Found(NamedTuple):
    """A pack, and where it is."""

    pack: Pack
    position: Position

    @property
    def spot(self) -> Spot:
        """What there is to know for later."""
        pack = self.pack
        return Spot(pack.base_offset, pack.times[0], *self.position)


def unavailable(partition: PulsarPartition, error: PulsarError) -> LogError:
    """What a refusal of Pulsar means to who uses a partition."""
    text = f"{partition.full_name}: {error}"
    if isinstance(error, TopicNotFoundError):
        return NoSuchPartitionError(text)
    return LogUnavailableError(text)


def unpack(partition: PulsarPartition, entry: Entry) -> Pack:
    """The pack of a stored entry.

    Raises:
        LogDamagedError: It is none; names topic, position, and what came.
    """
    if partition.converter is not None:
        return _unpack_native(partition, partition.converter, entry)
    try:
        pack = decode(entry.payload)
    except (UnknownPackError, EntryError) as error:
        raise _damaged(partition, entry.position, str(error)) from error
    if entry.sequence_id != pack.end - 1:
        raise _damaged(
            partition,
            entry.position,
            f"a pack that ends with offset {pack.end - 1} and has the sequence id "
            f"{entry.sequence_id}; allowed: the same",
        )
    return pack


def _unpack_native(
    partition: PulsarPartition, converter: Converter, entry: Entry
) -> Pack:
    topic, number = partition.topic, partition.number
    try:
        return peel(to_pack(converter, topic, number, entry))
    except EntryError as error:
        raise LogDamagedError(f"{partition.full_name}: {error}") from error


def _damaged(
    partition: PulsarPartition, position: Position, text: str
) -> LogDamagedError:
    ledger, entry = position
    return LogDamagedError(f"{partition.full_name}: entry {ledger}:{entry} is {text}")


async def probe(
    client: PulsarClient, partition: PulsarPartition, position: Position
) -> Found:
    """The pack at a position, or the next one behind it that is still there.

    Raises:
        LogDamagedError: There is something else.
        LogUnavailableError: Nothing came.
    """
    loop = asyncio.get_running_loop()
    came: asyncio.Future[Entry] = loop.create_future()

    def received(entry: Entry) -> None:
        if not came.done():
            came.set_result(entry)

    def lost(error: PulsarError) -> None:
        if not came.done():
            came.set_exception(error)

    try:
        reader = await client.reader(
            partition.full_name, position, received=received, lost=lost, permits=1
        )
        try:
            entry = await asyncio.wait_for(came, PROBE_S)
        finally:
            await reader.close()
    except TimeoutError:
        raise LogUnavailableError(
            f"{partition.full_name}: Pulsar did not send entry "
            f"{position.ledger}:{position.entry} in {PROBE_S:.0f} s"
        ) from None
    except PulsarError as error:
        raise unavailable(partition, error) from error
    return Found(unpack(partition, entry), entry.position)


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
            low = Spot(partition.first_offset, 0, *path.position(0))
        begin = path.number(low.ledger, low.entry)
        stop = path.number(high.ledger, high.entry) if high else path.total
        hint = None
        if index is not None and stop - begin > NEAR:
            hint = await self._admin.position(partition.name, partition.number, index)
        while stop - begin > NEAR:
            middle = (begin + stop) // 2
            if hint is not None:
                middle = min(max(path.number(*hint), begin + 1), stop - 1)
                hint = None
            found = await probe(self._client, partition, path.position(middle))
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
