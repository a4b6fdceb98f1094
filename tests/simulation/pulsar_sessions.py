"""The binary protocol as a broker of Pulsar's model speaks it, on one connection.

Commands go through the product's own codec, whose bytes other tests compare with those
of real clients and brokers. Source: ServerCnx, Pulsar 4.0.8.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ropeway.storage.pulsar.commands import (
    Ack,
    CloseConsumer,
    CloseProducer,
    Connect,
    Connected,
    Flow,
    GetLastMessageId,
    GetSchema,
    LastMessageId,
    Lookup,
    LookupAnswer,
    LookupType,
    MessageId,
    OpenProducer,
    Ping,
    Pong,
    ProducerSuccess,
    Refused,
    Schema,
    SchemaAnswer,
    Seek,
    Send,
    Subscribe,
    Success,
)
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.frames import Deframer, command_frame, decode_frame
from tests.simulation.pulsar_served import NOT_READY, Served

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.pulsar.protobuf import Message
    from tests.simulation.pulsar_brokers import Broker
    from tests.simulation.pulsar_served import Consumer, Producer

MAX_MESSAGE_BYTES = 5 * 1024 * 1024
METADATA, NOT_FOUND = 1, 11
ALIVE_S = 5.0
"""How long a connection may take to show that it lives, when a name is taken."""


class Session(asyncio.Protocol):
    """A connection, as the broker sees it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.closed_producers: set[int] = set()
        """Those that the broker closed: what still comes for them is dropped."""
        self._deframer = Deframer()
        self._deframer.limit_bytes += MAX_MESSAGE_BYTES
        self._transport: Any = None
        self._looking: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for frame in self._deframer.feed(data):
            command, at = decode_frame(frame)
            if type(command) in DOES and not self._transport.is_closing():
                DOES[type(command)](self, command, frame[at:])

    def connection_lost(self, _: Exception | None) -> None:
        for producer in [*self.producers.values()]:
            producer.remove()
        for consumer in [*self.consumers.values()]:
            consumer.cursor.leave()
        self.consumers.clear()
        self._answer_looks(alive=False)

    def eof_received(self) -> None:
        """Close, as the other side does."""

    def tell(self, command: Message) -> None:
        """Send a command."""
        self.write(command_frame(command))

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        self._transport.write(frame)

    def look(self, told: Callable[..., None], *arguments: Any) -> None:
        """See whether the other side is there, and say so with these arguments."""
        self._looking.append((told, arguments))
        if len(self._looking) == 1:
            self.tell(Ping())
            self.broker.after(ALIVE_S, self._unheard, self._looking[0])

    def _unheard(self, first: object) -> None:
        if self._looking and self._looking[0] is first:
            self._transport.abort()

    def _answer_looks(self, *, alive: bool) -> None:
        looking, self._looking = self._looking, []
        for told, arguments in looking:
            told(alive, *arguments)

    # -- what commands do

    def _connect(self, _asked: Connect, _rest: bytes) -> None:
        self.tell(Connected("model", 21, MAX_MESSAGE_BYTES))

    def _ping(self, _asked: Ping, _rest: bytes) -> None:
        self.tell(Pong())

    def _pong(self, _asked: Pong, _rest: bytes) -> None:
        self._answer_looks(alive=True)

    def _lookup(self, asked: Lookup, _rest: bytes) -> None:
        owner = self.broker.pulsar.owner(asked.topic)
        if owner is None:
            answer = LookupAnswer(
                response=LookupType.FAILED,
                request_id=asked.request_id,
                error=NOT_READY,
                message="nobody serves it at the moment",
            )
        else:
            answer = LookupAnswer(
                owner.url,
                response=LookupType.CONNECT,
                request_id=asked.request_id,
                authoritative=True,
            )
        self.broker.later(self.tell, answer)

    def _schema(self, asked: GetSchema, _rest: bytes) -> None:
        found = self.broker.pulsar.schemas.get(asked.topic)
        if found is None:
            answer = SchemaAnswer(asked.request_id, NOT_FOUND, "no schema")
        else:
            answer = SchemaAnswer(asked.request_id, schema=Schema(found[-1]))
        self.tell(answer)

    def _producer(self, asked: OpenProducer, _rest: bytes) -> None:
        known = self.producers.get(asked.producer_id)
        if known is not None:
            if known.is_in:
                self.tell(ProducerSuccess(asked.request_id, known.name))
            else:
                text = "Producer is already present on the connection"
                self.tell(Refused(asked.request_id, NOT_READY, text))
            return
        self.broker.later(self._served, asked, Served.let_in)

    def _subscribe(self, asked: Subscribe, _rest: bytes) -> None:
        self.broker.later(self._served, asked, Served.subscribe)

    def _served(self, asked: Any, do: Callable[..., None]) -> None:
        if self._transport.is_closing():
            return
        served = self.broker.serve(asked.topic)
        if isinstance(served, Served):
            do(served, self, asked)
        else:
            self.tell(Refused(asked.request_id, *served))

    def _send(self, send: Send, rest: bytes) -> None:
        producer = self.producers.get(send.producer_id)
        if producer is not None and producer.is_in:
            producer.served.publish(producer, send, rest)
        elif send.producer_id not in self.closed_producers:
            # Who is fenced is not told: this is how he learns of it.
            self._transport.close()

    def _close_producer(self, asked: CloseProducer, _rest: bytes) -> None:
        producer = self.producers.get(asked.producer_id)
        answer = Success(asked.request_id)
        if producer is None or not producer.is_in:
            self.producers.pop(asked.producer_id, None)
            self.tell(answer)
        else:
            producer.close(lambda: self.tell(answer))

    def _close_consumer(self, asked: CloseConsumer, _rest: bytes) -> None:
        consumer = self.consumers.pop(asked.consumer_id, None)
        if consumer is not None:
            consumer.cursor.leave()
        self.tell(Success(asked.request_id))

    def _flow(self, asked: Flow, _rest: bytes) -> None:
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is not None:
            consumer.permits += asked.permits
            self.broker.later(consumer.cursor.give)

    def _ack(self, asked: Ack, _rest: bytes) -> None:
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is not None and asked.message_ids:
            done = asked.message_ids[-1]
            cursor = consumer.cursor
            cursor.mark = max(cursor.mark, Position(done.ledger, done.entry))

    def _last(self, asked: GetLastMessageId, _rest: bytes) -> None:
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is None:
            self.tell(Refused(asked.request_id, METADATA, "Consumer not found"))
            return
        cursor = consumer.cursor
        topic = cursor.served.topic
        last = topic.last
        if topic.from_(last) is None and (last.entry < 0 or not topic.compacted):
            last = Position(last.ledger, -1)
        answer = LastMessageId(
            MessageId(*last), asked.request_id, MessageId(*cursor.mark)
        )
        self.broker.later(self.tell, answer)

    def _seek(self, asked: Seek, _rest: bytes) -> None:
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is None:
            self.tell(Refused(asked.request_id, METADATA, "Consumer not found"))
            return
        cursor = consumer.cursor
        served = cursor.served
        served.put_out(cursor)
        if asked.message_id is not None:
            cursor.begin(asked.message_id)
        elif asked.publish_ms is not None:
            cursor.move(served.topic.by_time(asked.publish_ms))
        self.broker.later(self.tell, Success(asked.request_id))


DOES: dict[type, Callable[[Session, Any, bytes], None]] = {
    Connect: Session._connect,
    Ping: Session._ping,
    Pong: Session._pong,
    Lookup: Session._lookup,
    GetSchema: Session._schema,
    OpenProducer: Session._producer,
    Subscribe: Session._subscribe,
    Send: Session._send,
    CloseProducer: Session._close_producer,
    CloseConsumer: Session._close_consumer,
    Flow: Session._flow,
    Ack: Session._ack,
    GetLastMessageId: Session._last,
    Seek: Session._seek,
}
