"""Opening a partition: become its sole writer, and find out where its offsets go on.

Exclusive access is not enough: a broker may let an old owner in again while it notes a
new one. What fences is the term in the sequence ids. So

    1  open the producer, and look at the newest entry: our term is above all of both
    2  store a marker that begins the term; once Pulsar says where it is, nothing of an
       older term is stored any more, and nobody else has this term
    3  the end is what the newest entry before that marker says, or what else is known
       of it where that is more
    4  store a second marker that says the end, and serve

The second one is for the next owner: it tells where to go on, also when retention has
deleted all records before it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ropeway.storage.api import LogLimitError, LogUnavailableError
from ropeway.storage.pulsar.end_search import Search, ends
from ropeway.storage.pulsar.entry_reader import damaged, unavailable
from ropeway.storage.pulsar.errors import FencedError, PulsarError
from ropeway.storage.pulsar.pack import encode_marker
from ropeway.storage.pulsar.send_entry import EntryMetadata
from ropeway.storage.pulsar.terms import (
    LAST_TERM,
    after,
    claiming,
    next_offset_of,
    term_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.cluster import Cluster
    from ropeway.storage.pulsar.end_offsets import EndOffsets
    from ropeway.storage.pulsar.entry import Position
    from ropeway.storage.pulsar.entry_reader import Found
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.producer import Producer
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings

_log = structlog.get_logger()


class ContestedError(LogUnavailableError):
    """Somebody else has begun the same term; trying again takes a later one."""


class Opened(NamedTuple):
    """A partition whose sole writer we are."""

    producer: Producer
    term: int
    first: int
    end: int
    oldest_ledger: int
    newest: Found | None
    """The newest pack, where it is known."""


async def open_partition(
    cluster: Cluster,
    partition: PulsarPartition,
    settings: PulsarLogSettings,
    known_ends: EndOffsets,
    permit: Callable[[], None],
    lost: Callable[[PulsarError], None],
) -> Opened:
    """Take a partition over, and find its ends.

    Args:
        cluster: Has it.
        partition: Which one.
        settings: Sizes and time-outs.
        known_ends: Know where partitions end.
        permit: Whether this node may; see `PulsarClient.producer`.
        lost: Called once when nothing can be written any more.

    Raises:
        ContestedError: Another node does so at the same moment.
        LogUnavailableError: It cannot be had now.
        LogDamagedError: The entries at its ends cannot be trusted.
        LogLimitError: It was taken over too often.
        NoSuchPartitionError: There is no such topic.
    """
    admin, client = cluster
    # Before anything is written: a damaged topic is left as it is.
    looking = asyncio.ensure_future(ends(client, partition))
    try:
        # An old owner may still be there: the client tries again until it is fenced.
        producer = await client.producer(
            partition.full_name, settings.producer_name, lost=lost, permit=permit
        )
    except PulsarError as error:
        await asyncio.gather(looking, return_exceptions=True)
        raise unavailable(partition, error) from error
    except BaseException:
        looking.cancel()
        raise
    try:
        oldest, newest = await looking
        opening = Opening(client, admin, partition, producer, known_ends, newest)
        return await opening.finish(oldest, settings.open_s)
    except BaseException:
        looking.cancel()
        await producer.close()
        raise


class Opening:
    """What follows once the producer is open.

    Args:
        client: Reads entries.
        admin: Knows ledgers.
        partition: Which one.
        producer: Opened on it.
        known_ends: Know what retention cannot delete.
        newest: The newest entry as of about then.
    """

    def __init__(
        self,
        client: PulsarClient,
        admin: Admin,
        partition: PulsarPartition,
        producer: Producer,
        known_ends: EndOffsets,
        newest: Found | None,
    ) -> None:
        self._partition = partition
        self._producer = producer
        self._ends = known_ends
        self._newest = newest
        known = producer.last_sequence_id
        self._search = Search(client, admin, partition, next_offset_of(known) or 0)
        # A broker forgets a producer that was away for hours; its entries tell.
        self._term = 1 + max(term_of(known), newest.term if newest else -1)

    async def finish(self, oldest: Found | None, timeout_s: float) -> Opened:
        """Begin the term, and find the end; see `open_partition`."""
        term = self._term
        if term > LAST_TERM:
            raise LogLimitError(
                f"{self._partition.full_name} would begin its term {term}; the last "
                f"is {LAST_TERM}"
            )
        claim = await self._within(
            timeout_s, self._store(claiming(term), self._search.floor)
        )
        told = await self._search.before(claim, self._newest)
        if told is not None and told.term >= term:
            raise damaged(
                self._partition,
                told.position,
                f"of term {told.term}; allowed before entry {claim}: below {term}",
            )
        end = await self._ends.at_least(
            self._partition,
            told.pack.end if told else self._search.floor,
            told=told is not None,
        )
        begin = self._ends.begin(self._partition) or 0
        if told is not None and max(told.pack.end, begin) < end:
            self._partition.gaps[told.pack.end] = end
        self._look_for_losses(told)
        if end == begin > (told.pack.end if told else 0):
            # Until it is stored, nothing but the state tells where it begins.
            await self._within(timeout_s, self._store(after(term, end), end))
        else:
            self._mark(after(term, end), end, _told)
        ledger = oldest.position.ledger if oldest else claim.ledger
        first = max(min(oldest.pack.base_offset, end), begin) if oldest else end
        newest = told if told and told.pack.count else None
        return Opened(self._producer, term, first, end, ledger, newest)

    async def _within(self, timeout_s: float, stored: Awaitable[Position]) -> Position:
        try:
            async with asyncio.timeout(timeout_s):
                return await stored
        except TimeoutError:
            raise LogUnavailableError(
                f"{self._partition.full_name}: Pulsar stored nothing in "
                f"{timeout_s:.0f} s"
            ) from None

    async def _store(self, sequence_id: int, offset: int) -> Position:
        """Store a marker; says where it is. The first one begins the term."""
        stored: asyncio.Future[Position | None] = (
            asyncio.get_running_loop().create_future()
        )

        def done(where: Position | None, error: PulsarError | None) -> None:
            if stored.done():
                return
            if error is None:
                stored.set_result(where)
            else:
                stored.set_exception(error)

        self._mark(sequence_id, offset, done)
        name = self._partition.full_name
        try:
            where = await stored
        except FencedError as error:
            raise ContestedError(f"{name}: {error}") from error
        except PulsarError as error:
            raise unavailable(self._partition, error) from error
        if where is None:
            # Stored by an earlier try of ours, or by somebody else's: nobody can tell.
            raise ContestedError(f"{name}: term {self._term} has begun already")
        return where

    def _mark(
        self,
        sequence_id: int,
        offset: int,
        done: Callable[[Position | None, PulsarError | None], None],
    ) -> None:
        self._producer.send(
            [encode_marker(offset)],
            sequence_id,
            done,
            EntryMetadata(int(time.time() * 1000)),
        )

    def _look_for_losses(self, told: Found | None) -> None:
        """Say so where the broker knew of packs that are not there."""
        known = self._producer.last_sequence_id
        if (
            told is not None
            and told.sequence_id < known
            and told.term == term_of(known)
        ):
            _log.error(
                "packs that Pulsar had taken are missing at the end",
                partition=self._partition.full_name,
                end=told.pack.end,
                expected=next_offset_of(known),
            )


def _told(_where: Position | None, _error: PulsarError | None) -> None:
    """Whoever loses the producer is told by it; nobody waits for the second marker."""
