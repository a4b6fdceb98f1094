"""A partition that native clients write to, too: what comes is followed, in order.

Its offsets are the broker's. So an append is done when its entry comes back: only then
its offset is known, and all readers have it. Whose entry it is, the producer's name
and the sequence id tell; no other has this name.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import structlog

from ropeway.storage.api import LogBusyError, LogLimitError, LogUnavailableError
from ropeway.storage.pulsar.commands import Access
from ropeway.storage.pulsar.end_search import ends
from ropeway.storage.pulsar.entry_reader import unavailable
from ropeway.storage.pulsar.errors import EntryError, PulsarError
from ropeway.storage.pulsar.native import base_offset, outgoing, to_pack
from ropeway.storage.pulsar.newest import Newest
from ropeway.storage.pulsar.pack import peel
from ropeway.storage.pulsar.pending_appends import PendingAppends
from ropeway.storage.pulsar.selftest import check_indexes
from ropeway.storage.pulsar.send_entry import EntryMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.api import Done, RecordParts
    from ropeway.storage.native import Converter
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.appender import Traffic
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.producer import Producer
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings

_log = structlog.get_logger()


class SharedAppender:
    """The way in of a shared partition, and what follows its newest entries.

    Args:
        partition: Whose.
        converter: Between records and what native clients see.
        settings: Sizes and time-outs.
        traffic: Shared by all appenders of the log.
        lost: Called when entries cannot be followed any more.
    """

    def __init__(
        self,
        partition: PulsarPartition,
        converter: Converter,
        settings: PulsarLogSettings,
        traffic: Traffic,
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._partition = partition
        self._converter = converter
        self._wait_s = settings.wait_ms / 1000
        self._traffic = traffic
        self._lost = lost
        self._name = f"{settings.producer_name}-{uuid4().hex}"
        self._producer: Producer
        self._newest = Newest(partition, self._take, lost)
        self._sequence_id = 0
        self._awaited = PendingAppends(self, partition.full_name, traffic)
        self._refusal: str | None = None
        """Why appends are refused, where they are."""
        self._failed = False

    async def open(self, client: PulsarClient, after: Position | None) -> None:
        """Begin to follow what comes behind an entry, and be able to write.

        Raises:
            PulsarError: Refused, or not possible in time.
        """
        name = self._partition.full_name
        self._producer = await client.producer(
            name, self._name, access=Access.SHARED, lost=self._lost
        )
        try:
            await self._newest.open(client, after)
        except BaseException:
            await self._producer.close()
            raise

    def begin(self) -> None:
        """The partition is open: take what has come so far."""
        self._newest.begin()

    @property
    def next_offset(self) -> int:
        """A guess: what the next append gets if nobody else writes before it."""
        return self._partition.end_offset + self._awaited.records

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self._awaited

    @property
    def oldest_at(self) -> float:
        """When the oldest append on its way was sent; there must be one."""
        return self._awaited.oldest_at

    @property
    def is_shut_out(self) -> bool:
        """Whether Pulsar refuses what is on its way, and not only is late."""
        return self._producer.is_shut_out

    async def drained(self) -> None:
        """Return when all that was appended before is stored.

        Raises:
            OutcomeUnknownError: It may or may not have been.
        """
        await self._awaited.drained()

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Send records as one entry; see `storage.api`."""
        if self._refusal is not None:
            raise LogUnavailableError(self._refusal)
        self._refuse_when_busy()
        entry = outgoing(self._converter.native([one[0] for one in records]))
        try:
            self._producer.send(
                entry.payload,
                self._sequence_id,
                self._acknowledged,
                EntryMetadata(
                    *(store_ms, entry.properties, entry.key),
                    *(entry.event_ms, entry.batch),
                ),
                num_messages=len(records),
            )
        except ValueError as error:
            raise LogLimitError(f"{self._partition.full_name}: {error}") from error
        size = sum(len(one[0]) for one in records)
        self._awaited.add(self._sequence_id, len(records), size, done)
        self._sequence_id += 1

    def _refuse_when_busy(self) -> None:
        traffic = self._traffic
        if traffic.waiting_bytes > traffic.limit_bytes:
            raise LogBusyError(
                f"busy: {traffic.waiting_bytes} bytes wait for Pulsar; "
                f"allowed: {traffic.limit_bytes}"
            )
        if not self._awaited:
            return
        waited_s = time.monotonic() - self._awaited.oldest_at
        if waited_s > self._wait_s:
            raise LogBusyError(
                f"busy: {self._partition.full_name} has waited for Pulsar for "
                f"{waited_s * 1000:.0f} ms; allowed: {self._wait_s * 1000:.0f}"
            )

    def _acknowledged(self, _: Position | None, error: PulsarError | None) -> None:
        """Only that it failed is news: what is stored comes by itself."""
        if error is not None:
            self.fail(str(error))

    def _take(self, entry: Entry) -> None:
        """Let readers have an entry, and whoever sent it know."""
        partition = self._partition
        if self._failed:
            return
        try:
            self._refuse_overlap(entry)
            data = to_pack(self._converter, partition.topic, partition.number, entry)
        except EntryError as error:
            self._lost(error)
            return
        pack = peel(data)
        partition.keep(data, pack.base_offset, pack.times[0], entry.position)
        partition.end_offset = pack.end
        if entry.producer_name == self._name:
            self._awaited.came(entry.sequence_id, pack.base_offset)
            if not self._awaited:
                self._refusal = None
        self._newest.tell()

    def _refuse_overlap(self, entry: Entry) -> None:
        end = self._partition.end_offset
        if base_offset(entry) < end:
            raise EntryError(
                f"the entry at {entry.position} has the index {entry.index} and "
                f"{entry.num_messages} messages; the last offset was {end - 1}"
            )

    def give_up(self) -> None:
        """Answer all that is on its way, for Pulsar does not; it may come yet."""
        if self._refusal is None:
            name = self._partition.full_name
            why = self._producer.silence
            _log.warning("appends of unknown outcome", partition=name, reason=why)
            self._refusal = (
                f"the outcome of earlier appends to {name} is unknown: {why}"
            )
            self._awaited.give_up(why)

    def fail(self, reason: str) -> None:
        """Answer all that is on its way, for it will never be acknowledged."""
        self._failed = True
        self._refusal = f"{self._partition.full_name}: {reason}"
        self._awaited.fail(reason)

    async def close(self) -> None:
        """Let Pulsar know that this is over."""
        await asyncio.gather(self._producer.close(), self._newest.close())


