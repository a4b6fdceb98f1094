"""Reading single entries of a partition by their positions, markers and packs alike."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from ropeway.storage.api import (
    LogDamagedError,
    LogError,
    LogUnavailableError,
    NoSuchPartitionError,
)
from ropeway.storage.pulsar.errors import EntryError, PulsarError, TopicNotFoundError
from ropeway.storage.pulsar.native import to_pack
from ropeway.storage.pulsar.pack import UnknownPackError, decode, peel
from ropeway.storage.pulsar.positions import Spot
from ropeway.storage.pulsar.terms import after, next_offset_of, term_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.native import Converter
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.pack import Pack
    from ropeway.storage.pulsar.partition import PulsarPartition

PROBE_S = 10.0
"""How long an entry may take to come."""

AT_ONCE = 16
"""Entries that are asked for together where several are read; markers are small."""


class Found(NamedTuple):
    """A pack or a marker, and where it is."""

    pack: Pack
    position: Position
    sequence_id: int

    @property
    def spot(self) -> Spot:
        """What there is to know of a pack for later."""
        pack = self.pack
        return Spot(pack.base_offset, pack.times[0], *self.position)

    @property
    def term(self) -> int:
        """Whose entry it is."""
        return term_of(self.sequence_id)

    @property
    def tells(self) -> bool:
        """Whether it says which offset is the next after it."""
        return next_offset_of(self.sequence_id) is not None


def unavailable(partition: PulsarPartition, error: PulsarError) -> LogError:
    """What a refusal of Pulsar means to who uses a partition."""
    text = f"{partition.full_name}: {error}"
    if isinstance(error, TopicNotFoundError):
        return NoSuchPartitionError(text)
    return LogUnavailableError(text)


def unpack(partition: PulsarPartition, entry: Entry) -> Pack:
    """The pack or the marker of a stored entry.

    Raises:
        LogDamagedError: It is neither; names topic, position, and what came.
    """
    if partition.converter is not None:
        return _unpack_native(partition, partition.converter, entry)
    try:
        pack = decode(entry.payload)
    except (UnknownPackError, EntryError) as error:
        raise damaged(partition, entry.position, str(error)) from error
    said = next_offset_of(entry.sequence_id)
    if said != pack.end and (said is not None or pack.count):
        raise damaged(
            partition,
            entry.position,
            f"a pack before offset {pack.end} with the sequence id "
            f"{entry.sequence_id}, which stands for {said}; allowed: the same",
        )
    return pack


def _unpack_native(
    partition: PulsarPartition, converter: Converter, entry: Entry
) -> Pack:
    try:
        data = to_pack(converter, partition.topic, partition.number, entry)
    except EntryError as error:
        raise LogDamagedError(f"{partition.full_name}: {error}") from error
    return peel(data)


def damaged(
    partition: PulsarPartition, position: Position, text: str
) -> LogDamagedError:
    """What to say of an entry that should not be."""
    return LogDamagedError(f"{partition.full_name}: entry {position} is {text}")


async def probe(
    client: PulsarClient,
    partition: PulsarPartition,
    position: Position,
    until: Position,
) -> Found | None:
    """The pack at a position, or the next one behind it that is still there.

    None where there is none up to `until`, which is the position of an entry.

    Raises:
        LogDamagedError: There is something else.
        LogUnavailableError: Nothing came.
    """
    found = await scan(client, partition, position, until, lambda one: one.pack.count)
    return found if found is not None and found.pack.count else None


async def scan(
    client: PulsarClient,
    partition: PulsarPartition,
    start: Position,
    until: Position,
    enough: Callable[[Found], object],
) -> Found | None:
    """Read entries forward, up to the first one that is enough, or to `until`.

    Returns:
        The last one that was read; None where there was none.

    Raises:
        LogDamagedError: One is neither a pack nor a marker.
        LogUnavailableError: Nothing came.
    """
    async with Scan(client, partition, start) as entries:
        last: Found | None = None
        while last is None or last.position < until:
            found = await entries.next()
            if found.position > until:
                break
            last = found
            if enough(found):
                break
        return last


class Scan:
    """Entries one after the other; an asynchronous context manager.

    Args:
        client: Reads them.
        partition: Whose.
        start: Where to begin.
    """

    def __init__(
        self,
        client: PulsarClient,
        partition: PulsarPartition,
        start: Position | Literal["earliest"],
    ) -> None:
        self._client = client
        self._partition = partition
        self._start = start
        self._came: asyncio.Queue[Entry | PulsarError] = asyncio.Queue()
        self._asked = 1

    async def __aenter__(self) -> Self:
        try:
            self._reader = await self._client.reader(
                self._partition.full_name,
                self._start,
                received=self._came.put_nowait,
                lost=self._came.put_nowait,
                permits=1,
                # The oldest record of all is a compacted one.
                compacted=self._partition.compacted and self._start == "earliest",
            )
        except PulsarError as error:
            raise unavailable(self._partition, error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._reader.close()

    async def last_position(self) -> Position | None:
        """Where the newest entry is; None where there is none."""
        try:
            return await self._reader.last_position()
        except PulsarError as error:
            raise unavailable(self._partition, error) from error

    async def next(self) -> Found:
        """The next entry; there must be one."""
        if not self._asked:
            # The first may be a large pack, and the only one wanted.
            self._asked = AT_ONCE
            self._reader.more(AT_ONCE)
        try:
            entry = await asyncio.wait_for(self._came.get(), PROBE_S)
        except TimeoutError:
            raise LogUnavailableError(
                f"{self._partition.full_name}: Pulsar did not send an entry from "
                f"{self._start} on in {PROBE_S:.0f} s"
            ) from None
        if isinstance(entry, PulsarError):
            raise unavailable(self._partition, entry) from entry
        self._asked -= 1
        partition = self._partition
        pack = unpack(partition, entry)
        sequence_id = entry.sequence_id
        if partition.converter is not None:
            # That of some producer; it is the index that tells.
            sequence_id = after(0, pack.end)
        return Found(pack, entry.position, sequence_id)
