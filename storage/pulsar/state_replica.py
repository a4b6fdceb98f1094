"""What a state's topic says: read from its beginning, and on for as long as it is open.

The topic is read compacted. Whatever compaction left out was replaced later on, so at
the end of the topic the facts are right, wherever a reader was when compaction ran.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.pulsar.backoff import delays
from ropeway.storage.pulsar.errors import (
    EntryError,
    PulsarError,
    PulsarUnavailableError,
)
from ropeway.storage.pulsar.state_entry import (
    LEADER,
    Changes,
    Leader,
    decode,
    decode_leader,
)

if TYPE_CHECKING:
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.reader import Reader
    from ropeway.storage.state import Changed

AHEAD = 50_000
"""Messages that Pulsar may send before they are looked at; some MB."""
LOOK_AGAIN_S = 1.0
"""Compaction may take away the entry that a reader is waiting for."""

Claim = Callable[["Entry"], Changes | None]
"""Asked with each entry for what it says, if it is one of our own; else None."""

_log = structlog.get_logger()


class Facts:
    """The values of all keys, as of one place in the topic."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.marks: dict[str, int] = {}
        """Keys that were deleted, and when, in milliseconds since 1970."""
        self.leader: Leader | None = None
        self.records = 0
        """How many changes were read since the beginning or the last compaction."""

    def apply(self, changes: Changes) -> None:
        """Take changes over.

        Raises:
            EntryError: the record of the leader is damaged; the rest is taken.
        """
        values, marks = self.values, self.marks
        self.records += len(changes)
        for key, change in changes.items():
            if key != LEADER and type(change) is str:
                values[key] = change
            else:
                values.pop(key, None)
            if type(change) is int:
                marks[key] = change
            elif marks:
                marks.pop(key, None)
        leader = changes.get(LEADER)
        if type(leader) is str:
            self.leader = decode_leader(leader)


class Replica:
    """The facts of a topic.

    Args:
        client: the cluster's.
        topic: its full name.
        claim: asked with each entry whether it is our own.
        changed: called with each key that another node changed, and its value; with
            `LEADER` when there may be another one.
    """

    def __init__(
        self, client: PulsarClient, topic: str, claim: Claim, changed: Changed
    ) -> None:
        self.facts = Facts()
        """What the topic says, once it was read to its end."""
        self.newest_sequence_id = -1
        """The highest of all entries that were read."""
        self._fresh: Facts | None = None
        """What it says as far as we are, while it is read from its beginning."""
        self._client = client
        self._topic = topic
        self._claim = claim
        self._changed = changed
        self._reader: Reader | None = None
        self._taken = 0
        """Entries that were taken and not told to the reader."""
        self._at: Position | None = None
        self._moved = asyncio.Event()
        self._settled = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def leader(self) -> Leader | None:
        """Who leads, as of the last entry that was read."""
        return (self._fresh or self.facts).leader

    async def open(self) -> None:
        """Read all that is there.

        Raises:
            PulsarError: that is not possible now.
        """
        try:
            await self._load()
        except BaseException:
            await self.close()
            raise

    @property
    def is_settled(self) -> bool:
        """Whether the topic was read to its end, and is followed from there."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Return when it is.

        Raises:
            PulsarUnavailableError: it is not in time.
        """
        try:
            async with asyncio.timeout(self._client.request_timeout_s):
                await self._settled.wait()
        except TimeoutError:
            raise PulsarUnavailableError(
                f"not read to its end in {self._client.request_timeout_s} s"
            ) from None

    async def close(self) -> None:
        """Read no more."""
        self._closed = True
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait([self._reloading])
        if self._reader is not None:
            await self._reader.close()

    async def _load(self) -> None:
        """Read from the beginning to the end; until then, the old facts hold."""
        self._settled.clear()
        self._fresh = Facts()
        self._at, self._taken = None, 0
        self._reader = await self._client.reader(
            self._topic,
            "earliest",
            compacted=True,
            received=self._take,
            lost=self._lost,
            permits=AHEAD,
        )
        await self._reach_end(self._reader)
        old, self.facts, self._fresh = self.facts.values, self._fresh, None
        self._settled.set()
        new = self.facts.values
        self._changed(LEADER, None)
        for key in [
            key for key in old.keys() | new.keys() if old.get(key) != new.get(key)
        ]:
            self._changed(key, new.get(key))

    async def _reach_end(self, reader: Reader) -> None:
        last = await reader.last_position()
        while last is not None and not (self._at is not None and self._at >= last):
            self._moved.clear()
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await self._moved.wait()
            except TimeoutError:
                last = await reader.last_position()

    def _take(self, entry: Entry) -> None:
        self._at = entry.position
        self.newest_sequence_id = max(self.newest_sequence_id, entry.sequence_id)
        self._moved.set()
        self._taken += 1
        if self._reader is not None:
            self._reader.more(self._taken)
            self._taken = 0
        try:
            changes = self._claim(entry)
            if changes is not None:
                self.facts.apply(changes)
                if self._fresh is not None:
                    self._fresh.apply(changes)
                return
            changes = decode(entry)
            if self._fresh is not None:
                self._fresh.apply(changes)
            else:
                self._follow(changes)
        except EntryError as error:
            _log.warning(
                "entry of the state left out",
                topic=self._topic,
                position=str(entry.position),
                reason=str(error),
            )

    def _follow(self, changes: Changes) -> None:
        values = self.facts.values
        told = [
            (key, change if type(change) is str else None)
            for key, change in changes.items()
        ]
        told = [(key, value) for key, value in told if values.get(key) != value]
        try:
            self.facts.apply(changes)
        finally:
            for key, value in told:
                self._changed(key, value)

    def _lost(self, error: PulsarError) -> None:
        _log.warning("state is not followed", topic=self._topic, reason=str(error))
        if self._settled.is_set() and not self._closed:
            self._settled.clear()
            self._reloading = asyncio.ensure_future(self._reload())

    async def _reload(self) -> None:
        for delay_s in delays():
            await asyncio.sleep(delay_s)
            if self._reader is not None:
                await self._reader.close()
                self._reader = None
            try:
                await self._load()
            except PulsarError as error:
                _log.warning(
                    "state cannot be read", topic=self._topic, reason=str(error)
                )
            else:
                _log.info("state is followed again", topic=self._topic)
                return
