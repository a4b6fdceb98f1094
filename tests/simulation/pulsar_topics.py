"""What Pulsar has stored: topics of ledgers, which outlive brokers; no I/O.

Source: ManagedLedgerImpl, NonDurableCursorImpl, MessageDeduplication, Pulsar 4.0.8.
`test_pulsar.py` holds it against a real one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from ropeway.storage.pulsar.entry import (
    BatchedMetadata,
    BrokerMetadata,
    Metadata,
    Position,
)
from ropeway.storage.pulsar.frames import (
    BROKER_METADATA_MAGIC,
    CHECKSUM_MAGIC,
    MAGIC_AND_SIZE,
    SIZE,
    TWO_SIZES,
    command_frame,
    decode_rest,
    extend_checksum,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.storage.pulsar.commands import Delivery

NOWHERE = Position(-1, -1)


class Stored(NamedTuple):
    """One entry."""

    where: Position
    rest: bytes
    """Checksum, metadata and payload, as they were sent."""
    metadata: Metadata
    added: bytes
    """What a broker has added (PIP-70), where brokers count."""
    time_ms: int
    """The broker's time; where brokers add nothing, the producer's."""

    def frame(self, delivery: Delivery) -> bytes:
        """The MESSAGE that brings it."""
        head = command_frame(delivery)
        command = head[TWO_SIZES.size :]
        size = 4 + len(command) + len(self.added) + len(self.rest)
        return b"".join(
            (TWO_SIZES.pack(size, len(command)), command, self.added, self.rest)
        )


class Ledger:
    """Entries that one broker has written, one after the other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.entries: list[Stored] = []
        self.next_entry = 0
        self.closed_s: float | None = None
        """When it was closed; the one that is written to is never deleted."""


class Topic:
    """A topic in Pulsar's metadata and bookies.

    Args:
        name: In full.
        numbers: Of ledgers, of the whole cluster.
        counts: Whether brokers tell indexes.
    """

    def __init__(self, name: str, numbers: itertools.count[int], counts: bool) -> None:
        self.name = name
        self._numbers = numbers
        self._counts = counts
        self.ledgers: list[Ledger] = []
        self.epoch: int | None = None
        self.index = -1
        self.highest: dict[str, int] = {}
        """Sequence ids of entries that are deleted: the snapshot of deduplication."""
        self.compacted: list[Stored] = []
        self.horizon = NOWHERE
        """All up to it is compacted."""

    def open(self, now_s: float) -> dict[str, int]:
        """Have a broker begin a ledger; what deduplication makes out of the others."""
        if self.ledgers:
            self.ledgers[-1].closed_s = now_s
        self.ledgers = [one for one in self.ledgers if one.next_entry]
        self.ledgers.append(Ledger(next(self._numbers)))
        known = dict(self.highest)
        for one in self:
            _note(known, one.metadata)
        return known

    def add(self, rest: bytes, messages: int, now_ms: int) -> Stored:
        """Store an entry."""
        ledger = self.ledgers[-1]
        where = Position(ledger.number, ledger.next_entry)
        self.index += messages
        added = b""
        metadata = Metadata.decode(rest, *decode_rest(rest, 0).metadata)
        time_ms = now_ms if self._counts else metadata.publish_ms
        if self._counts:
            said = BrokerMetadata(now_ms, self.index).encode()
            added = MAGIC_AND_SIZE.pack(BROKER_METADATA_MAGIC, len(said)) + said
        one = Stored(where, rest, metadata, added, time_ms)
        ledger.entries.append(one)
        ledger.next_entry += 1
        return one

    def __iter__(self) -> Iterator[Stored]:
        return itertools.chain.from_iterable(one.entries for one in self.ledgers)

    def trim(self, before_s: float) -> bool:
        """Delete the oldest ledgers that were closed before a time."""
        kept = self.ledgers
        while kept and kept[0].closed_s is not None and kept[0].closed_s < before_s:
            for one in kept[0].entries:
                _note(self.highest, one.metadata)
            kept = kept[1:]
        trimmed = len(kept) < len(self.ledgers)
        self.ledgers = kept
        return trimmed

    @property
    def last(self) -> Position:
        """The last entry's position; of an empty topic, before its first ledger's."""
        for ledger in reversed(self.ledgers):
            if ledger.next_entry:
                return Position(ledger.number, ledger.next_entry - 1)
        return Position(self.ledgers[-1].number, -1) if self.ledgers else NOWHERE

    def from_(self, where: Position) -> Stored | None:
        """The first entry that is stored at a position or behind it."""
        for ledger in self.ledgers:
            if ledger.number < where.ledger or not ledger.entries:
                continue
            at = where.entry if ledger.number == where.ledger else 0
            if at < len(ledger.entries):
                return ledger.entries[max(at, 0)]
        return None

    def before(self, where: Position) -> Position:
        """The position in front of another one."""
        if where.entry > 0:
            return Position(where.ledger, where.entry - 1)
        earlier = [one for one in self.ledgers if one.number < where.ledger]
        if not earlier:
            return Position(where.ledger, -1)
        return Position(earlier[-1].number, earlier[-1].next_entry - 1)

    def by_time(self, time_ms: int) -> Position:
        """Where a reader begins that asks for a time."""
        newest = None
        for one in self:
            if one.time_ms < time_ms:
                newest = one.where
        if newest is None:
            return Position(self.ledgers[0].number, 0) if self.ledgers else NOWHERE
        return Position(newest.ledger, newest.entry + 1)

    def compact(self) -> None:
        """Keep the last of each key of all that is there, beside the topic itself."""
        newest: dict[str, tuple[Position, int]] = {}
        there = [one for one in self if one.where > self.horizon]
        all_of_them = [*self.compacted, *there]
        for one in all_of_them:
            for number, (key, payload) in enumerate(_messages(one)):
                if key is not None:
                    newest.pop(key, None)
                    if payload:
                        newest[key] = one.where, number
        kept: dict[Position, set[int]] = {}
        for where, number in newest.values():
            kept.setdefault(where, set()).add(number)
        self.compacted = [
            _with_only(one, kept[one.where]) for one in all_of_them if one.where in kept
        ]
        if there:
            self.horizon = there[-1].where


