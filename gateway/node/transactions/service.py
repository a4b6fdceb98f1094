"""Transactions as processors see them: begun, found, and ended.

Laws:

* A transaction is open if its half message, or a copy of it, is in the half topic at
  or above the floor, and no record in the topic of ends names it. Nothing else counts.
* The floor is a consumer offset. It moves only over half messages whose end, or whose
  newer copy, is in the log; so a stale floor means more to read at a start, no more.
* What ends a transaction is in the log before that it has ended; see `Ending`.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names
from ropeway.gateway.node.backoff import Backoff, Rest
from ropeway.gateway.node.fold import first_above
from ropeway.gateway.node.record_builder import appended
from ropeway.gateway.node.transactions import end_records, records
from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.node.transactions.checks import Checks
from ropeway.gateway.node.transactions.end_transaction import Ending, TransactionError
from ropeway.gateway.node.transactions.open_transactions import OpenTransactions
from ropeway.gateway.node.transactions.recent import Recent
from ropeway.gateway.node.transactions.writer import EndsWriter
from ropeway.storage.api import LogError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ropeway.gateway.config import TransactionsConfig
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.delays import Delays
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.transactions.checks import Producers
    from ropeway.gateway.node.transactions.end_records import End
    from ropeway.gateway.node.transactions.half_message import Half
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import Partition

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 1.0
_KNOWN_S = 10.0
"""How long the end of a transaction waits until it is known which are open."""


class Transactions:
    """The transactions of a broker; a duty of the node that leads it.

    Args:
        broker: Whose they are; its offsets keep the floor.
        config: When producers are asked, and how often.
        delays: Say where committed messages go that are to wait.
        producers: Are asked how a transaction ended.
        pause: Waits for so many seconds; left out: as long as none is open, for longer.
    """

    def __init__(
        self,
        broker: BrokerContext,
        config: TransactionsConfig,
        delays: Delays,
        producers: Producers,
        pause: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._config = config
        self._broker = broker
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._delays = delays
        self._producers = producers
        self._now_ms = broker.clock
        self._rest = Rest(self._next_s)
        self._pause = pause or self._rest.pause
        self._backoff = Backoff("transactions wait", broker.log, pause or asyncio.sleep)
        self._task: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        self._begin(OpenTransactions())

    def _begin(self, book: OpenTransactions) -> None:
        self._book = book
        book.wake = self._rest.wake
        self._recent = Recent()
        self._writer = EndsWriter(self._broker, book)
        ending = Ending(book, self._writer, self._topics, self._delays, self._now_ms)
        self.end = ending.end
        """See `Ending.end`."""
        self._checks = Checks(
            self._broker, self._config, book, self._writer, self._producers
        )

    def __len__(self) -> int:
        """How many transactions are open."""
        return len(self._book)

    @property
    def is_busy(self) -> bool:
        """Whether one is open, or may be: half messages are on their way to the log."""
        half_topic = self._topics.get(names.HALF_TOPIC)
        if half_topic is None:
            return False
        (partition,) = half_topic.partitions[:1]
        on_the_way = partition.next_offset > partition.end
        return bool(self._book) or on_the_way or not self._known.is_set()

    # The duty.

    async def take_over(self) -> None:
        """Find out which transactions are open, beside other work."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def give_up(self) -> None:
        """Write down what has ended, and forget all of it."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        await self._writer.close()
        try:
            if self._known.is_set():
                self._keep_floor()
        except LogError as error:
            log.warning("a start reads more half messages", reason=str(error))
        self._known.clear()
        self._begin(OpenTransactions())

    async def _run(self) -> None:
        await self._backoff.insist(self._rebuild)
        self._known.set()
        while True:
            await self._pause(_LOOK_EVERY_S)
            await self._backoff.insist(self._look)

    def _next_s(self) -> float:
        """In how many seconds something is due: 0 while any is open."""
        return 0.0 if self._book else math.inf

    async def _look(self) -> None:
        await self._checks.look()
        self._keep_floor()

    def _keep_floor(self) -> None:
        if self._topics.get(names.HALF_TOPIC) is None:
            return
        kept = self._offsets.get(names.TRANSACTIONS_GROUP, names.HALF_TOPIC, 0)
        floor = self._book.floor
        if floor != kept:
            self._offsets.commit(names.TRANSACTIONS_GROUP, names.HALF_TOPIC, 0, floor)

    async def _rebuild(self) -> None:
        """Read which transactions are open."""
        half_topic = self._topics.get(names.HALF_TOPIC)
        ends_topic = self._topics.get(names.HALF_ENDS_TOPIC)
        if half_topic is None or ends_topic is None:
            return
        began_s = time.monotonic()
        partition = half_topic.partitions[0]
        floor = self._offsets.get(names.TRANSACTIONS_GROUP, names.HALF_TOPIC, 0)
        end = partition.end
        start = first_above(partition, floor)
        # What is stored from now on comes by `opened`, to the same book.
        self._begin(OpenTransactions(start))
        # Producers come back one by one, too.
        earliest_ms = self._now_ms() + self._config.check_interval_ms
        async for half in half_messages.read_range(partition, start, end):
            look_ms = max(self._checks.look_ms(half), earliest_ms)
            self._book.add(half.offset, half.origin, look_ms)
        async for ended in end_records.read_from(ends_topic.partitions[0], start):
            for origin in ended.origins:
                self._book.finish(origin, ended.how)
        log.info(
            "transactions known",
            open=len(self._book),
            read=end - start,
            took_ms=round((time.monotonic() - began_s) * 1000),
        )

    # What requests do.

    async def make_topics(self) -> ServedTopic:
        """Make the topics of transactions where they are missing; the half topic.

        Raises:
            LogError: That is not possible now.
            RouteError: Likewise.
        """
        await self._topics.ensure_derived(names.HALF_ENDS_TOPIC, 1)
        return await self._topics.ensure_derived(names.HALF_TOPIC, 1)

    def opened(self, half: Half) -> None:
        """A half message was stored."""
        self._book.add(half.offset, half.origin, self._checks.look_ms(half))
        self._recent.keep(half)

    def ended(self, origin: int) -> End | None:
        """How a transaction ended; None where it is open, or that was long ago."""
        return self._book.ended(origin)

    def find_now(self, offset: int) -> Half | None:
        """The half message at an offset, or its newest copy; None: use `find`.

        Raises:
            TransactionError: There is none.
            LogError: It cannot be read now.
        """
        if not self._known.is_set():
            return None
        if recent := self._recent.take(offset):
            return recent
        partition, offset = self._place(offset)
        chunk = partition.read_now(offset, 1, 1)
        return None if chunk is None else self._read(offset, chunk.data)

    async def known(self) -> None:
        """Wait until it is known which transactions are open.

        Raises:
            NotReadyError: That takes too long.
        """
        try:
            await asyncio.wait_for(self._known.wait(), _KNOWN_S)
        except TimeoutError as error:
            raise NotReadyError(names.HALF_TOPIC) from error

    async def find(self, offset: int) -> Half:
        """The half message at an offset, or its newest copy.

        Raises:
            TransactionError: There is none.
            LogError: It cannot be read now.
        """
        await self.known()
        partition, offset = self._place(offset)
        chunk = await partition.read(offset, 1, 1)
        return self._read(offset, chunk.data)

    async def page(
        self, after: int, most: int, looks: int, wanted: Callable[[Half], bool]
    ) -> tuple[list[Half], int | None]:
        """The half messages that are open and wanted, as they were stored.

        Args:
            after: The offset to begin at.
            most: How many at most.
            looks: How many half messages, ended ones too, are looked at.
            wanted: Says which are.

        Returns:
            What was found, and where to go on; None where there are no more.

        Raises:
            NotReadyError: It is not known yet which are open.
            LogError: They cannot be read now.
        """
        await self.known()
        topic = self._topics.get(names.HALF_TOPIC)
        if topic is None or not self._book:
            return [], None
        partition = topic.partitions[0]
        start = max(self._book.floor, partition.first, after)
        end = min(partition.end, start + looks)
        found: list[Half] = []
        async for half in half_messages.read_range(partition, start, end):
            if len(found) == most:
                return found, half.offset
            if (
                half.offset in self._book
                and self._book.is_undecided(half.origin)
                and wanted(half)
            ):
                found.append(half)
        return found, end if end < partition.end else None

    def _place(self, offset: int) -> tuple[Partition, int]:
        topic = self._topics.get(names.HALF_TOPIC)
        if topic is None:
            raise not_found(offset)
        current = self._book.current(offset)
        return topic.partitions[0], offset if current is None else current

    def _read(self, offset: int, data: Sequence[Buffer]) -> Half:
        if not data:
            raise not_found(offset)
        half = half_messages.read(data[0])
        if half.offset != offset:
            raise not_found(offset)
        return half

    async def resume(self, half: Half) -> None:
        """Begin anew with a half message that was given up.

        Raises:
            LogError: It cannot be stored.
            RouteError: The half topic cannot be made.
        """
        topic = await self.make_topics()
        store_ms = self._now_ms()
        record = records.begun_again(half, topic, store_ms)
        await appended(topic.partitions[0], [record], store_ms)
        self.opened(half_messages.read(record.data))


def not_found(offset: int) -> TransactionError:
    """What is answered where there is no half message, or none for the client."""
    return TransactionError(
        f"Find prepared transaction message failed: there is none at offset {offset}"
    )
