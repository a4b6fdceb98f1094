"""A reader: gives the entries of a topic in order, over any number of connections.

Law: where it goes on after a lost connection is known here alone, and is right after
the last entry that it took. So no entry is given twice, and none is left out but those
that the topic has dropped.
"""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable
from typing import Literal

from ropeway.storage.pulsar.backoff import Reopener
from ropeway.storage.pulsar.commands import LastMessageId, MessageId
from ropeway.storage.pulsar.connection import TopicLookup
from ropeway.storage.pulsar.entry import Entry, Position
from ropeway.storage.pulsar.errors import (
    RETRYABLE,
    PulsarError,
    PulsarUnavailableError,
    WireError,
)
from ropeway.storage.pulsar.subscription import Seat

LARGEST = (1 << 63) - 1
ENDS = {
    "earliest": MessageId(-1, -1),
    "latest": MessageId(LARGEST, LARGEST),
}
"""As `MessageId.earliest` and `MessageId.latest` of Pulsar's own clients."""

Start = Position | Literal["earliest", "latest"] | int


class Reader:
    """Reads one topic; made by `PulsarClient.reader`."""

    def __init__(
        self,
        client: TopicLookup,
        topic: str,
        compacted: bool,
        received: Callable[[Entry], None],
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._client = client
        self._topic = topic
        self._compacted = compacted
        self._received = received
        self._lost = lost
        self._wanted = 0
        """How many entries may still be given."""
        self._start: Start = "earliest"
        self._after: Position | None = None
        """Only entries behind it are given; None: all that `_start` brings."""
        self._acked: Position | None = None
        self._seat: Seat | None = None
        self._seated = asyncio.Event()
        """Set while there is a seat, and when there will be none again."""
        self._error: PulsarError | None = None
        self._waiting: deque[Entry] = deque()
        """Entries that were taken, of which the first is being inflated."""
        self._inflating: asyncio.Task[None] | None = None
        self._reopener = Reopener(self._open_once, self._lose)

    async def open(self, start: Start, *, inclusive: bool, permits: int) -> None:
        """Open for the first time; `PulsarClient.reader` calls it."""
        self._wanted = permits
        await self._begin(start, inclusive=inclusive)

    def more(self, entries: int) -> None:
        """Let so many more entries come."""
        self._wanted += entries
        self._refill()

    async def last_position(self) -> Position | None:
        """Where the last entry of the topic is stored; None where it has none.

        Raises:
            PulsarError: the reader is lost or closed, or no broker answers in time.
        """
        seat = await self._any_seat()
        answer = await seat.last(self._client.request_timeout_s)
        return _position(answer.message_id)

    async def seek(self, to: Start, *, inclusive: bool = True) -> None:
        """Go on elsewhere; from the call on no entry comes but from there.

        Raises:
            PulsarError: the reader is lost or closed, or no broker answers in time.
        """
        if self._error is not None:
            raise self._error
        self._waiting.clear()
        await self._reopener.stop()
        await self._unseat()
        self._waiting.clear()
        await self._begin(to, inclusive=inclusive)

    async def close(self) -> None:
        """Give no more entries."""
        if self._error is None:
            self._error = PulsarUnavailableError(f"{self._topic}: the reader is closed")
        self._waiting.clear()
        await self._reopener.stop()
        await self._unseat()
        self._waiting.clear()
        self._seated.set()
        self._client.forget(self)

    async def _begin(self, start: Start, *, inclusive: bool) -> None:
        self._start = start
        self._after = self._acked = None
        if isinstance(start, Position):
            before = Position(start.ledger, start.entry - 1)
            self._after = before if inclusive else start
        await self._reopener.first(self._client.request_timeout_s)

    async def _open_once(self) -> None:
        timeout_s = self._client.request_timeout_s
        connection = await self._client.broker_of(self._topic)

        def sit() -> Seat:
            return Seat(connection, name, self._take, self._left)

        # A name of its own each time: no old session of ours is in the way.
        name = f"reader-{uuid.uuid4().hex}"
        seat = sit()
        try:
            first, by_time = self._first(), None
            if self._after is None and isinstance(self._start, int):
                by_time = self._start
            await seat.subscribe(
                self._topic, first, compacted=self._compacted, timeout_s=timeout_s
            )
            if by_time is not None:
                await seat.seek(by_time, timeout_s)
                seat = sit()
                await seat.subscribe(
                    self._topic, first, compacted=self._compacted, timeout_s=timeout_s
                )
            elif self._after is None and self._start == "latest":
                self._pin(await seat.last(timeout_s))
        except BaseException:
            seat.abandon()
            raise
        if seat.is_closed:
            raise PulsarUnavailableError(f"{self._topic}: closed while it was opened")
        self._seat = seat
        self._seated.set()
        self._refill()

    def _first(self) -> MessageId:
        """The first entry to ask for."""
        if self._after is not None:
            return MessageId(self._after.ledger, self._after.entry + 1)
        if isinstance(self._start, str):
            return ENDS[self._start]
        return ENDS["earliest"]

    def _pin(self, last: LastMessageId) -> None:
        """Fix what "latest" was, so that the next connection goes on from there."""
        mark = last.mark_delete
        self._start, self._after = "earliest", _position(mark) if mark else None

    def _take(self, seat: Seat, entry: Entry) -> None:
        if seat is not self._seat:
            return
        if self._after is not None and entry.position <= self._after:
            self._refill()
            return
        self._after = entry.position
        self._wanted -= 1
        self._refill()
        if not self._waiting and not entry.takes_long:
            self._received(entry)
            return
        self._waiting.append(entry)
        if self._inflating is None:
            loop = asyncio.get_running_loop()
            self._inflating = loop.create_task(self._give_waiting())

    async def _give_waiting(self) -> None:
        """Give what waits in its order, each once it is inflated: one at a time."""
        waiting = self._waiting
        try:
            while waiting:
                entry = waiting[0]
                if entry.takes_long:
                    await asyncio.to_thread(entry.inflate)
                # Meanwhile they may be wanted no more, or from elsewhere.
                if waiting and waiting[0] is entry:
                    waiting.popleft()
                    self._received(entry)
        finally:
            self._inflating = None

    def _refill(self) -> None:
        """Let the broker have as many permits as entries are wanted.

        An entry costs as many permits as it has messages, at least one: so never more
        entries come than are wanted, and permits run out before the entries do.
        """
        seat = self._seat
        if seat is not None and self._wanted > 0 and 2 * seat.permits <= self._wanted:
            done = self._after if self._after != self._acked else None
            self._acked = self._after
            seat.grant(self._wanted - seat.permits, done)

    def _left(self, seat: Seat, error: PulsarError) -> None:
        if self._seat is not seat:
            return
        self._seat = None
        self._seated.clear()
        if isinstance(error, (*RETRYABLE, WireError)):
            self._reopener.again()
        else:
            self._lose(error)

    def _lose(self, error: PulsarError) -> None:
        if self._error is None:
            self._error = error
            self._waiting.clear()
            self._seated.set()
            self._lost(error)

    async def _any_seat(self) -> Seat:
        try:
            async with asyncio.timeout(self._client.request_timeout_s):
                await self._seated.wait()
        except TimeoutError:
            raise PulsarUnavailableError(
                f"{self._topic}: no broker in {self._client.request_timeout_s} s"
            ) from None
        if self._error is not None:
            raise self._error
        assert self._seat is not None
        return self._seat

    async def _unseat(self) -> None:
        seat, self._seat = self._seat, None
        self._seated.clear()
        if seat is not None:
            await seat.leave()


def _position(where: MessageId) -> Position | None:
    return Position(where.ledger, where.entry) if where.entry >= 0 else None
