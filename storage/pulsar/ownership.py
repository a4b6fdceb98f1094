"""Who owns a partition: this node from its opening until it is taken over or gone.

A node that follows opens partitions that another one owns, to read them.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.common.tasks import Tasks
from ropeway.storage.api import LogError, LogUnavailableError, NoSuchPartitionError
from ropeway.storage.pulsar.appender import Appender, Traffic
from ropeway.storage.pulsar.entry_reader import unavailable
from ropeway.storage.pulsar.errors import (
    FencedError,
    PulsarError,
    PulsarUnavailableError,
    TopicNotFoundError,
)
from ropeway.storage.pulsar.follower import Follower, open_followed
from ropeway.storage.pulsar.open_partition import ContestedError, open_partition
from ropeway.storage.pulsar.shared import open_shared
from ropeway.storage.state import never

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable

    from ropeway.storage.pulsar.append_path import AppendPath
    from ropeway.storage.pulsar.cluster import Cluster
    from ropeway.storage.pulsar.end_offsets import EndOffsets
    from ropeway.storage.pulsar.follower import Followed
    from ropeway.storage.pulsar.open_partition import Opened
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
    from ropeway.storage.pulsar.read_ahead import Readers
    from ropeway.storage.pulsar.shared import OpenedShared
    from ropeway.storage.state import Deposed, Held, State

OPENING_AT_ONCE = 32
"""Partitions that are opened side by side; a broker serves many gateways."""

EARLY_AT_ONCE = 16
"""And of those at most so many that nobody has asked for yet."""

ATTEMPTS = 5
"""An old owner that the broker lets in again is in the way once or twice."""

_log = structlog.get_logger()


class Ownership:
    """Opens partitions and notices when they are lost.

    Args:
        cluster: Makes producers, and knows ledgers.
        readers: Those of a partition are closed with it.
        settings: Sizes and time-outs.
        ends: Know where partitions end, and note it.
        taken: Called with a partition that another node has taken over.
        deleted: Called with a partition whose topic was, or seems to be, deleted.
    """

    def __init__(
        self,
        cluster: Cluster,
        readers: Readers,
        settings: PulsarLogSettings,
        ends: EndOffsets,
        taken: Callable[[PulsarPartition], None],
        deleted: Callable[[PulsarPartition], None],
    ) -> None:
        self.traffic = Traffic(settings.waiting_bytes)
        """What is on its way, of all partitions."""
        self.follows = False
        """Whether partitions are opened for reading alone, because others own them."""
        self._state: State | None = None
        self._routes_held: Held = never
        self._cluster = cluster
        self._readers = readers
        self._settings = settings
        self._ends = ends
        self._taken = taken
        self._deleted = deleted
        self._openings: dict[PulsarPartition, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(OPENING_AT_ONCE)
        self._early: asyncio.Task[None] | None = None
        self._chores = Tasks()

    async def open(self, partitions: Iterable[PulsarPartition]) -> None:
        """Return when all of them are open; each is opened once, whoever asks.

        Raises:
            LogError: One of them cannot be.
        """
        openings = []
        for partition in partitions:
            if partition.appender is None:
                opening = self._openings.get(partition)
                if opening is None:
                    opening = asyncio.ensure_future(self._open(partition))
                    self._openings[partition] = opening
                    # Not its own doing, for it may be cancelled before it begins.
                    opening.add_done_callback(partial(self._opened, partition))
                openings.append(opening)
        if openings:
            await asyncio.wait(openings)
        for opening in openings:
            if opening.cancelled():
                raise LogUnavailableError("partitions are not opened any more")
            error = opening.exception()
            if error is not None:
                raise error

    def _opened(self, partition: PulsarPartition, opening: asyncio.Task[None]) -> None:
        del self._openings[partition]
        if not opening.cancelled():
            # Who waits for many is told of one, and who gave up waiting of none; what
            # failed is in the log.
            opening.exception()

    def open_early(self, partitions: Iterable[PulsarPartition]) -> None:
        """Open partitions before they are asked for, a few at a time."""
        waiting = [one for one in partitions if one.appender is None]
        if waiting:
            self._early = asyncio.ensure_future(self._open_all(waiting))

    async def _open_all(self, waiting: list[PulsarPartition]) -> None:
        began = time.monotonic()
        count, failed = len(waiting), 0
        waiting.reverse()

        async def work() -> None:
            nonlocal failed
            while waiting:
                partition = waiting.pop()
                try:
                    await self.open([] if partition.gone else [partition])
                except LogError:
                    failed += 1  # It is logged, and tried again when it is asked for.

        await asyncio.gather(*(work() for _ in range(EARLY_AT_ONCE)))
        took_ms = round((time.monotonic() - began) * 1000)
        _log.info("partitions open", count=count, failed=failed, took_ms=took_ms)

    async def stop_opening(self) -> None:
        """Give up what is being opened; who waits for it is told so."""
        if self._early is not None:
            self._early.cancel()
            await asyncio.gather(self._early, return_exceptions=True)
        for opening in self._openings.values():
            opening.cancel()
        await asyncio.gather(*self._openings.values(), return_exceptions=True)

    def share(self, state: State, held: Held) -> None:
        """Take partitions over only while it is certain that no other node leads.

        Args:
            state: Knows whether this node leads its broker.
            held: Until when routes are sure of it.
        """
        self._state, self._routes_held = state, held

    def telling(self, deposed: Deposed) -> Deposed:
        """Make what is called when another node leads: it ends what is being opened."""

        def told(reason: str) -> None:
            self.do(self.stop_opening())
            deposed(reason)

        return told

    async def until_opened(self, partition: PulsarPartition) -> None:
        """Return when a partition is not just being opened; one that is gone is not."""
        opening = self._openings.get(partition)
        if opening is not None:
            await asyncio.wait([opening])

    async def reopen(self, partition: PulsarPartition) -> None:
        """Begin another term of a partition that is this node's.

        Raises:
            LogError: It is another's now, or is closed and cannot be opened.
        """
        appender = partition.appender
        if not isinstance(appender, Appender):
            return
        try:
            # An owner that only listens is not told that it is none any more.
            await appender.producer.confirm()
        except PulsarError as error:
            raise unavailable(partition, error) from error
        await self.shut(partition, "it is being opened anew")
        await self.open([partition])

    async def _open(self, partition: PulsarPartition) -> None:
        try:
            async with self._slots:
                await self._open_now(partition)
        except LogError as error:
            name = partition.full_name
            _log.warning("partition not opened", partition=name, reason=str(error))
            raise

    async def _open_now(self, partition: PulsarPartition) -> None:
        if partition.gone:
            # Another broker may have it, which it must not be taken from.
            raise LogUnavailableError(f"{partition.full_name} is not this node's")
        for left in reversed(range(ATTEMPTS)):
            try:
                await self._try_to_open(partition)
            except ContestedError:
                if not left:
                    raise
            else:
                return

    async def _try_to_open(self, partition: PulsarPartition) -> None:
        lost_early: list[PulsarError] = []

        def lost(error: PulsarError) -> None:
            if partition.appender is None:
                lost_early.append(error)
            else:
                self._lost(partition, error)

        if partition.converter is not None or self.follows:
            await self._begin(
                partition, await self._open_to_follow(partition, lost), lost_early
            )
            return
        opened = await open_partition(
            *(self._cluster, partition, self._settings, self._ends),
            *(self._permit, lost),
        )
        if lost_early or partition.gone or partition.closed:
            await opened.producer.close()
            fenced = lost_early and isinstance(lost_early[0], FencedError)
            lost_error = ContestedError if fenced else LogUnavailableError
            raise lost_error(f"{partition.full_name} was lost while it opened")
        if opened.end < partition.end_offset:
            # Made again behind our back: whoever holds the old one must not go on.
            await opened.producer.close()
            self._deleted(partition)
            raise NoSuchPartitionError(
                f"{partition.full_name} ended at {partition.end_offset} and now ends "
                f"at {opened.end}: it was deleted and made again"
            )
        self._join(partition, opened)

    def _permit(self) -> None:
        """See that no other node leads: its partitions would be taken from it.

        Raises:
            FencedError: Another one does, as far as is known.
            PulsarUnavailableError: One may; that is soon known.
        """
        if (state := self._state) is None:
            return
        if not state.leading:
            raise FencedError("not taken over: this node leads no more")
        if max(state.held_until_s, self._routes_held()) < time.monotonic():
            raise PulsarUnavailableError("not taken over: another node may lead")

    async def _open_to_follow(
        self, partition: PulsarPartition, lost: Callable[[PulsarError], None]
    ) -> OpenedShared | Followed:
        """Open a partition that others write to, native clients or its owner."""
        admin, client = self._cluster
        if partition.converter is None:
            return await open_followed(client, admin, partition, lost)
        return await open_shared(
            client, admin, partition, self._settings, self.traffic, lost
        )

    async def _begin(
        self,
        partition: PulsarPartition,
        opened: OpenedShared | Followed,
        lost_early: list[PulsarError],
    ) -> None:
        """Let what has been stored since it was looked at come in."""
        appender, name = opened.appender, partition.full_name
        if lost_early or partition.gone or partition.closed:
            await appender.close()
            raise LogUnavailableError(f"{name} was lost while it opened")
        if opened.end < partition.end_offset:
            await appender.close()
            self._deleted(partition)
            raise NoSuchPartitionError(
                f"{name} ended at {partition.end_offset} and now ends at {opened.end}: "
                "it was deleted and made again"
            )
        partition.open(appender, opened.first, opened.end, opened.oldest_ledger)
        appender.begin()
        _log.debug(
            "partition followed", partition=name, first=opened.first, end=opened.end
        )

    def stop_following(self, partitions: Iterable[PulsarPartition]) -> None:
        """Close those that other nodes owned; their readers stay."""
        for partition in partitions:
            appender = partition.appender
            if isinstance(appender, Follower):
                partition.shut("this node takes it over")
                self.do(_close(appender))

    def close_unused(self, partitions: Iterable[PulsarPartition]) -> None:
        """Follow no longer what nobody has read since the last call."""
        for partition in partitions:
            if self.follows and not (partition.was_read or partition.watchers):
                self.do(self.shut(partition, "nobody reads it here"))
            partition.was_read = False

    def _join(self, partition: PulsarPartition, opened: Opened) -> None:
        """Connect an opened partition's parts."""
        if opened.newest is not None:
            partition.positions.add(*opened.newest.spot)
        appender = Appender(
            *(partition, opened.producer, opened.term, opened.end),
            *(self._settings, self.traffic),
        )
        partition.open(appender, opened.first, opened.end, opened.oldest_ledger)
        self._ends.note(partition)
        _log.debug(
            "partition open",
            partition=partition.full_name,
            term=opened.term,
            first=opened.first,
            end=opened.end,
        )

    def _lost(self, partition: PulsarPartition, error: PulsarError) -> None:
        """The producer of an open partition is gone for good."""
        name = partition.full_name
        _log.warning("partition lost", partition=name, reason=str(error))
        self.do(self.shut(partition, str(error)))
        if partition.gone or partition.closed:
            return
        if isinstance(error, TopicNotFoundError):
            self._deleted(partition)
        elif isinstance(error, FencedError):
            self._taken(partition)

    def shut(
        self, partition: PulsarPartition, reason: str
    ) -> Coroutine[None, None, None]:
        """Close a partition at once; what this returns closes its producer."""
        appender = partition.appender
        partition.shut(reason)
        self._readers.forget(partition)
        return _close(appender)

    @asynccontextmanager
    async def deleting(
        self, partitions: Collection[PulsarPartition]
    ) -> AsyncIterator[None]:
        """Have partitions closed while their topic is deleted, or open as before.

        First, lest a producer that reconnects makes it anew; those of partitions that
        were forgotten before, too.
        """
        for one in partitions:
            one.gone = True
        try:
            await self.idle()
            await asyncio.gather(
                *(self.shut(one, "the topic is being deleted") for one in partitions)
            )
            yield
        except BaseException:
            for one in partitions:
                one.gone = False
            raise

    def do(self, work: Coroutine[None, None, None]) -> None:
        """Have something done that nobody waits for, but for `close`."""
        self._chores.start(work)

    async def idle(self) -> None:
        """Return when all is done that nobody waited for when this was called."""
        await asyncio.gather(*self._chores, return_exceptions=True)

    async def close(self) -> None:
        """Open nothing any more, and wait for what is being closed."""
        await self.stop_opening()
        await self.idle()


async def _close(appender: AppendPath | None) -> None:
    if appender is not None:
        await appender.close()