class OpenedShared(NamedTuple):
    """A shared partition that is followed."""

    appender: SharedAppender
    first: int
    end: int
    oldest_ledger: int


async def open_shared(
    client: PulsarClient,
    admin: Admin,
    partition: PulsarPartition,
    settings: PulsarLogSettings,
    traffic: Traffic,
    lost: Callable[[PulsarError], None],
) -> OpenedShared:
    """Find a shared partition's ends, and follow what comes from there on.

    Raises:
        LogUnavailableError: It cannot be had now.
        PulsarUnfitError: The brokers do not count.
        LogDamagedError: There are entries that were not counted.
        NoSuchPartitionError: There is no such topic.
    """
    assert partition.converter is not None
    await check_indexes(admin)
    # Before looking, for what is counted by then and not there any more was deleted.
    counted = await admin.next_index(partition.name, partition.number)
    oldest, newest = await ends(client, partition)
    for found in (oldest, newest):
        if found is not None:
            partition.positions.add(*found.spot)
    appender = SharedAppender(partition, partition.converter, settings, traffic, lost)
    try:
        await appender.open(client, newest.position if newest else None)
    except PulsarError as error:
        raise unavailable(partition, error) from error
    if oldest is None or newest is None:
        return OpenedShared(appender, counted, counted, -1)
    first = oldest.pack.base_offset
    return OpenedShared(appender, first, newest.pack.end, oldest.position.ledger)
