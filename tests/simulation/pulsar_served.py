"""A topic as its broker has it: producers, fencing, deduplication, readers.

Source: AbstractTopic, MessageDeduplication, PersistentSubscription, Pulsar 4.0.8.
"""

from __future__ import annotations

import contextvars
from collections import deque
from typing import TYPE_CHECKING, Any

from ropeway.storage.pulsar.commands import (
    Access,
    CloseConsumer,
    CloseProducer,
    Delivery,
    MessageId,
    OpenProducer,
    ProducerSuccess,
    Refused,
    Send,
    SendError,
    SendReceipt,
    Subscribe,
    Success,
)
from ropeway.storage.pulsar.entry import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.pulsar_brokers import Broker
    from tests.simulation.pulsar_sessions import Session
    from tests.simulation.pulsar_topics import Stored, Topic

PERSISTENCE, CONSUMER_BUSY, NOT_READY = 2, 5, 6
PRODUCER_BUSY, FENCED = 16, 25
"""Codes of `storage.pulsar.errors`."""


class Producer:
    """A producer, from when it is let in."""

    def __init__(self, served: Served, session: Session, asked: OpenProducer) -> None:
        self.served = served
        self.session = session
        self.id = asked.producer_id
        assert asked.producer_name is not None
        self.name = asked.producer_name
        self.pending = 0
        """Entries that bookies have not acknowledged."""
        self.is_in = False
        self._closed: list[Callable[[], None]] | None = None

    def close(self, then: Callable[[], None] = lambda: None) -> None:
        """Close it when all that it has sent is stored."""
        if self._closed is None:
            self._closed = []
        self._closed.append(then)
        self.settle()

    def settle(self) -> None:
        """Be removed where it is to be closed, and has nothing on its way."""
        if self._closed is not None and not self.pending:
            then, self._closed = self._closed, None
            self.remove()
            for one in then:
                one()

    def remove(self) -> None:
        """Be removed at once."""
        if self.session.producers.get(self.id) is self:
            del self.session.producers[self.id]
        served = self.served
        if served.producers.get(self.name) is self:
            del served.producers[self.name]
            served.has_exclusive = False


class Consumer:
    """An exclusive consumer of a subscription."""

    def __init__(self, cursor: Cursor, session: Session, asked: Subscribe) -> None:
        self.cursor = cursor
        self.session = session
        self.id = asked.consumer_id
        self.compacted = bool(asked.read_compacted)
        self.permits = 0


class Cursor:
    """A subscription that nobody stores, and where it stands."""

    def __init__(self, served: Served, name: str) -> None:
        self.served = served
        self.name = name
        self.next = Position(-1, -1)
        """It reads on from there."""
        self.mark = Position(-1, -1)
        self.consumer: Consumer | None = None

    def begin(self, start: MessageId | None) -> None:
        """Stand where a reader wants to begin."""
        topic = self.served.topic
        if start is None or Position(start.ledger, start.entry) > topic.last:
            self.move(Position(topic.last.ledger, topic.last.entry + 1))
        elif start.ledger == -1:
            self.move(Position(topic.ledgers[0].number, 0))
            # Compaction may have kept what is deleted.
            self.next = Position(-1, -1)
        else:
            self.move(Position(start.ledger, start.entry))

    def move(self, where: Position) -> None:
        """Stand before a position."""
        found = self.served.topic.from_(where)
        self.next = found.where if found is not None else where
        self.mark = self.served.topic.before(self.next)

    def give(self) -> None:
        """Send what is permitted."""
        one = self.consumer
        while one is not None and one.permits > 0:
            found = self._take(one.compacted)
            if found is None:
                return
            one.permits -= found.metadata.num_messages or 1
            where = MessageId(*found.where)
            one.session.write(found.frame(Delivery(one.id, where)))

    def _take(self, compacted: bool) -> Stored | None:
        topic = self.served.topic
        found = None
        if compacted and self.next <= topic.horizon:
            kept = (one for one in topic.compacted if one.where >= self.next)
            found = next(kept, None)
            if found is None:
                self.next = Position(topic.horizon.ledger, topic.horizon.entry + 1)
        found = found or topic.from_(self.next)
        if found is not None:
            self.next = Position(found.where.ledger, found.where.entry + 1)
        return found

    def leave(self) -> None:
        """Be forgotten with the consumer."""
        self.consumer = None
        if self.served.cursors.get(self.name) is self:
            del self.served.cursors[self.name]