def _messages(one: Stored) -> Iterator[tuple[str | None, bytes]]:
    """Key and payload of each message of an entry."""
    if one.metadata.num_messages is None:
        yield one.metadata.partition_key, _payload(one)
        return
    for metadata, payload in _batch(one):
        is_out = metadata.compacted_out
        yield None if is_out else metadata.partition_key, payload


def _batch(one: Stored) -> Iterator[tuple[BatchedMetadata, bytes]]:
    data, at = _payload(one), 0
    while at < len(data):
        (size,) = SIZE.unpack_from(data, at)
        head = at + SIZE.size
        metadata = BatchedMetadata.decode(data, head, head + size)
        at = head + size + metadata.payload_bytes
        yield metadata, data[head + size : at]


def _with_only(one: Stored, numbers: set[int]) -> Stored:
    """An entry without those of its messages that are not meant."""
    if one.metadata.num_messages is None:
        return one
    parts = []
    for number, (said, payload) in enumerate(_batch(one)):
        is_kept = number in numbers
        left = structs.replace(said, compacted_out=True, payload_bytes=0)
        head = (said if is_kept else left).encode()
        parts += [SIZE.pack(len(head)), head, payload if is_kept else b""]
    front = one.rest[MAGIC_AND_SIZE.size : decode_rest(one.rest, 0).payload_at]
    rest = front + b"".join(parts)
    checksum = MAGIC_AND_SIZE.pack(CHECKSUM_MAGIC, extend_checksum(0, rest))
    return one._replace(rest=checksum + rest)


def _note(known: dict[str, int], metadata: Metadata) -> None:
    name = metadata.producer_name
    highest = max(metadata.highest_sequence_id, metadata.sequence_id)
    known[name] = max(known.get(name, -1), highest)


def _payload(one: Stored) -> bytes:
    return one.rest[decode_rest(one.rest, 0).payload_at :]
