"""ReceiveMessage: a pop, which waits for messages as long as its client does.

Source: ReceiveMessageActivity.java and ReceiveMessageResponseStreamWriter.java, 5.3.4.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.answers import header_of, messages_of, refused
from ropeway.gateway.grpc.message_encoder import message_of, timestamp
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import Code, FilterType, ReceiveMessageResponse
from ropeway.gateway.grpc.receipt_handles import Handle, keep, made
from ropeway.gateway.grpc.receipt_handles import handle as handle_of
from ropeway.gateway.grpc.receipts import bury
from ropeway.gateway.grpc.renewals import GIVE_BACK_MS, INVISIBLE_MS
from ropeway.gateway.grpc.settings import LONG_POLL_MS, RECEIVE_BATCH
from ropeway.gateway.grpc.statuses import OK, RefusedError, status
from ropeway.gateway.wire import bodies, message, properties, receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.lite import PopLiteMessage, PopLiteReply
from ropeway.gateway.wire.commands.pop import FROM_LATEST, PopMessage, PopReply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import ReceiveMessageRequest
    from ropeway.gateway.grpc.sessions import Session
    from ropeway.gateway.processors.context import Answer

Pop = PopMessage | PopLiteMessage
Received = tuple[message.Message, Handle, int]
"""A message, its handle, and the number of its delivery."""

_ANY_QUEUE = -1
_MARGIN_MS = 500
"""Time for an answer's way back, before its client gives up."""
_NOTHING = {
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.POLLING_TIMEOUT,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
}


@rpc("ReceiveMessage")
async def receive_message(
    request: ReceiveMessageRequest, call: Call
) -> AsyncIterator[ReceiveMessageResponse]:
    """Hand messages out, or wait for some."""
    session = call.session()
    lite = session.lite_group is not None
    pop = (_lite_header if lite else _header)(request, session, call)
    try:
        reply = await call.ask(pop, too_late=partial(_came_too_late, pop))
    except BaseException:
        # The client has given up.
        call.closed = True
        call.node.pop.polling.forget(call)
        raise
    if reply.code in _NOTHING:
        yield _only(Code.MESSAGE_NOT_FOUND, "no new message")
    elif reply.code != ResponseCode.SUCCESS:
        raise refused(reply)
    else:
        rest = deque(_received(reply, pop, call))
        held_bytes = len(reply.body) + sum(map(len, reply.records))
        # Of what a slow client holds there is one copy.
        del reply
        async for response in _deliver(request, rest, held_bytes, pop, session, call):
            yield response
    yield ReceiveMessageResponse(delivery_timestamp=timestamp(now_ms()))


def _came_too_late(pop: Pop, call: Call, answer: Answer) -> None:
    """Messages came that nobody waits for."""
    if answer.code == ResponseCode.SUCCESS:
        call.node.tasks.start(_give_back(_received(answer, pop, call), pop, call))


async def _give_back(messages: Iterable[Received], pop: Pop, call: Call) -> None:
    """Have messages come again soon."""
    for _, handle, _ in messages:
        try:
            await keep(call, handle, pop.topic, pop.consumer_group, GIVE_BACK_MS)
        except RefusedError:
            # Its time was over: it comes again by itself.
            continue


def _header(request: ReceiveMessageRequest, session: Session, call: Call) -> PopMessage:
    return PopMessage(
        consumer_group=validation.group(request.group),
        topic=validation.topic(request.message_queue.topic),
        # Any: clients go round the queues one by one, and would wait at empty ones.
        queue_id=_ANY_QUEUE,
        max_msg_nums=_batch(request),
        invisible_time=_invisible_ms(request),
        poll_time=_poll_ms(request, session, call),
        born_time=now_ms(),
        init_mode=FROM_LATEST,
        exp_type=bodies.SQL92
        if request.filter_expression.type == FilterType.SQL
        else bodies.TAG,
        exp=request.filter_expression.expression or bodies.SUB_ALL,
        order=session.settings.subscription.fifo,
        attempt_id=request.attempt_id or None,
        bname=request.message_queue.broker.name or None,
    )


def _lite_header(
    request: ReceiveMessageRequest, session: Session, call: Call
) -> PopLiteMessage:
    return PopLiteMessage(
        client_id=call.client_id,
        consumer_group=validation.group(request.group),
        topic=validation.topic(request.message_queue.topic),
        max_msg_num=_batch(request),
        invisible_time=_invisible_ms(request),
        poll_time=_poll_ms(request, session, call),
        born_time=now_ms(),
        attempt_id=request.attempt_id or None,
        bname=request.message_queue.broker.name or None,
    )


async def _deliver(
    request: ReceiveMessageRequest,
    rest: deque[Received],
    held_bytes: int,
    pop: Pop,
    session: Session,
    call: Call,
) -> AsyncIterator[ReceiveMessageResponse]:
    budget = call.messaging.budget
    budget.hold(call.origin, held_bytes)
    try:
        if isinstance(pop, PopLiteMessage):
            most = session.settings.backoff_policy.max_attempts
            rest = await _bury(rest, most, pop, call)
        yield ReceiveMessageResponse(status=OK)
        while rest:
            stored, handle, attempts = rest[0]
            given = message_of(stored, pop.topic, attempts)
            given.system_properties.receipt_handle = handle.text
            yield ReceiveMessageResponse(message=given)
            rest.popleft()
            size = len(stored.body)
            budget.let_go(call.origin, size)
            held_bytes -= size
            if request.auto_renew:
                call.messaging.renewals.begin(
                    session, pop.consumer_group, pop.topic, handle
                )
    finally:
        budget.let_go(call.origin, held_bytes)
        if rest:
            call.node.tasks.start(_give_back(rest, pop, call))


