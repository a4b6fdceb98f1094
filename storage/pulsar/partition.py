"""One partition of the log on Pulsar: closed, open, or gone.

It is open as its sole writer, or beside others that write: native clients, or the node
that owns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from ropeway.storage.api import LogUnavailableError, NotReadyError
from ropeway.storage.pulsar.pack import peel
from ropeway.storage.pulsar.positions import Positions
from ropeway.storage.pulsar.read_result import Gathering
from ropeway.storage.pulsar.tail import Cached
from ropeway.storage.watched_partition import WatchedPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.api import Chunk, Done, Filter, RecordParts
    from ropeway.storage.native import Converter
    from ropeway.storage.pulsar.append_path import AppendPath
    from ropeway.storage.pulsar.appender import Flight
    from ropeway.storage.pulsar.entry import Position
    from ropeway.storage.pulsar.tail import Tail
    from ropeway.storage.pulsar.topic_names import PulsarName


class RecordReader(Protocol):
    """Reads the records of partitions; see `read_ahead.Readers`."""

    async def read(self, partition: PulsarPartition, gathering: Gathering) -> Chunk:
        """The records that are asked for, as `Partition.read` gives them."""


class TimeReader(Protocol):
    """Looks up when records were stored; see `times.Times`."""

    async def offset_at(self, partition: PulsarPartition, time_ms: int) -> int:
        """The first offset stored at that time or later; the end, if none was."""

    async def store_time(self, partition: PulsarPartition, offset: int) -> int | None:
        """When a record was stored; None where it is not there."""


class PartitionContext(NamedTuple):
    """What all partitions of a log share."""

    tail: Tail
    """The newest packs of all partitions."""
    readers: RecordReader
    """What reads from Pulsar."""
    times: TimeReader
    """What looks store times up."""
    positions: int
    """How many places of packs each knows."""
    noted: Callable[[PulsarPartition], int | None] = lambda _: None
    """Tells the end that the broker's state has, where this node leads."""
    floor: Callable[[str, int], int] = lambda _topic, _number: 0
    """Tells up to where a partition was trimmed."""


