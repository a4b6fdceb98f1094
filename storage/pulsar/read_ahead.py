"""Reading from Pulsar: readers that run ahead of the consumers that follow them.

A consumer that goes on where it was gets the same reader again, whose next packs are
there already. Readers are few: those that nobody has used for longest are closed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ropeway.common.tasks import Tasks
from ropeway.storage.api import LogDamagedError, LogError, LogUnavailableError
from ropeway.storage.pulsar.compression import LARGEST_BYTES
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import damaged, unavailable, unpack
from ropeway.storage.pulsar.errors import PulsarError
from ropeway.storage.pulsar.pack import peel
from ropeway.storage.pulsar.terms import next_offset_of, term_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from ropeway.storage.api import Chunk
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry
    from ropeway.storage.pulsar.pack import Pack
    from ropeway.storage.pulsar.pack_search import Finder
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
    from ropeway.storage.pulsar.read_result import Gathering
    from ropeway.storage.pulsar.reader import Reader

LOOK_AGAIN_S = 2.0
"""When nothing has come for so long, retention may have deleted what is waited for."""

GIVE_UP_S = 8.0
"""And after so long the storage does not answer."""

FIRST_PERMITS = 2
MAX_PERMITS = 256


class _AgainError(LogError):
    """A session cannot go on; with what is known now, a new one can."""


class Session:
    """One reader of a partition, and the packs that it has brought.

    Args:
        partition: Whose.
        offset: Of the first record that is wanted.
        ahead_bytes: How much to ask for before it is wanted.
    """

    def __init__(
        self, partition: PulsarPartition, offset: int, ahead_bytes: int
    ) -> None:
        self.partition = partition
        self.used_at = 0.0
        self.reader: Reader | None = None
        self.is_busy = True
        self._ahead_bytes = ahead_bytes
        self._packs: deque[Pack] = deque()
        self._bytes = 0
        self.largest = 1
        """How long a pack may be, as far as is known."""
        self._granted = FIRST_PERMITS
        """Packs that were asked for and have not come."""
        self._reached = offset
        """Where a consumer may go on when all packs here are used up."""
        self._next: int | None = None
        """Where the next pack that comes has to begin; None before the first."""
        self._term = -1
        """Of the last entry that came; the next one's is no older."""
        self._error: LogError | None = None
        self._came = asyncio.Event()

    def covers(self, offset: int) -> bool:
        """Whether it can go on at an offset."""
        low = self._packs[0].base_offset if self._packs else self._reached
        high = self._reached if self._error is None else self._reached - 1
        return low <= offset <= high

    def has(self, offset: int) -> bool:
        """Whether the pack with an offset is there."""
        return bool(self._packs) and offset < self._packs[-1].end

    async def pack_at(self, offset: int, timeout_s: float) -> Pack:
        """The pack that has an offset, or the first one behind it.

        Raises:
            TimeoutError: It did not come.
            LogError: It cannot be read.
        """
        packs = self._packs
        while packs and packs[0].end <= offset:
            self._bytes -= packs.popleft().length
        self._ask()
        while not packs:
            if self._error is not None:
                raise self._error
            self._came.clear()
            async with asyncio.timeout(timeout_s):
                await self._came.wait()
            while packs and packs[0].end <= offset:
                self._bytes -= packs.popleft().length
            self._ask()
        return packs[0]

    def _ask(self) -> None:
        """Have as much on its way as there is room for."""
        room = self._ahead_bytes - self._bytes
        wanted = min(max(room // self.largest, 0), MAX_PERMITS)
        if not self._packs:
            wanted = max(wanted, 1)
        # In larger steps than one, for each is a frame.
        if wanted - self._granted > wanted // 2 and self.reader is not None:
            self.reader.more(wanted - self._granted)
            self._granted = wanted

    def received(self, entry: Entry) -> None:
        """A pack or a marker has come."""
        self._granted = max(self._granted - 1, 0)
        if self._error is not None:
            return
        try:
            pack = unpack(self.partition, entry)
            self._check(entry, pack)
        except LogError as error:
            self._fail(error)
            return
        if not pack.count:
            self._look_for_gap(entry, pack)
            self._ask()
            return
        self.partition.positions.add(pack.base_offset, pack.times[0], *entry.position)
        self._packs.append(pack)
        self._bytes += pack.length
        self.largest = max(self.largest, pack.length)
        self._next = pack.end
        self._reached = max(self._reached, pack.end)
        self._came.set()
        if self._bytes > self._ahead_bytes + LARGEST_BYTES:
            # Small entries came first, and so very many were asked for.
            self._fail(_AgainError(f"{self._bytes} bytes ahead"))

    def _check(self, entry: Entry, pack: Pack) -> None:
        """See that an entry may follow the one before."""
        shared = self.partition.converter is not None
        term = 0 if shared else term_of(entry.sequence_id)
        if term < self._term:
            raise damaged(
                self.partition,
                entry.position,
                f"of term {term}; allowed behind the one before: {self._term} or more",
            )
        self._term = term
        if pack.count and self._next is not None and pack.base_offset < self._next:
            raise damaged(
                self.partition,
                entry.position,
                f"a pack from offset {pack.base_offset} on; allowed: {self._next}",
            )

    def _look_for_gap(self, entry: Entry, marker: Pack) -> None:
        """Notice an owner that went on behind what its topic told."""
        begin, told = self._next, next_offset_of(entry.sequence_id) is not None
        if told and begin is not None and marker.end > begin:
            self.partition.gaps[begin] = self._next = marker.end
            if not self._packs:
                # Perhaps nothing comes behind it.
                self._fail(_AgainError(f"nothing from offset {begin} on"))

    def lost(self, error: PulsarError) -> None:
        """The reader is gone."""
        self._fail(unavailable(self.partition, error))

    def close(self) -> Coroutine[Any, Any, None]:
        """End it for who waits here; what this returns closes the reader."""
        assert self.reader is not None
        self._fail(LogUnavailableError(f"{self.partition.full_name} was closed"))
        return self.reader.close()

    def _fail(self, error: LogError) -> None:
        self._error = error
        self._came.set()


class Readers:
    """All readers of a log.

    Args:
        client: Makes them.
        finder: Knows where they begin.
        settings: How many, and how far ahead.
        refresh: Finds the oldest record of a partition anew.
    """

    def __init__(
        self,
        client: PulsarClient,
        finder: Finder,
        settings: PulsarLogSettings,
        refresh: Callable[[PulsarPartition], Awaitable[None]],
    ) -> None:
        self._client = client
        self._finder = finder
        self._settings = settings
        self._refresh = refresh
        self._sessions: dict[PulsarPartition, list[Session]] = {}
        self._count = 0
        self._slots = asyncio.Semaphore(settings.readers)
        self._closing = Tasks()

    async def read(self, partition: PulsarPartition, gathering: Gathering) -> Chunk:
        """Gather one read's answer, as soon as there is something."""
        while True:
            with suppress(_AgainError):
                return await self._read(partition, gathering)

    async def _read(self, partition: PulsarPartition, gathering: Gathering) -> Chunk:
        async with self._slots:
            session = await self._session(partition, gathering.offset)
            try:
                while True:
                    gathering.offset = partition.past_gap(gathering.offset)
                    if gathering.offset >= partition.end_offset:
                        break
                    pack = await self._pack(session, gathering.offset)
                    if pack is None:
                        gathering.offset = partition.first_offset
                        break
                    gathering.offset = max(gathering.offset, pack.base_offset)
                    if not gathering.add(pack):
                        break
                    if gathering.found and not session.has(gathering.offset):
                        break
            except BaseException:
                self._drop(session)
                raise
            self._release(session)
        return gathering.chunk()

    async def pack_at(self, partition: PulsarPartition, offset: int) -> Pack | None:
        """The pack that has an offset below the end, or the first one behind it.

        None where all of them have been deleted meanwhile.
        """
        cached = partition.cached_pack(offset)
        if cached is not None:
            return peel(cached)
        while True:
            offset = partition.past_gap(offset)
            if offset >= partition.end_offset:
                return None
            with suppress(_AgainError):
                return await self._read_pack(partition, offset)

    async def _read_pack(self, partition: PulsarPartition, offset: int) -> Pack | None:
        async with self._slots:
            session = await self._session(partition, offset)
            try:
                pack = await self._pack(session, offset)
            except BaseException:
                self._drop(session)
                raise
            self._release(session)
        return pack

    async def _pack(self, session: Session, offset: int) -> Pack | None:
        """As `pack_at`; what is missing must have been deleted by retention."""
        partition = session.partition
        try:
            pack = await session.pack_at(offset, LOOK_AGAIN_S)
        except TimeoutError:
            await self._refresh(partition)
            if partition.first_offset >= partition.end_offset:
                return None
            try:
                pack = await session.pack_at(offset, GIVE_UP_S)
            except TimeoutError:
                raise LogUnavailableError(
                    f"{partition.full_name}: Pulsar has sent nothing from offset "
                    f"{offset} on for {GIVE_UP_S:.0f} s"
                ) from None
        # Native clients' transactions leave gaps, too.
        wanted = partition.past_gap(offset)
        if pack.base_offset > wanted and partition.converter is None:
            await self._refresh(partition)
            if not offset < partition.first_offset <= pack.base_offset:
                raise LogDamagedError(
                    f"{partition.full_name}: nothing from offset {offset} to "
                    f"{pack.base_offset - 1}; the oldest is {partition.first_offset}"
                )
        return pack

    async def _session(self, partition: PulsarPartition, offset: int) -> Session:
        for session in self._sessions.get(partition, ()):
            if not session.is_busy and session.covers(offset):
                session.is_busy = True
                return session
        spot = await self._finder.by_offset(partition, offset)
        if self._count >= self._settings.readers:
            self._drop_oldest([one for each in self._sessions.values() for one in each])
        session = Session(partition, offset, self._settings.read_ahead_bytes)
        # Before it is there, or those that come at once would not count each other.
        self._count += 1
        others = self._sessions.get(partition, ())
        session.largest = max((one.largest for one in others), default=1)
        try:
            session.reader = await self._client.reader(
                partition.full_name,
                Position(spot.ledger, spot.entry),
                received=session.received,
                lost=session.lost,
                permits=FIRST_PERMITS,
                compacted=partition.compacted,
            )
        except BaseException as error:
            self._count -= 1
            if isinstance(error, PulsarError):
                raise unavailable(partition, error) from error
            raise
        self._sessions.setdefault(partition, []).append(session)
        return session

    def _release(self, session: Session) -> None:
        session.is_busy = False
        session.used_at = time.monotonic()
        sessions = self._sessions.get(session.partition, [])
        if len(sessions) > self._settings.readers_per_partition:
            self._drop_oldest(sessions)

    def _drop_oldest(self, sessions: list[Session]) -> None:
        idle = [one for one in sessions if not one.is_busy]
        if idle:
            self._drop(min(idle, key=lambda one: one.used_at))

    def _drop(self, session: Session) -> None:
        sessions = self._sessions.get(session.partition, [])
        if session not in sessions:
            return
        sessions.remove(session)
        if not sessions:
            del self._sessions[session.partition]
        self._count -= 1
        self._closing.start(session.close())

    def close_idle(self, now: float) -> None:
        """Close the readers that nobody has used for long."""
        before = now - self._settings.reader_idle_s
        for sessions in list(self._sessions.values()):
            for session in list(sessions):
                if not session.is_busy and session.used_at < before:
                    self._drop(session)

    def forget(self, partition: PulsarPartition) -> None:
        """Close the readers of a partition."""
        for session in list(self._sessions.get(partition, ())):
            self._drop(session)

    async def close(self) -> None:
        """Close all readers."""
        for partition in list(self._sessions):
            self.forget(partition)
        if self._closing:
            await asyncio.wait(self._closing)