class Served:
    """A topic on the broker that serves it.

    Args:
        broker: Serves it.
        topic: What is stored.
    """

    def __init__(self, broker: Broker, topic: Topic) -> None:
        self.broker = broker
        self.topic = topic
        self.pushed = topic.open(broker.now_s())
        self.persisted = dict(self.pushed)
        self.producers: dict[str, Producer] = {}
        self.has_exclusive = False
        self.cursors: dict[str, Cursor] = {}
        self.is_closed = False
        self.compaction = "NOT_RUN"
        """What the last compaction is, by this broker."""
        self._pending: deque[tuple[Producer, Send, bytes]] = deque()
        self._last_s = 0.0

    # -- producers

    def let_in(self, session: Session, asked: OpenProducer) -> None:
        """Open a producer, which may put out all others."""
        one = Producer(self, session, asked)
        session.producers[one.id] = one

        def refuse(code: int, text: str) -> None:
            if session.producers.get(one.id) is one:
                del session.producers[one.id]
            session.tell(Refused(asked.request_id, code, text))

        epoch, known = asked.topic_epoch, self.topic.epoch
        is_old = epoch is not None and epoch < (-1 if known is None else known)
        if asked.access == Access.SHARED:
            if self.has_exclusive:
                refuse(PRODUCER_BUSY, "Topic has an existing exclusive producer")
            else:
                self._add(one, asked, refuse)
            return
        if asked.access == Access.EXCLUSIVE:
            if self.has_exclusive or self.producers or is_old:
                refuse(FENCED, "Topic has an existing producer, or its epoch moved")
                return
        else:
            if self.has_exclusive or self.producers:
                for other in [*self.producers.values()]:
                    other.close()
            if is_old:
                self.has_exclusive = False
                refuse(FENCED, "Topic epoch has already moved")
                return
        self.has_exclusive = True
        if epoch is None:
            epoch = 0 if known is None else known + 1
        # Who comes until that is noted sees the old one: docs/architecture/pulsar.md.
        self.broker.later(self._note_epoch, epoch, one, asked, refuse)

    def _note_epoch(
        self, epoch: int, one: Producer, asked: OpenProducer, refuse: Any
    ) -> None:
        if self.is_closed:
            refuse(NOT_READY, "the topic has moved")
            return
        self.topic.epoch = epoch
        self._add(one, asked, refuse)

    def _add(self, one: Producer, asked: OpenProducer, refuse: Any) -> None:
        session = one.session
        if session.producers.get(one.id) is not one:
            return  # closed meanwhile
        other = self.producers.get(one.name)
        if other is not None:
            if other.session is session:
                refuse(PRODUCER_BUSY, f"Producer {one.name} is already connected")
            else:
                other.session.look(self._looked, one, asked, refuse)
            return
        self.producers[one.name] = one
        one.is_in = True
        session.tell(
            ProducerSuccess(
                *(asked.request_id, one.name, self.pushed.get(one.name, -1)),
                topic_epoch=self.topic.epoch,
            )
        )

    def _looked(
        self, alive: bool, one: Producer, asked: OpenProducer, refuse: Any
    ) -> None:
        if alive:
            refuse(PRODUCER_BUSY, f"Producer {one.name} is already connected")
        elif self.is_closed:
            refuse(NOT_READY, "the topic has moved")
        else:
            self._add(one, asked, refuse)

    def publish(self, one: Producer, send: Send, rest: bytes) -> None:
        """Store an entry, or drop it as a repeat."""
        name, number = one.name, send.sequence_id
        highest = max(number, send.highest_sequence_id)
        if number <= self.pushed.get(name, -1):
            if number <= self.persisted.get(name, -1):
                nowhere = MessageId(-1, -1)
                one.session.tell(SendReceipt(one.id, number, nowhere))
            else:
                text = "Cannot determine whether the message is a duplicate"
                one.session.tell(SendError(one.id, number, PERSISTENCE, text))
            return
        self.pushed[name] = highest
        one.pending += 1
        self._pending.append((one, send, rest))
        now_s = self.broker.loop.time()
        self._last_s = max(self._last_s + 1e-7, now_s + self.broker.disk_s())
        context = contextvars.copy_context()
        self.broker.loop.call_at(self._last_s, self._store, context=context)

    def _store(self) -> None:
        if self.is_closed:
            return
        one, send, rest = self._pending.popleft()
        stored = self._add_entry(send, rest)
        self.persisted[one.name] = max(send.sequence_id, send.highest_sequence_id)
        one.pending -= 1
        where = MessageId(*stored.where)
        one.session.tell(SendReceipt(one.id, send.sequence_id, where))
        one.settle()
        for cursor in self.cursors.values():
            cursor.give()

    def _add_entry(self, send: Send, rest: bytes) -> Stored:
        now_ms = self.broker.loop.wall_ns() // 1_000_000
        return self.topic.add(rest, send.num_messages, now_ms)

    def end(self) -> None:
        """Serve it no more: of what is on its way, bookies have as much as may be."""
        self.is_closed = True
        if self.topic is self.broker.pulsar.topics.get(self.topic.name):
            for _ in range(self.broker.chance.randint(0, len(self._pending))):
                _, send, rest = self._pending.popleft()
                self._add_entry(send, rest)
        self._pending.clear()

    def unload(self) -> None:
        """Close all producers and consumers, which look for the topic again."""
        for one in [*self.producers.values()]:
            one.session.producers.pop(one.id, None)
            one.session.closed_producers.add(one.id)
            one.session.tell(CloseProducer(one.id, -1))
        for cursor in [*self.cursors.values()]:
            self.put_out(cursor)
        self.end()

    def put_out(self, cursor: Cursor) -> None:
        """Close the consumer of a subscription, which stays."""
        consumer, cursor.consumer = cursor.consumer, None
        if consumer is not None:
            consumer.session.consumers.pop(consumer.id, None)
            consumer.session.tell(CloseConsumer(consumer.id, -1))

    # -- consumers

    def subscribe(self, session: Session, asked: Subscribe) -> None:
        """Open a consumer."""
        cursor = self.cursors.get(asked.subscription)
        if cursor is None:
            cursor = Cursor(self, asked.subscription)
            cursor.begin(asked.start)
            self.cursors[cursor.name] = cursor
        if cursor.consumer is not None:
            text = "Exclusive consumer is already connected"
            session.tell(Refused(asked.request_id, CONSUMER_BUSY, text))
            return
        cursor.consumer = Consumer(cursor, session, asked)
        session.consumers[asked.consumer_id] = cursor.consumer
        session.tell(Success(asked.request_id))
