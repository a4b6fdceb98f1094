"""One partition's appends on their way: joined into packs, sent, acknowledged in order.

What is appended in one tick of the event loop is one pack. Some packs may be in flight;
what comes meanwhile waits, and makes the next packs larger. So a busy or distant Pulsar
costs fewer messages, and an idle one adds no delay.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from ropeway.storage.api import (
    LogBusyError,
    LogError,
    LogLimitError,
    LogUnavailableError,
    OutcomeUnknownError,
)
from ropeway.storage.pulsar.pack import KEY_BYTES, RECORD_BYTES, encode
from ropeway.storage.pulsar.send_entry import EntryMetadata
from ropeway.storage.pulsar.terms import LAST_OFFSET, after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import Done, RecordParts
    from ropeway.storage.pulsar.append_path import AppendPath
    from ropeway.storage.pulsar.entry import Position
    from ropeway.storage.pulsar.errors import PulsarError
    from ropeway.storage.pulsar.pack import Append
    from ropeway.storage.pulsar.producer import Producer
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings

MESSAGE_OVERHEAD_BYTES = 16 * 1024
"""What a message's metadata and a pack's header may take of the brokers' maximum."""

_length = Struct(">i").unpack_from
_LENGTH_BYTES = 4
_now = time.monotonic

_log = structlog.get_logger()


