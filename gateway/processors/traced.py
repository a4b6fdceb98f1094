"""Processors that record what they did with messages that carry a trace context.

A node that is told to has these in its table in place of the plain ones, so that no
other node does anything for traces. A send is recorded where its properties have a
context, a pull or pop for each message of its answer that has one, and an
acknowledgement where its message was popped here not long ago.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import structlog

from ropeway.common.slow_reads import NOTED
from ropeway.gateway.processors.context import LATER, Answer, Peer
from ropeway.gateway.processors.forwarded import ForwardedPeer
from ropeway.gateway.processors.pop_acks import acknowledged
from ropeway.gateway.tracing import trace_context
from ropeway.gateway.tracing.event import Event
from ropeway.gateway.wire import message, properties, receipt
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import WireError
from ropeway.gateway.wire.frame import PREFIX, decode_envelope
from ropeway.gateway.wire.header import decode_fields, to_fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from ropeway.common.slow_reads import SlowRead
    from ropeway.gateway.processors.context import Context
    from ropeway.gateway.processors.registry import Outcome, Processor, Result
    from ropeway.gateway.tracing.spans import Spans
    from ropeway.gateway.tracing.trace_context import Parent
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.message import Message

log = structlog.get_logger(__name__)

MOST_IN_FLIGHT = 16_384
"""Popped messages whose contexts are remembered until they are acknowledged: 8 MB."""

_HEADER_BYTES = 0xFFFFFF

_Given = Answer | tuple["Buffer", ...]
"""An answer as data, or as a frame and the messages behind it."""
_Popped = tuple[str, str, int, int]
"""Group, topic, queue id and offset of a message in flight."""


class _Said(NamedTuple):
    """What an answer says."""

    code: int
    remark: str
    fields: Mapping[str, str]


def traced(table: Mapping[int, Processor], spans: Spans) -> dict[int, Processor]:
    """A node's table of processors, those of messages traced."""
    in_flight: OrderedDict[_Popped, Parent] = OrderedDict()
    kinds: dict[int, Callable[[Processor], Processor]] = {
        RequestCode.SEND_MESSAGE: partial(_sending, spans),
        RequestCode.SEND_MESSAGE_V2: partial(_sending, spans),
        RequestCode.SEND_BATCH_MESSAGE: partial(_sending, spans),
        RequestCode.PULL_MESSAGE: partial(_receiving, spans, None),
        RequestCode.LITE_PULL_MESSAGE: partial(_receiving, spans, None),
        RequestCode.POP_MESSAGE: partial(_receiving, spans, in_flight),
        RequestCode.POP_LITE_MESSAGE: partial(_receiving, spans, in_flight),
        RequestCode.ACK_MESSAGE: partial(_acking, spans, in_flight, _acked_one),
        RequestCode.BATCH_ACK_MESSAGE: partial(_acking, spans, in_flight, _acked_many),
    }
    return {
        code: kinds[code](processor) if code in kinds else processor
        for code, processor in table.items()
    }


class TracedPeer:
    """A request's peer that tells what it is answered; else, and to others, the peer.

    Args:
        peer: The connection, or who asks within this process.
        done: Is given the answer, once.
    """

    __slots__ = ("_done", "_peer", "reads")

    def __init__(self, peer: Peer, done: Callable[[_Given, TracedPeer], None]) -> None:
        self._peer = peer
        self._done = done
        self.reads: list[SlowRead] = []
        """What the request waited for so far."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    # What waits on a connection is found by it.

    def __eq__(self, other: object) -> bool:
        return other is self or self._peer == other

    def __hash__(self) -> int:
        return hash(self._peer)

    @property
    def take_answer(self) -> Callable[[int, Answer], None] | None:
        """As of the peer."""
        return None if self._peer.take_answer is None else self._take

    def _take(self, opaque: int, answer: Answer) -> None:
        take = self._peer.take_answer
        assert take is not None, "it was asked for before"
        take(opaque, answer)
        self._tell(answer)

    def respond(self, *data: Buffer) -> None:
        """As of the peer."""
        self._peer.respond(*data)
        if data:
            self._tell(data)

    def _tell(self, given: _Given) -> None:
        try:
            self._done(given, self)
        except Exception:  # the request is answered already
            log.exception("a span was not recorded")


def _trace(context: Context, done: Callable[[_Given, TracedPeer], None]) -> TracedPeer:
    """Have a request's answer told; once, also where it is begun anew."""
    peer: Any = context.peer
    if type(peer) is not TracedPeer:
        peer = TracedPeer(peer, done)
        context.peer = cast("Peer", peer)
    found: TracedPeer = peer
    return found


def _said(given: _Given) -> _Said:
    """What an answer says, from its frame if there is nothing else."""
    if isinstance(given, Answer):
        fields = {} if given.header is None else to_fields(given.header)
        return _Said(given.code, given.remark or "", fields)
    front = bytes(given[0])
    _, word = PREFIX.unpack_from(front)
    header = front[PREFIX.size : PREFIX.size + (word & _HEADER_BYTES)]
    envelope = decode_envelope(word >> 24, header)
    fields = decode_fields(envelope.ext_fields)
    return _Said(envelope.code, envelope.remark or "", fields)


def _failure(said: _Said) -> str:
    return f"{said.code}: {said.remark}" if said.code else ""


# Sends.


