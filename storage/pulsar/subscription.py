"""A consumer that is open on a connection: its subscription, permits and entries."""

import contextlib
from collections.abc import Callable

from ropeway.storage.pulsar.commands import (
    Ack,
    CloseConsumer,
    Delivery,
    Flow,
    GetLastMessageId,
    LastMessageId,
    MessageId,
    Seek,
    Subscribe,
    Success,
)
from ropeway.storage.pulsar.connection import Connection
from ropeway.storage.pulsar.entry import Entry, Position
from ropeway.storage.pulsar.errors import EntryError, PulsarError, WireError

CLOSE_TIMEOUT_S = 5
EXCLUSIVE = 0
"""`SubType` of PulsarApi.proto, 4.0.8."""
CUMULATIVE = 1
"""`AckType`: this entry and all before it."""


class Seat:
    """An exclusive consumer on a subscription that the broker does not store.

    Args:
        connection: to the broker of the topic.
        subscription: its name; nobody else's.
        take: called with each entry, in order.
        left: called once, when no more entries come here.
    """

    def __init__(
        self,
        connection: Connection,
        subscription: str,
        take: Callable[["Seat", Entry], None],
        left: Callable[["Seat", PulsarError], None],
    ) -> None:
        self.connection = connection
        self.subscription = subscription
        self.permits = 0
        """How many messages the broker may still send, less those on their way."""
        self.is_closed = False
        self._id = next(connection.ids)
        self._take = take
        self._left = left
        connection.consumers[self._id] = self

    async def subscribe(
        self, topic: str, start: MessageId, *, compacted: bool, timeout_s: float
    ) -> None:
        """Open it; entries come from `start`, which is one of them, once permitted.

        The broker looks for the place itself where `start` is not stored (any more):
        it begins with the next entry that is.

        Raises:
            PulsarError: refused, or no answer in time.
        """
        await self.connection.request(
            lambda number: Subscribe(
                *(topic, self.subscription, EXCLUSIVE, self._id, number),
                consumer_name=self.subscription,
                durable=False,
                start=start,
                read_compacted=compacted or None,
                force_topic_creation=False,
            ),
            Success,
            timeout_s,
        )

    async def seek(self, publish_ms: int, timeout_s: float) -> None:
        """Move the subscription to a time; this closes the consumer, and not that.

        Raises:
            PulsarError: refused, or no answer in time.
        """
        await self.connection.request(
            lambda number: Seek(self._id, number, publish_ms=publish_ms),
            Success,
            timeout_s,
        )

    async def last(self, timeout_s: float) -> LastMessageId:
        """Ask for the last entry of the topic.

        Raises:
            PulsarError: refused, or no answer in time.
        """
        return await self.connection.request(
            lambda number: GetLastMessageId(self._id, number), LastMessageId, timeout_s
        )

    def grant(self, permits: int, done: Position | None) -> None:
        """Permit so many more messages, and say what is done with."""
        if done is not None:
            # Else the broker would count all as a backlog.
            self.connection.tell(Ack(self._id, CUMULATIVE, (MessageId(*done),)))
        self.connection.tell(Flow(self._id, permits))
        self.permits += permits

    def delivery(self, delivery: Delivery, frame: bytes, at: int) -> None:
        """Pass on an entry."""
        where = Position(delivery.message_id.ledger, delivery.message_id.entry)
        try:
            entry = Entry(where, frame, at)
        except WireError as error:
            # A new connection would bring the same.
            self.abandon()
            self.closed(EntryError(f"the entry at {where}: {error}"))
            return
        self.permits -= entry.num_messages
        self._take(self, entry)

    def closed(self, error: PulsarError) -> None:
        """Pass on that it is not open any more."""
        self.connection.consumers.pop(self._id, None)
        if not self.is_closed:
            self.is_closed = True
            self._left(self, error)

    def abandon(self) -> None:
        """Close it without waiting, if the connection still stands."""
        self.connection.consumers.pop(self._id, None)
        if self.connection.broken is None:
            # Nobody waits for the answer: 0 is no request's id.
            self.connection.tell(CloseConsumer(self._id, 0))

    async def leave(self) -> None:
        """Close it; no entry comes from the moment of the call."""
        self.connection.consumers.pop(self._id, None)
        with contextlib.suppress(PulsarError):
            await self.connection.request(
                lambda number: CloseConsumer(self._id, number), Success, CLOSE_TIMEOUT_S
            )
