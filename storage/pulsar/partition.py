"""One partition of the log on Pulsar: closed, open, or gone.

It is open as its sole writer, or beside others that write: native clients, or the node
that owns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ropeway.storage.api import LogUnavailableError, NoSuchPartitionError, NotReadyError
from ropeway.storage.pulsar.pack import peel
from ropeway.storage.pulsar.positions import Positions
from ropeway.storage.pulsar.read_result import Gathering
from ropeway.storage.pulsar.tail import Cached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.api import Chunk, Done, Filter, RecordParts
    from ropeway.storage.native import Converter
    from ropeway.storage.pulsar.append_path import AppendPath
    from ropeway.storage.pulsar.appender import Flight
    from ropeway.storage.pulsar.entry import Position
    from ropeway.storage.pulsar.read_ahead import Readers
    from ropeway.storage.pulsar.tail import Tail
    from ropeway.storage.pulsar.times import Times
    from ropeway.storage.pulsar.topic_names import PulsarName


class PulsarPartition:
    """A partition, made when it is first asked for, and opened by the log.

    Args:
        topic: As RocketMQ names it.
        number: Within the topic.
        name: The Pulsar topic's.
        tail: The newest packs of all partitions.
        readers: What reads from Pulsar.
        times: What looks store times up.
        positions: How many places of packs to know.
        converter: Between records and messages of native clients, where those write
            to it, too.
        noted: Tells the end that the broker's state has, where this node leads.
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
        "full_name",
        "gaps",
        "gone",
        "name",
        "noted_end",
        "number",
        "oldest_ledger",
        "positions",
        "topic",
        "was_read",
        "watchers",
    )

    def __init__(
        self,
        topic: str,
        number: int,
        name: PulsarName,
        tail: Tail,
        readers: Readers,
        times: Times,
        positions: int,
        converter: Converter | None = None,
        noted: Callable[[PulsarPartition], int | None] = lambda _: None,
    ) -> None:
        self._noted = noted
        self.topic = topic
        self.number = number
        self.name = name
        self.full_name = name.partition(number)
        self.converter = converter
        self._tail = tail
        self._readers = readers
        self._times = times
        self._cached = Cached()
        self.positions = Positions(positions)
        self.watchers: dict[Callable[[], None], None] = {}
        self.appender: AppendPath | None = None
        """Its way in; None while it is not open."""
        self.first_offset = 0
        self.end_offset = 0
        self.noted_end = -1
        """What the broker's state says of `end_offset`; -1 before it was looked up."""
        self.gaps: dict[int, int] = {}
        """Offsets that have no record, as far as is known, from one up to another: what
        was there is lost, and an owner went on behind it."""
        self.oldest_ledger = -1
        """The ledger that `first_offset` was found in."""
        self.compacted = False
        """Whether it is read compacted: then offsets have gaps."""
        self.gone = False
        self.closed = False
        self.was_read = False
        """Whether somebody read since that was looked at last."""

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there."""
        if self.appender is None:
            self._refuse()
        return self.first_offset

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

    def grown(self) -> None:
        """Tell all who watch."""
        if self.watchers:
            for grown in tuple(self.watchers):
                grown()

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
        offset = max(offset, self.first_offset)
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
            return max(after - 1, self.first_offset)
        return await self._times.offset_at(self, time_ms)

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored; see `storage.api`."""
        if self.appender is None:
            self._refuse()
        if not self.first_offset <= offset < self.end_offset:
            return None
        return await self._times.store_time(self, offset)

    def watch(self, grown: Callable[[], None]) -> None:
        """Call `grown` each time `end` has moved."""
        if self.gone:
            self._refuse()
        self.watchers[grown] = None

    def unwatch(self, grown: Callable[[], None]) -> None:
        """Stop calling it."""
        self.watchers.pop(grown, None)

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
        self.end_offset = end
        self.noted_end = -1
        self.oldest_ledger = oldest_ledger
        self.appender = appender

    def shut(self, reason: str) -> None:
        """Be closed from now on; what is on its way is answered."""
        appender, self.appender = self.appender, None
        if appender is not None:
            appender.fail(reason)

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
            raise NoSuchPartitionError(
                f"partition {self.number} of topic {self.topic} was deleted"
            )
        raise NotReadyError(self.topic, self.number)
