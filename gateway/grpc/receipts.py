"""Acknowledging, keeping for longer, and giving up what was received.

Source: AckMessageActivity.java, ChangeInvisibleDurationActivity.java and
ForwardMessageToDLQActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.calls import rpc
from ropeway.gateway.grpc.protocol import (
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationResponse,
    Code,
    ForwardMessageToDeadLetterQueueResponse,
)
from ropeway.gateway.grpc.statuses import OK, RefusedError, status, together
from ropeway.gateway.processors.needs import SUB, popped_needs
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    ChangeInvisibleTime,
    InvisibleReply,
)
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from ropeway.gateway.wire.errors import ReceiptError

if TYPE_CHECKING:
    from ropeway.gateway.grpc.caller import Caller, Reply
    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import (
        AckMessageEntry,
        AckMessageRequest,
        ChangeInvisibleDurationRequest,
        ForwardMessageToDeadLetterQueueRequest,
    )

_OFFSET_AT = 7
_LITE_TOPIC_AT = 8
_TO_DEAD_LETTERS = -1
_MAX_I64 = (1 << 63) - 1
_MAX_I32 = (1 << 31) - 1
_ELSEWHERE = {ResponseCode.MESSAGE_ILLEGAL, ResponseCode.INVALID_PARAMETER}
"""The topic has no such queue, or the broker another name."""


class Handle(NamedTuple):
    """A receipt handle, which says where its message is."""

    receipt: receipt.Receipt
    offset: int
    text: str
    lite_topic: str = ""
    """Where it is of one; the handle says so behind all else."""

    def topic(self, group: str, topic: str) -> str:
        """Where the message is: the topic itself, or where it is tried again."""
        return receipt.retry_topic(group, topic, self.receipt.retry)


def handle(text: str) -> Handle:
    """Read a receipt handle.

    Raises:
        RefusedError: It is none.
    """
    try:
        parsed = receipt.parse(text)
        fields = text.split(" ")
        offset = int(fields[_OFFSET_AT])
    except (ReceiptError, ValueError, IndexError) as error:
        raise _forged(text) from error
    if (
        min(*parsed[:3], parsed.queue_id, offset) < 0
        or max(*parsed[:3], offset) > _MAX_I64
        or parsed.queue_id > _MAX_I32
    ):
        raise _forged(text)
    lite_topic = fields[_LITE_TOPIC_AT] if len(fields) > _LITE_TOPIC_AT else ""
    return Handle(parsed, offset, text, lite_topic)


def made(of: receipt.Receipt, offset: int, lite_topic: str = "") -> Handle:
    """The handle of a message that was handed out."""
    text = receipt.dump(of, offset)
    if lite_topic:
        text = f"{text} {lite_topic}"
    return Handle(of, offset, text, lite_topic)


def _forged(text: str) -> RefusedError:
    return RefusedError(
        Code.INVALID_RECEIPT_HANDLE,
        f"receipt handle {text!r:.100}; allowed: what came with a message",
    )


def _current(group: str, text: str, call: Call) -> str:
    """The handle that counts now, which is renewed no longer."""
    return call.messaging.renewals.end(group, text, call.caller.principal)


@rpc("AckMessage")
async def ack_message(request: AckMessageRequest, call: Call) -> AckMessageResponse:
    """Messages are done."""
    topic, group = validation.topic(request.topic), validation.group(request.group)
    if not request.entries:
        raise RefusedError(Code.BAD_REQUEST, "no message to acknowledge")
    acks = [_ack(entry, topic, group, call) for entry in request.entries]
    # Most clients acknowledge one at a time, which needs no task of its own.
    entries = [await acks[0]] if len(acks) == 1 else await asyncio.gather(*acks)
    codes = {entry.status.code for entry in entries}
    return AckMessageResponse(status=together(codes), entries=entries)


async def _ack(
    entry: AckMessageEntry, topic: str, group: str, call: Call
) -> AckMessageResultEntry:
    try:
        current = _current(group, entry.receipt_handle, call)
        await ack(call.caller, handle(current), topic, group)
        result = OK
    except RefusedError as error:
        result = status(error.code, error.message)
    return AckMessageResultEntry(
        message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=result
    )


async def ack(caller: Caller, of: Handle, topic: str, group: str) -> None:
    """A message is done.

    Raises:
        RefusedError: It is not in hand by that receipt.
    """
    header = AckMessage(
        consumer_group=group,
        topic=of.topic(group, topic),
        queue_id=of.receipt.queue_id,
        extra_info=of.text,
        offset=of.offset,
        lite_topic=of.lite_topic or None,
        bname=of.receipt.broker,
    )
    await _by_receipt(caller, header)


async def _by_receipt(
    caller: Caller, header: AckMessage | ChangeInvisibleTime
) -> Reply:
    """Have something done by a receipt, which says where as well."""
    reply = await caller.ask(header)
    if reply.code in _ELSEWHERE:
        raise RefusedError(Code.INVALID_RECEIPT_HANDLE, reply.remark)
    if reply.code != ResponseCode.SUCCESS:
        raise reply.refused()
    return reply


@rpc("ChangeInvisibleDuration")
async def change_invisible_duration(
    request: ChangeInvisibleDurationRequest, call: Call
) -> ChangeInvisibleDurationResponse:
    """Keep a message for a time from now, or give it back after that."""
    topic, group = validation.topic(request.topic), validation.group(request.group)
    invisible_ms = validation.invisible_ms(request.invisible_duration, 0)
    handle(request.receipt_handle)
    current = handle(_current(group, request.receipt_handle, call))
    changed = await keep(
        call.caller, current, topic, group, invisible_ms, suspend=request.suspend
    )
    return ChangeInvisibleDurationResponse(status=OK, receipt_handle=changed.text)


async def keep(
    caller: Caller,
    of: Handle,
    topic: str,
    group: str,
    invisible_ms: int,
    *,
    suspend: bool = False,
) -> Handle:
    """Keep a message for a time from now, and get its new receipt.

    Raises:
        RefusedError: It is not in hand by that receipt.
    """
    header = ChangeInvisibleTime(
        consumer_group=group,
        topic=of.topic(group, topic),
        queue_id=of.receipt.queue_id,
        extra_info=of.text,
        offset=of.offset,
        invisible_time=invisible_ms,
        lite_topic=of.lite_topic or None,
        suspend=suspend,
        bname=of.receipt.broker,
    )
    reply = (await _by_receipt(caller, header)).header(InvisibleReply)
    # As ChangeInvisibleTimeProcessor's clients put the new one together.
    changed = of.receipt._replace(
        start=of.offset,
        pop_ms=reply.pop_time,
        invisible_ms=reply.invisible_time,
        revive_queue_id=reply.revive_qid,
    )
    return made(changed, of.offset, of.lite_topic)


@rpc("ForwardMessageToDeadLetterQueue")
async def forward_to_dead_letters(
    request: ForwardMessageToDeadLetterQueueRequest, call: Call
) -> ForwardMessageToDeadLetterQueueResponse:
    """Nobody can handle a message: to the dead letters with it, and it is done."""
    topic, group = validation.topic(request.topic), validation.group(request.group)
    handle(request.receipt_handle)
    current = handle(_current(group, request.receipt_handle, call))
    await bury(call.caller, call, current, topic, group, request.message_id)
    return ForwardMessageToDeadLetterQueueResponse(status=OK)


async def bury(
    caller: Caller, call: Call, of: Handle, topic: str, group: str, message_id: str
) -> None:
    """Have a message in hand among the dead letters, and done.

    Raises:
        RefusedError: It is not in hand by that receipt, or cannot be stored now.
    """
    try:
        offset = _message_id(of, topic, group, call)
    except RefusedError:
        # Who may not have it does not learn whether there is such a queue.
        needs = popped_needs(call.node, group, of.topic(group, topic), (SUB,))
        await call.require(*needs)
        raise
    header = ConsumerSendMsgBack(
        offset=offset,
        group=group,
        delay_level=_TO_DEAD_LETTERS,
        origin_msg_id=message_id,
        origin_topic=of.topic(group, topic),
    )
    # Kept first, so that a receipt that is too late stores nothing twice.
    kept = await keep(caller, of, topic, group, of.receipt.invisible_ms or 1)
    await caller.get(header)
    await ack(caller, kept, topic, group)


def _message_id(of: Handle, topic: str, group: str, call: Call) -> int:
    """The id of a message in hand."""
    served = call.node.topics.get(of.topic(group, topic))
    queue_id = of.receipt.queue_id
    if (
        served is None
        or of.receipt.broker != call.node.config.broker
        or not 0 <= queue_id < len(served.id_bases)
    ):
        raise RefusedError(
            Code.INVALID_RECEIPT_HANDLE,
            f"receipt handle of broker {of.receipt.broker:.100}, queue {queue_id} of "
            f"{topic}; allowed: a queue of broker {call.node.config.broker}",
        )
    return served.id_bases[queue_id] | of.offset