def _sending(spans: Spans, plain: Processor) -> Processor:
    def process(request: Any, context: Context) -> Outcome:
        one = trace_context.of_text(request.properties)
        parents = [one] if one else []
        if request.batch:
            parents += trace_context.found_in(context.body)
        if parents:
            if isinstance(context.peer, ForwardedPeer) and context.peer.spans:
                spans_there = trace_context.told(context.peer.spans)
                parents = [one.under(spans_there) for one in parents]
            began_ns = time.time_ns()
            _trace(context, partial(_sent, spans, request, context, parents, began_ns))
        return plain(request, context)

    return process


def _sent(
    spans: Spans,
    request: Any,
    context: Context,
    parents: Sequence[Parent],
    began_ns: int,
    given: _Given,
    peer: TracedPeer,
) -> None:
    said = _said(given)
    about: dict[str, str | int] = {
        "messaging.message.body.size": len(context.body),
        "client.address": peer.address,
    }
    for name, field in _OF_REPLY.items():
        if value := said.fields.get(field):
            about[name] = value
    event = Event(
        "send", request.topic, began_ns, time.time_ns(), about, _failure(said)
    )
    for parent in parents:
        spans.record(parent, event)


_OF_REPLY = {
    "messaging.destination.partition.id": "queueId",
    "messaging.rocketmq.message.offset": "queueOffset",
    "messaging.message.id": "transactionId",
}


# Pulls and pops.


def _receiving(
    spans: Spans, in_flight: OrderedDict[_Popped, Parent] | None, plain: Processor
) -> Processor:
    def process(request: Any, context: Context) -> Outcome:
        done = partial(_received, spans, in_flight, request, time.time_ns())
        reads = _trace(context, done).reads
        token = NOTED.set(reads)
        try:
            result = plain(request, context)
        finally:
            NOTED.reset(token)
        if type(result) is Answer or result is LATER:
            return result
        return _noting(cast("Awaitable[Result]", result), reads)

    return process


async def _noting(result: Awaitable[Result], reads: list[SlowRead]) -> Result:
    """Wait for an answer, in a task of its own."""
    NOTED.set(reads)
    return await result


def _received(
    spans: Spans,
    in_flight: OrderedDict[_Popped, Parent] | None,
    request: Any,
    began_ns: int,
    given: _Given,
    peer: TracedPeer,
) -> None:
    records = given.records if isinstance(given, Answer) else given[1:]
    group, now_ns, reads = request.consumer_group, time.time_ns(), peer.reads
    for found, parent, unique_key in _contexts(records):
        about: dict[str, str | int] = {
            "messaging.consumer.group.name": group,
            "messaging.destination.partition.id": str(found.queue_id),
            "messaging.rocketmq.message.offset": found.queue_offset,
            "messaging.message.id": unique_key,
            "messaging.message.body.size": len(found.body),
            "client.address": peer.address,
        }
        # A consumer that waited had asked before there was a message.
        since_ns = max(began_ns, min(found.store_ms * 1_000_000, now_ns))
        event = Event("receive", found.topic, since_ns, now_ns, about)
        spans.record(parent, event, reads)
        if in_flight is not None:
            popped = group, found.topic, found.queue_id, found.queue_offset
            in_flight[popped] = parent
            if len(in_flight) > MOST_IN_FLIGHT:
                in_flight.popitem(last=False)


def _contexts(records: Sequence[Buffer]) -> Iterator[tuple[Message, Parent, str]]:
    """The messages of an answer that carry a context, with it and their unique key."""
    for piece in records:
        data = bytes(piece)
        if not trace_context.may_have(data):
            continue
        for stored in message.split(data):
            found = message.decode(stored)
            pairs = properties.parse(found.properties)
            if parent := trace_context.of_pairs(pairs):
                yield found, parent, pairs.get(properties.UNIQ_KEY, "")


# Acknowledgements.


def _acking(
    spans: Spans,
    in_flight: OrderedDict[_Popped, Parent],
    which: Callable[[Any, Context], Iterator[_Popped]],
    plain: Processor,
) -> Processor:
    def process(request: Any, context: Context) -> Outcome:
        known = [one for one in which(request, context) if one in in_flight]
        if known:
            parents = {one: in_flight[one] for one in known}
            began_ns = time.time_ns()
            _trace(context, partial(_acked, spans, in_flight, parents, began_ns))
        return plain(request, context)

    def unless_there_are_none(request: Any, context: Context) -> Outcome:
        return (process if in_flight else plain)(request, context)

    return unless_there_are_none


def _acked_one(request: Any, _context: Context) -> Iterator[_Popped]:
    yield request.consumer_group, request.topic, request.queue_id, request.offset


def _acked_many(_request: Any, context: Context) -> Iterator[_Popped]:
    try:
        for one in acknowledged(context).acks:
            topic = receipt.retry_topic(one.group, one.topic, int(one.retry))
            for offset in one.offsets():
                yield one.group, topic, one.queue_id, offset
    except (WireError, ValueError):
        return  # the processor says what is wrong with it


def _acked(
    spans: Spans,
    in_flight: OrderedDict[_Popped, Parent],
    parents: Mapping[_Popped, Parent],
    began_ns: int,
    given: _Given,
    peer: TracedPeer,
) -> None:
    said, now_ns = _said(given), time.time_ns()
    for popped, parent in parents.items():
        group, topic, queue_id, offset = popped
        about: dict[str, str | int] = {
            "messaging.consumer.group.name": group,
            "messaging.destination.partition.id": str(queue_id),
            "messaging.rocketmq.message.offset": offset,
            "client.address": peer.address,
        }
        event = Event("ack", topic, began_ns, now_ns, about, _failure(said))
        spans.record(parent, event)
        if not said.code:
            in_flight.pop(popped, None)
