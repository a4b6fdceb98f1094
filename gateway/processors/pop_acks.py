"""Receipts of popped messages: done, or kept for longer.

Source: AckMessageProcessor.java and ChangeInvisibleTimeProcessor.java, RocketMQ 5.3.4,
which answers success for a receipt that is too late, and where nothing was popped in
order takes any offset for the group's progress.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.lite import names as lite_names
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import SUB, Needs, on_popped, popped_needs
from ropeway.gateway.processors.pop import wrong_invisible
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    BatchAckMessage,
    ChangeInvisibleTime,
    InvisibleReply,
)
from ropeway.gateway.wire.errors import ReceiptError
from ropeway.gateway.wire.frame import Template
from ropeway.gateway.wire.receipt import IN_ORDER, BatchAcks, Receipt
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from ropeway.acl.api import Need
    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.fair_queueing import Slices
    from ropeway.gateway.pop.acks import Renewed
    from ropeway.gateway.pop.order import Place
    from ropeway.gateway.wire.receipt import BatchAck

_KINDS = {str(kind): kind for kind in (receipt.RETRY_V1, receipt.RETRY_V2)}
_LARGE_BYTES = 64 * 1024
"""Of longer bodies one of a flow is worked on at a time."""
_AT_ONCE = 1024
"""Acknowledgements of one request that wait for the ledger at a time."""
_batch = msgspec.json.Decoder(BatchAcks, strict=False)

_kept_frame = Template(InvisibleReply, ("pop_time", "invisible_time", "revive_qid"))
DONE = Answer(template=Template())
"""A message is done."""


@handles(AckMessage, on_popped(SUB))
def ack_message(request: AckMessage, context: Context) -> Eventual[Answer]:
    """A message is done."""
    given = _receipt(request, context)
    place = (request.consumer_group, request.topic, request.queue_id)
    acks = context.node.pop.acks
    if request.lite_topic:
        lite_place = _lite_place(request, request.lite_topic)
        done = context.node.lite.done(lite_place, given.pop_ms, request.offset)
    elif given.revive_queue_id == IN_ORDER:
        done = acks.done_in_order(place, given, request.offset)
    else:
        found = acks.done(place, given, request.offset)
        if not isinstance(found, bool):
            return _await_done(found, request)
        done = found
    return DONE if done else _not_out(request)


async def _await_done(done: Awaitable[bool], request: AckMessage) -> Answer:
    return DONE if await done else _not_out(request)


def _receipt(request: AckMessage | ChangeInvisibleTime, context: Context) -> Receipt:
    """The receipt of a request, whose fields say the same as it does.

    Raises:
        Refusal: They do not, or there is no such queue.
        ReceiptError: It is none.
    """
    given = receipt.parse(request.extra_info)
    node = context.node
    topic = node.topics.get(request.topic)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic:.200}] not exist, apply first please!",
        )
    if not 0 <= request.queue_id < len(topic.partitions):
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"queueId[{request.queue_id}] is illegal, topic {topic.name} has queues "
            f"0 to {len(topic.partitions) - 1}",
        )
    kind = topic.retry_kind
    if (
        given.queue_id != request.queue_id
        or given.broker != node.config.broker
        or given.retry != kind
    ):
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"receipt of broker {given.broker:.100}, retry {given.retry}, queue "
            f"{given.queue_id}; asked for: broker {node.config.broker}, retry {kind}, "
            f"queue {request.queue_id}",
        )
    return given


def _lite_place(request: AckMessage | ChangeInvisibleTime, lite: str) -> Place:
    """Where a message of a lite topic is, as its group has it."""
    queue = lite_names.queue_name(request.topic, lite)
    return request.consumer_group, queue, request.queue_id


def _not_out(request: AckMessage | ChangeInvisibleTime) -> Answer:
    return Answer(
        ResponseCode.NO_MESSAGE,
        f"message {request.offset} of {request.topic}@{request.queue_id} is not in "
        f"hand of {request.consumer_group:.200} by that receipt: it is done, or its "
        "time was over",
    )


def acknowledged(context: Context) -> BatchAcks:
    """What the body of a batch of acknowledgements says.

    Raises:
        ReceiptError: It cannot be read.
    """
    try:
        return _batch.decode(context.body)
    except UNREADABLE as error:
        raise ReceiptError(f"body of acknowledgements: {reason_of(error)}") from error


def _batched(_: BatchAckMessage, context: Context) -> Iterator[Need]:
    acks = acknowledged(context).acks
    for group, topic, retry in {(one.group, one.topic, one.retry) for one in acks}:
        name = receipt.retry_topic(group, topic, _KINDS.get(retry, receipt.NORMAL))
        yield from popped_needs(context.node, group, name, (SUB,))


@handles(BatchAckMessage, Needs(_batched))
async def batch_ack_message(_: BatchAckMessage, context: Context) -> Answer:
    """Messages are done; those that are not in hand any more are passed over."""
    slices = context.slices()
    if len(context.body) <= _LARGE_BYTES:
        return await _acknowledge(context, slices)
    # What is read of many large ones would take several times their bodies.
    await slices.begin_large()
    try:
        return await _acknowledge(context, slices)
    finally:
        slices.end_large()


async def _acknowledge(context: Context, slices: Slices) -> Answer:
    body = acknowledged(context)
    if not body.acks:
        return Answer(ResponseCode.NO_MESSAGE, "no acknowledgement in the body")
    asked = []
    for one in body.acks:
        await slices.pause()
        asked.append((one, _offsets(one)))
    later: list[Awaitable[bool]] = []
    for one, offsets in asked:
        await slices.pause()
        later += _take(one, offsets, context)
        if len(later) >= _AT_ONCE:
            await asyncio.gather(*later)
            later.clear()
    await asyncio.gather(*later)
    return DONE


def _offsets(one: BatchAck) -> list[int]:
    if not one.retry.isdecimal() or int(one.retry) > receipt.RETRY_V2:
        raise ReceiptError(f"retry is {one.retry:.20}; allowed: 0, 1, 2")
    return one.offsets()


def _take(
    one: BatchAck, offsets: list[int], context: Context
) -> Iterator[Awaitable[bool]]:
    """Take what is in hand; what has to be waited for is given back."""
    kind = int(one.retry)
    acks = context.node.pop.acks
    place = (
        one.group,
        receipt.retry_topic(one.group, one.topic, kind),
        one.queue_id,
    )
    given = Receipt(
        one.start,
        one.pop_ms,
        one.invisible_ms,
        one.revive_queue_id,
        kind,
        context.node.config.broker,
        one.queue_id,
    )
    for offset in offsets:
        if given.revive_queue_id == IN_ORDER:
            acks.done_in_order(place, given, offset)
            continue
        done = acks.done(place, given, offset)
        if not isinstance(done, bool):
            yield done


@handles(ChangeInvisibleTime, on_popped(SUB))
def change_invisible_time(
    request: ChangeInvisibleTime, context: Context
) -> Eventual[Answer]:
    """Keep a message for a time from now, or give it back after that."""
    given = _receipt(request, context)
    longest_ms = context.node.pop.ledger.longest_ms
    if not 0 <= request.invisible_time <= longest_ms:
        raise wrong_invisible(request.invisible_time, 0, longest_ms)
    place = (request.consumer_group, request.topic, request.queue_id)
    acks = context.node.pop.acks
    if request.lite_topic:
        renewed = context.node.lite.keep(
            _lite_place(request, request.lite_topic),
            given.pop_ms,
            request.offset,
            request.invisible_time,
            all_=request.suspend,
        )
        return _reply(renewed, given, request)
    if given.revive_queue_id == IN_ORDER:
        renewed = acks.keep_in_order(
            place, given, request.offset, request.invisible_time
        )
        return _reply(renewed, given, request)
    found = acks.keep(place, given, request.offset, request.invisible_time)
    if found is None or isinstance(found, tuple):
        return _reply(found, given, request)
    return _await_kept(found, given, request)


async def _await_kept(
    found: Awaitable[Renewed | None],
    given: Receipt,
    request: ChangeInvisibleTime,
) -> Answer:
    return _reply(await found, given, request)


def _reply(
    renewed: Renewed | None, given: Receipt, request: ChangeInvisibleTime
) -> Answer:
    if renewed is None:
        return _not_out(request)
    return kept(*renewed, given.revive_queue_id)


def kept(pop_ms: int, invisible_ms: int, revive_queue_id: int) -> Answer:
    """A message is kept for longer, by a new receipt."""
    reply = InvisibleReply(pop_ms, invisible_ms, revive_queue_id)
    return Answer(ResponseCode.SUCCESS, None, reply, None, b"", (), _kept_frame)