class PulsarPartition(WatchedPartition):
    """A partition, made when it is first asked for, and opened by the log.

    Args:
        topic: As RocketMQ names it.
        number: Within the topic.
        name: The Pulsar topic's.
        context: What all partitions share.
        converter: Between records and messages of native clients, where those write
            to it, too.
    """

    __slots__ = (
        "_cached",
        "_noted",
        "_readers",
        "_tail",
        "_times",
        "appender",
        "closed",
        "compacted",
        "converter",
        "end_offset",
        "first_offset",
        "floor",
        "full_name",
        "gaps",
        "looked_end",
        "name",
        "noted_end",
        "oldest_ledger",
        "positions",
        "was_read",
    )

    def __init__(
        self,
        topic: str,
        number: int,
        name: PulsarName,
        context: PartitionContext,
        converter: Converter | None = None,
    ) -> None:
        super().__init__(topic, number)
        self.name = name
        self.full_name = name.partition(number)
        self.converter = converter
        self._tail, self._readers, self._times, positions, self._noted, floor = context
        self._cached = Cached()
        self.positions = Positions(positions)
        self.appender: AppendPath | None = None
        """Its way in; None while it is not open."""
        self.first_offset = 0
        """The oldest record in Pulsar, whether it was trimmed or not."""
        self.floor = floor(topic, number)
        """What is below was trimmed, and is read no more."""
        self.end_offset = 0
        self.noted_end = -1
        """What the broker's state says of `end_offset`; -1 before it was looked up."""
        self.gaps: dict[int, int] = {}
        """Offsets that have no record, as far as is known, from one up to another: what
        was there is lost, and an owner went on behind it."""
        self.oldest_ledger = -1
        """The ledger that `first_offset` was found in."""
        self.looked_end = 0
        """What `end_offset` was when that was looked for last."""
        self.compacted = False
        """Whether it is read compacted: then offsets have gaps."""
        self.closed = False
        self.was_read = False
        """Whether somebody read since that was looked at last."""

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there."""
        if self.appender is None:
            self._refuse()
        return max(self.first_offset, min(self.floor, self.end_offset))

    @property
    def end(self) -> int:
        """One past the newest record that a reader can see."""
        if self.appender is None:
            self._refuse()
        return self.end_offset

    @property
    def last_end(self) -> int:
        """`end`, or what the broker's state says; see `storage.api`."""
        if self.appender is None:
            noted = None if self.closed or self.gone else self._noted(self)
            if noted is None:
                self._refuse()
            return max(noted, self.end_offset)
        return self.end_offset

    @property
    def next_offset(self) -> int:
        """The offset that the next `append` will get."""
        if self.appender is None:
            self._refuse()
        return self.appender.next_offset

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Store records after all earlier ones; see `storage.api`."""
        appender = self.appender
        if appender is None:
            self._refuse()
        appender.append(records, store_ms, done)
        self.appended_bytes += sum(len(data) for data, _, _ in records)

    def stored(self, flight: Flight, position: Position | None) -> None:
        """A pack is in Pulsar; where is not known if it had to be sent again."""
        self.keep(flight.pack, flight.base_offset, flight.appends[0][1], position)
        self.end_offset = max(self.end_offset, flight.visible_end)

    def keep(
        self, pack: bytes, base_offset: int, store_ms: int, position: Position | None
    ) -> None:
        """Have the newest pack at hand, and know where it is, where that is known."""
        self._tail.add(self._cached, base_offset, pack)
        if position is not None:
            self.positions.add(base_offset, store_ms, position.ledger, position.entry)

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk | None:
        """Read from memory alone; see `storage.api`."""
        if self.appender is None:
            self._refuse()
        self.was_read = True
        gathering = self.gather(offset, max_count, max_bytes, filter)
        end = self.end_offset
        if gathering.offset >= end:
            return gathering.chunk()
        cached = self._cached
        at = cached.find(gathering.offset)
        if at is None:
            return None
        while (pack := cached.get(at)) is not None and gathering.add(peel(pack)):
            at += 1
        return gathering.chunk()

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk:
        """Read records from an offset on; see `storage.api`."""
        chunk = self.read_now(offset, max_count, max_bytes, filter)
        if chunk is not None:
            return chunk
        gathering = self.gather(offset, max_count, max_bytes, filter)
        return await self._readers.read(self, gathering)

    def gather(
        self, offset: int, max_count: int, max_bytes: int, wanted: Filter | None
    ) -> Gathering:
        """Begin one read's answer."""
        offset = max(offset, self.first_offset, min(self.floor, self.end_offset))
        if self.gaps:
            offset = self.past_gap(offset)
        return Gathering(
            offset, self.end_offset, max_count, max_bytes, wanted, gaps=self.compacted
        )

    def past_gap(self, offset: int) -> int:
        """Where the next record may be, from an offset on."""
        for start, stop in self.gaps.items():
            if start <= offset < stop:
                return stop
        return offset

    async def offset_at(self, time_ms: int, *, upper: bool = False) -> int:
        """Find an offset by store time; see `storage.api`."""
        if self.appender is None:
            self._refuse()
        if upper:
            after = await self._times.offset_at(self, time_ms + 1)
            return max(after - 1, self.first)
        return max(await self._times.offset_at(self, time_ms), self.first)

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored; see `storage.api`."""
        if self.appender is None:
            self._refuse()
        if not self.first <= offset < self.end_offset:
            return None
        return await self._times.store_time(self, offset)

    def cached_pack(self, offset: int) -> bytes | None:
        """The pack in memory that has an offset."""
        at = self._cached.find(offset)
        pack = None if at is None else self._cached.get(at)
        # Native clients' transactions leave gaps.
        return pack if pack is not None and peel(pack).end > offset else None

    def open(
        self, appender: AppendPath, first: int, end: int, oldest_ledger: int
    ) -> None:
        """Be open from now on."""
        self._cached = Cached()
        self.first_offset = first
        self.end_offset = self.looked_end = end
        self.noted_end = -1
        self.oldest_ledger = oldest_ledger
        self.appender = appender

    def shut(self, reason: str) -> None:
        """Be closed from now on; what is on its way is answered."""
        appender, self.appender = self.appender, None
        if appender is not None:
            appender.fail(reason)

    def close(self) -> AppendPath | None:
        """Be closed for good; its way in is the caller's to close."""
        self.closed = True
        appender, self.appender = self.appender, None
        return appender

    def forget_ends(self) -> None:
        """Know no more where it begins and ends: another node may make it anew."""
        if self.appender is None:
            self.first_offset = self.end_offset = 0

    def trim(self, first: int, oldest_ledger: int) -> None:
        """Know that Pulsar has deleted what was before an offset."""
        self.first_offset = max(self.first_offset, min(first, self.end_offset))
        self.oldest_ledger = oldest_ledger
        self.positions.trim(self.first_offset)

    def _refuse(self) -> NoReturn:
        if self.closed:
            raise LogUnavailableError("the log on Pulsar is closed")
        if self.gone:
            raise self.deleted()
        raise NotReadyError(self.topic, self.number)