async def _bury(
    messages: Iterable[Received], most: int, pop: Pop, call: Call
) -> deque[Received]:
    """Those that have not come too often; the others are dead letters.

    Elsewhere that is done where a message is stored again, or by the client.
    """
    kept: deque[Received] = deque()
    for one in messages:
        stored, handle, attempts = one
        if attempts <= most:
            kept.append(one)
            continue
        name = properties.parse(stored.properties).get(properties.UNIQ_KEY, "")
        try:
            await bury(call, handle, pop.topic, pop.consumer_group, name)
        except RefusedError:
            # It comes again, and is tried again then.
            continue
    return kept


def _only(code: Code, text: str) -> ReceiveMessageResponse:
    return ReceiveMessageResponse(status=status(code, text))


def _batch(request: ReceiveMessageRequest) -> int:
    if request.batch_size <= 0:
        raise RefusedError(
            Code.BAD_REQUEST, f"batch size {request.batch_size}; allowed: 1 and more"
        )
    return min(request.batch_size, RECEIVE_BATCH)


def _invisible_ms(request: ReceiveMessageRequest) -> int:
    if request.auto_renew:
        return INVISIBLE_MS
    return validation.invisible_ms(
        request.invisible_duration, validation.MIN_INVISIBLE_MS
    )


def _poll_ms(request: ReceiveMessageRequest, session: Session, call: Call) -> int:
    """How long to wait for messages, so that the client hears that there are none."""
    left_ms = call.remaining_ms
    if request.HasField("long_polling_timeout"):
        wanted_ms = validation.duration_ms(request.long_polling_timeout)
    elif left_ms is None:
        wanted_ms = LONG_POLL_MS
    else:
        wanted_ms = (
            left_ms - validation.duration_ms(session.settings.request_timeout) // 2
        )
    if wanted_ms < 0:
        raise RefusedError(
            Code.ILLEGAL_POLLING_TIME,
            f"{left_ms} ms remain, and the request may take "
            f"{validation.duration_ms(session.settings.request_timeout)}",
        )
    if left_ms is not None:
        wanted_ms = min(wanted_ms, max(left_ms - _MARGIN_MS, 0))
    return min(wanted_ms, LONG_POLL_MS)


def _received(answer: Answer, pop: Pop, call: Call) -> list[Received]:
    """What a pop brought."""
    take_apart = received_lite if isinstance(pop, PopLiteMessage) else received
    return list(take_apart(answer, pop.bname or call.node.config.broker))


def received(reply: Answer, broker: str) -> Iterator[Received]:
    """A pop's messages, each with its handle and the number of its delivery."""
    header = header_of(reply, PopReply)
    starts = {}
    for part in (header.start_offset_info or "").split(";"):
        retry, queue_id, start = map(int, part.split(" "))
        starts[retry, queue_id] = start
    orders = _orders(header.order_count_info or "")
    for stored in messages_of(reply):
        own = _own_handle(stored)
        if own is not None:
            # One that comes again is somewhere else than it says.
            yield stored, own, stored.reconsume_times + 1
            continue
        place = receipt.Receipt(
            starts[receipt.NORMAL, stored.queue_id],
            header.pop_time,
            header.invisible_time,
            header.revive_qid,
            receipt.NORMAL,
            broker,
            stored.queue_id,
        )
        offset = stored.queue_offset
        before = orders.get(f"{receipt.NORMAL} qo{stored.queue_id}%{offset}", 0)
        yield stored, made(place, offset), max(before, stored.reconsume_times) + 1


def received_lite(reply: Answer, broker: str) -> Iterator[Received]:
    """Likewise, of a pop of lite topics."""
    header = header_of(reply, PopLiteReply)
    counts = (header.order_count_info or "").split(";")
    for stored, before in zip(messages_of(reply), counts, strict=True):
        offset, queue_id = stored.queue_offset, stored.queue_id
        place = receipt.Receipt(
            offset,
            header.pop_time,
            header.invisible_time,
            header.revive_qid,
            receipt.NORMAL,
            broker,
            queue_id,
        )
        lite_topic = properties.parse(stored.properties)[properties.LITE_TOPIC]
        yield stored, made(place, offset, lite_topic), int(before) + 1


def _own_handle(stored: message.Message) -> Handle | None:
    """The handle that a message brings; whoever sent it may have put anything there."""
    if properties.POP_CK not in stored.properties:
        # Nearly all: they are not read for that.
        return None
    text = properties.parse(stored.properties).get(properties.POP_CK)
    if text is None:
        return None
    try:
        return handle_of(text)
    except RefusedError:
        return None


def _orders(info: str) -> dict[str, int]:
    """How often messages came before that are popped in order, by where they are."""
    found = {}
    for part in info.split(";"):
        place, _, count = part.rpartition(" ")
        if count.isdecimal():
            found[place] = int(count)
    return found
