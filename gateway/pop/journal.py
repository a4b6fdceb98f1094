"""The ledger's journal: changes go to the log, and from there to RocksDB.

The log is the truth: a system topic of the broker has a record for what changes. What
the store has is those changes, applied in the order of the log, and where to read on. A
change counts once it is in the log, and is in the store soon after; `_ahead` has it in
between.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.common.tasks import Tasks
from ropeway.gateway.node import names, record_builder
from ropeway.gateway.node.derived_store import checkpoint_after, resume, status_of
from ropeway.gateway.node.fold import chunks_from, records_in
from ropeway.gateway.node.index_thread import IndexLostError, IndexThread
from ropeway.gateway.pop import store
from ropeway.gateway.pop.store import Store
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, LogUnavailableError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.derived_store import Checkpoint
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.pop.store import Change, Place
    from ropeway.gateway.wire.commands.nodes import DerivedStoreStatus
    from ropeway.storage.api import Partition, RecordParts

log = structlog.get_logger(__name__)

_BODY_BYTES = 256 * 1024
_CATCH_UP_S = 10.0
"""How long receipts wait for a store that is being made."""


class Journal:
    """Changes, in the log and in the store.

    Args:
        broker: Its topics have the system topic, or will with the first batch.
        directory: The store's.
        applied: Called with changes that have come to the store.
    """

    def __init__(
        self,
        broker: BrokerContext,
        directory: Path,
        applied: Callable[[Sequence[Change]], None],
    ) -> None:
        self._topics = broker.topics
        self._log = broker.log
        self._host = broker.host
        self._clock = broker.clock
        self._applied = applied
        self._ahead: dict[bytes, bytes] = {}
        self._asked: defaultdict[bytes, list[asyncio.Future[bytes]]]
        self._asked = defaultdict(list)
        self._waiting: list[Change] = []
        self._written: asyncio.Future[None] | None = None
        self._read_to = 0
        self._caught_up = asyncio.Event()
        self._tasks = Tasks()
        self._opening: asyncio.Task[None] | None = None
        self._store = IndexThread[Store]("pops", Store, directory)
        self.run = self._store.run
        self.lost = self._store.lost
        """Set when the store cannot be used, or does not follow the log."""

    def is_open(self) -> bool:
        """Whether the store has what the log says."""
        return self._caught_up.is_set()

    def is_writing(self) -> bool:
        """Whether changes are on their way to the log or the store."""
        return bool(self._ahead)

    def status(self) -> DerivedStoreStatus:
        """How the store stands."""
        topic = self._topics.get(names.POP_TOPIC)
        end = topic.partitions[0].end if topic is not None else 0
        return status_of(self._store, max(end - self._read_to, 0))

    # A duty's two ends.

    async def open(
        self, counted: Callable[[Counter[Place]], None], *, anew: bool
    ) -> None:
        """Have in the store what the log says.

        Args:
            counted: Called with how many messages are out, by queue, when that is so.
            anew: Forget what the store has.

        Raises:
            LogError: The log cannot be read now.
            IndexLostError: The directory cannot be used.
        """
        self._caught_up.clear()
        await self._store.open(anew=anew)
        topic = self._topics.get(names.POP_TOPIC)
        if topic is None:
            await self._store.run(Store.clear)
            self._caught_up.set()
            counted(Counter())
            return
        await self._log.ready(topic.name)
        partition = topic.partitions[0]
        await self._begin(partition)
        while not self._caught_up.is_set():
            await self._read_on(partition)
            counts = await self._store.run(Store.counts)
            if self._read_to == partition.end:
                self._caught_up.set()
                self._store.rebuild.end()
                counted(counts)

    async def close(self) -> None:
        """Release the store. What it is told from now on is in the log alone."""
        self._caught_up.clear()
        if self._opening is not None:
            self._opening.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.close()
        self._ahead.clear()
        self._read_to = 0

    async def _begin(self, partition: Partition) -> None:
        known = await resume(self._store, partition)
        # No time says where: what is out may be older than all that a clock allows,
        # where it was set, or where nobody was there to store it again.
        self._read_to = known if known is not None else partition.first

    async def _read_on(self, partition: Partition) -> None:
        async for chunk in chunks_from(partition, self._read_to):
            changes: list[Change] = []
            last: memoryview | None = None
            for one in records_in(chunk):
                changes += store.load(record_builder.read_note(one).body)
                last = one
            if last is not None:
                checkpoint = checkpoint_after(last, chunk.next_offset)
                await self._store.run(Store.apply, changes, checkpoint)
            self._read_to = chunk.next_offset

    # Writing.

    async def put(self, changes: Iterable[Change]) -> None:
        """Note changes in the log; what comes in one turn of the loop goes together.

        Raises:
            LogError: They are not in the log, or nobody knows.
        """
        if self._written is None:
            loop = asyncio.get_running_loop()
            self._written = loop.create_future()
            if self._topics.get(names.POP_TOPIC) is None:
                self._tasks.start(self._make_topic())
            else:
                loop.call_soon(self._flush)
        written = self._written
        for key, value in changes:
            self._waiting.append((key, value))
            self._ahead[key] = value
        await asyncio.shield(written)

    async def _make_topic(self) -> None:
        try:
            await self._topics.ensure_derived(names.POP_TOPIC, 1)
            await self._log.ready(names.POP_TOPIC)
        except (LogError, RouteError) as error:
            log.warning("the ledger of pops cannot be begun", reason=str(error))
        self._flush()

    def _flush(self) -> None:
        changes, self._waiting = self._waiting, []
        written, self._written = self._written, None
        assert written is not None, "it is made with the first change"
        topic = self._topics.get(names.POP_TOPIC)
        try:
            if topic is None:
                raise LogUnavailableError("the broker's ledger of pops is not there")
            partition = topic.partitions[0]
            records = self._records(topic, partition.next_offset, changes)
            done = partial(self._stored, changes, records, written)
            partition.append(records, self._clock(), done)
        except LogError as error:
            self._failed(changes, written, error)
            if isinstance(error, NotReadyError) and self._opening is None:
                # Another node may have had it, or it was closed: nobody else opens it.
                self._opening = asyncio.ensure_future(self._open_again())

    async def _open_again(self) -> None:
        try:
            await self._log.ready(names.POP_TOPIC)
        except LogError as error:
            log.warning("the ledger of pops cannot be opened", reason=str(error))
        finally:
            self._opening = None

    def _records(
        self, topic: ServedTopic, offset: int, changes: Sequence[Change]
    ) -> list[RecordParts]:
        now_ms, host = self._clock(), self._host()
        records: list[RecordParts] = []
        body: list[Change] = []
        size = 0
        for change in (*changes, None):
            if change is None or size > _BODY_BYTES:
                at = offset + len(records)
                dumped = store.dump(body)
                records.append(
                    record_builder.make_note(topic, at, now_ms, host, dumped)
                )
                body, size = [], 0
            if change is not None:
                body.append(change)
                size += len(change[0]) + len(change[1])
        return records

    def _stored(
        self,
        changes: list[Change],
        records: list[RecordParts],
        written: asyncio.Future[None],
        offset: int,
        error: LogError | None,
    ) -> None:
        if error is not None:
            self._failed(changes, written, error)
            return
        if not written.done():
            written.set_result(None)
        end = offset + len(records)
        if not self._caught_up.is_set():
            # It is read before anybody asks.
            self._forget_ahead(changes)
            return
        if offset != self._read_to:
            # Something before it has an outcome that nobody knew.
            self.lost.set()
            return
        self._read_to = end
        self._tasks.start(self._apply(changes, checkpoint_after(records[-1][0], end)))

    async def _apply(self, changes: list[Change], checkpoint: Checkpoint) -> None:
        try:
            await self._store.run(Store.apply, changes, checkpoint)
        except IndexLostError as error:
            log.warning("index of pops is made again", reason=str(error))
            return
        self._forget_ahead(changes)
        self._applied(changes)

    def _forget_ahead(self, changes: Sequence[Change]) -> None:
        for key, value in changes:
            if self._ahead.get(key) is value:
                del self._ahead[key]

    def _failed(
        self, changes: list[Change], written: asyncio.Future[None], error: LogError
    ) -> None:
        self._forget_ahead(changes)
        if not written.done():
            written.set_exception(error)
            # Nobody may be left who waits for it.
            written.exception()

    # Reading.

    async def get(self, key: bytes) -> bytes:
        """The value of a key, or an empty one; nothing comes between it and `put`.

        Raises:
            LogUnavailableError: The store is not there now.
        """
        try:
            await asyncio.wait_for(self._caught_up.wait(), _CATCH_UP_S)
        except TimeoutError as error:
            raise LogUnavailableError("the ledger of pops is being read") from error
        value = self._ahead.get(key)
        if value is None:
            found = await self._ask(key)
            # The newest counts, and nothing comes between this look and `put`.
            value = self._ahead.get(key, found)
        return value

    def _ask(self, key: bytes) -> asyncio.Future[bytes]:
        """Have the store look for a key, together with others of this turn."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._look_up)
        answer: asyncio.Future[bytes] = loop.create_future()
        self._asked[key].append(answer)
        return answer

    def _look_up(self) -> None:
        self._tasks.start(self._answer())

    async def _answer(self) -> None:
        asked, self._asked = self._asked, defaultdict(list)
        try:
            values = await self._store.run(Store.get, list(asked))
        except IndexLostError as error:
            lost = LogUnavailableError(str(error))
            for answers in asked.values():
                for answer in answers:
                    if not answer.done():
                        answer.set_exception(lost)
            return
        for answers, value in zip(asked.values(), values, strict=True):
            for answer in answers:
                if not answer.done():
                    answer.set_result(value)

    def newest(self, key: bytes, value: bytes) -> bytes:
        """The value of a key, of which the store has said one."""
        return self._ahead.get(key, value)