class Traffic:
    """What all partitions of a log have on its way."""

    __slots__ = ("appenders", "heard_at", "limit_bytes", "waiting_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.waiting_bytes = 0
        """Bytes of records and tables that were appended and are not done."""
        self.appenders: dict[AppendPath, None] = {}
        """Those that have something in flight."""
        self.heard_at = 0.0
        """When Pulsar last acknowledged something, or had nothing to acknowledge."""


class Flight(NamedTuple):
    """A pack that was sent."""

    pack: bytes
    base_offset: int
    end: int
    visible_end: int
    """One past the last record whose append is whole with this pack."""
    appends: list[Append]
    bytes: int
    sent_at: float


class Growing(Protocol):
    """What hears of what is stored; see `PulsarPartition`."""

    full_name: str
    """Topic and partition, for messages to people."""

    def stored(self, flight: Flight, position: Position | None) -> None:
        """A pack is acknowledged, and is there, if that is known."""

    def grown(self) -> None:
        """The callbacks of a pack's appends have run."""


class Appender:
    """The way in of a partition that is open, while its producer is.

    Args:
        partition: Is told of each pack that is acknowledged.
        producer: The sole writer of the Pulsar topic.
        term: What its packs' sequence ids begin with.
        next_offset: Of the first append.
        settings: Sizes and time-outs.
        traffic: Shared by all appenders of the log.
    """

    __slots__ = (
        "_drains",
        "_flights",
        "_grown",
        "_max_bytes",
        "_max_flights",
        "_name",
        "_next_base",
        "_pack_bytes",
        "_scheduled",
        "_stored",
        "_term",
        "_traffic",
        "_unknown",
        "_wait_s",
        "_waiting",
        "_whole",
        "next_offset",
        "producer",
        "refusal",
    )

    def __init__(
        self,
        partition: Growing,
        producer: Producer,
        term: int,
        next_offset: int,
        settings: PulsarLogSettings,
        traffic: Traffic,
    ) -> None:
        self._name = partition.full_name
        self.producer = producer
        self._term = term
        self._max_bytes = producer.max_message_bytes - MESSAGE_OVERHEAD_BYTES
        self._max_flights = settings.packs_in_flight
        self._pack_bytes = settings.pack_bytes
        self._wait_s = settings.wait_ms / 1000
        self._traffic = traffic
        self._stored = partition.stored
        self._grown = partition.grown
        self._waiting: deque[Append] = deque()
        self._flights: deque[Flight] = deque()
        self._drains: list[tuple[int, asyncio.Future[None]]] = []
        """Whom to wake when all before an offset is stored."""
        self._scheduled = False
        self._unknown = False
        """Whether what is in flight was answered as of unknown outcome."""
        self._next_base = self._whole = self.next_offset = next_offset
        self.refusal: LogError | None = None
        """Why appends are refused, where they are."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self._flights and not self._waiting

    @property
    def oldest_at(self) -> float:
        """When the oldest pack in flight was sent; there must be one."""
        return self._flights[0].sent_at

    @property
    def is_shut_out(self) -> bool:
        """Whether Pulsar refuses what is on its way, and not only is late."""
        return self.producer.is_shut_out

    async def drained(self) -> None:
        """Return when all that was appended before is stored.

        Raises:
            OutcomeUnknownError: It may or may not have been.
        """
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drains.append((self.next_offset, stored))
        await stored

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Take records in; see `storage.api`."""
        if self.refusal is not None:
            # A new one each time: an exception keeps every frame it was raised through.
            raise type(self.refusal)(str(self.refusal))
        size = 0
        for data, _, words in records:
            length = len(data)
            if length < _LENGTH_BYTES or _length(data)[0] != length:
                _refuse_record(data)
            size += length + RECORD_BYTES + KEY_BYTES * len(words)
        next_offset = self.next_offset + len(records)
        if next_offset > LAST_OFFSET + 1:
            raise LogLimitError(
                f"{self._name} would end at offset {next_offset - 1}; "
                f"the last is {LAST_OFFSET}"
            )
        traffic = self._traffic
        if traffic.waiting_bytes + size > traffic.limit_bytes:
            raise LogBusyError(
                f"busy: {traffic.waiting_bytes} bytes wait for Pulsar; "
                f"allowed: {traffic.limit_bytes}"
            )
        if self._flights:
            self._refuse_when_late()
        if size > self._max_bytes:
            self._split(records, store_ms, done)
        else:
            self._waiting.append((records, store_ms, done, size))
        self.next_offset = next_offset
        traffic.waiting_bytes += size
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)

    def _refuse_when_late(self) -> None:
        waited_s = _now() - self._flights[0].sent_at
        if waited_s > self._wait_s:
            raise LogBusyError(
                f"busy: {self._name} has waited for Pulsar for {waited_s * 1000:.0f} "
                f"ms; allowed: {self._wait_s * 1000:.0f}"
            )

    def _split(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Let several packs carry what no message can; visible with the last one."""
        pieces: list[list[RecordParts]] = []
        sizes: list[int] = []
        for record in records:
            size = len(record[0]) + RECORD_BYTES + KEY_BYTES * len(record[2])
            if size > self._max_bytes:
                raise LogLimitError(
                    f"record of {len(record[0])} bytes; allowed: about "
                    f"{self._max_bytes}, by Pulsar's maxMessageSize"
                )
            if not pieces or sizes[-1] + size > self._max_bytes:
                pieces.append([])
                sizes.append(0)
            sizes[-1] += size
            pieces[-1].append(record)
        base = self.next_offset

        def last_done(_: int, error: LogError | None) -> None:
            done(base if error is None else -1, error)

        for piece, size in zip(pieces, sizes, strict=True):
            last = piece is pieces[-1]
            self._waiting.append((piece, store_ms, last_done if last else None, size))

    def _tick(self) -> None:
        self._scheduled = False
        self._send_on()

    def _send_on(self) -> None:
        while self._waiting and len(self._flights) < self._max_flights:
            self._send()

    def _send(self) -> None:
        """Send the pack of what has waited longest."""
        waiting = self._waiting
        appends = [waiting.popleft()]
        base = self._next_base
        records, store_ms, done, size = appends[0]
        end = base + len(records)
        if done is not None:
            self._whole = end
        while waiting and size + waiting[0][3] <= self._pack_bytes:
            one = waiting.popleft()
            appends.append(one)
            size += one[3]
            end += len(one[0])
            if one[2] is not None:
                self._whole = end
        pack = encode(appends, base)
        self._next_base = end
        now = _now()
        if not self._flights:
            traffic = self._traffic
            if not traffic.appenders:
                traffic.heard_at = now
            traffic.appenders[self] = None
        flight = Flight(pack, base, end, self._whole, appends, size, now)
        self._flights.append(flight)
        self.producer.send(
            [pack],
            after(self._term, end),
            self._arrived,
            EntryMetadata(store_ms),
            num_messages=end - base,
        )

    def _arrived(self, position: Position | None, error: PulsarError | None) -> None:
        """The oldest pack in flight is stored, or will never be known to be."""
        if error is not None:
            # What follows was sent, too; only a new look at the topic can tell.
            self.fail(str(error))
            return
        flights = self._flights
        if not flights:
            return  # It has ended meanwhile, and answered all that was on its way.
        flight = flights.popleft()
        traffic = self._traffic
        traffic.heard_at = _now()
        if not flights:
            del traffic.appenders[self]
        self._stored(flight, position)
        if self._unknown and not flights:
            # All that was sent has been stored: it goes on.
            self._unknown, self.refusal = False, None
        elif not self._unknown:
            traffic.waiting_bytes -= flight.bytes
            offset = flight.base_offset
            for records, _, done, _ in flight.appends:
                if done is not None:
                    _answer(done, offset, None)
                offset += len(records)
        self._grown()
        if self._drains:
            self._wake(flight.end)
        if self._waiting:
            self._send_on()

    def _wake(self, end: int) -> None:
        waiting, self._drains = self._drains, []
        for offset, stored in waiting:
            if offset > end:
                self._drains.append((offset, stored))
            elif not stored.done():
                stored.set_result(None)

    def give_up(self) -> None:
        """Answer all that is on its way, for Pulsar does not; packs stay in flight."""
        if self._unknown:
            return
        self._unknown = True
        why = self.producer.silence
        self.refusal = LogUnavailableError(
            f"the outcome of earlier appends to {self._name} is unknown: {why}"
        )
        _log.warning("appends of unknown outcome", partition=self._name, reason=why)
        self._answer_all(why)
        # Of an append that was sent in part no more will come: what is there shows.
        last = self._flights.pop()
        self._flights.append(last._replace(visible_end=last.end))

    def fail(self, reason: str) -> None:
        """Answer all that is on its way, for it will never be acknowledged."""
        unknown, self._unknown = self._unknown, True
        self.refusal = LogUnavailableError(f"{self._name}: {reason}")
        self._traffic.appenders.pop(self, None)
        if not unknown:
            self._answer_all(reason)
        self._flights.clear()

    async def close(self) -> None:
        """Let Pulsar know that this is over."""
        await self.producer.close()

    def _answer_all(self, reason: str) -> None:
        traffic = self._traffic
        unknown = OutcomeUnknownError(f"{self._name}: {reason}")
        unsent = LogUnavailableError(f"{self._name}: {reason}; nothing was stored")
        answers: list[tuple[Done, LogError]] = []
        for flight in self._flights:
            traffic.waiting_bytes -= flight.bytes
            answers += [(one[2], unknown) for one in flight.appends if one[2]]
        # The rest of an append of which a part was sent is of unknown outcome, too.
        cut = self._whole < self._next_base
        for _, _, done, size in self._waiting:
            traffic.waiting_bytes -= size
            if done is not None:
                answers.append((done, unknown if cut else unsent))
                cut = False
        self._waiting.clear()
        self.next_offset = self._whole = self._next_base
        for done, error in answers:
            _answer(done, -1, error)
        drains, self._drains = self._drains, []
        for _, stored in drains:
            if not stored.done():
                stored.set_exception(OutcomeUnknownError(str(unknown)))


def _answer(done: Done, offset: int, error: LogError | None) -> None:
    try:
        done(offset, error)
    except Exception:  # noqa: BLE001 - one caller's fault must not reach others
        _log.exception("a callback of an append failed")


def _refuse_record(data: bytes) -> None:
    if len(data) < _LENGTH_BYTES:
        raise LogLimitError(
            f"record of {len(data)} bytes; allowed: {_LENGTH_BYTES} or more"
        )
    raise LogLimitError(
        f"record of {len(data)} bytes says it has {_length(data)[0]}; "
        "a stored message begins with its own size"
    )
