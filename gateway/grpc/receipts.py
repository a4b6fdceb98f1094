"""Acknowledging, keeping for longer, and giving up what was received.

Source: AckMessageActivity.java, ChangeInvisibleDurationActivity.java and
ForwardMessageToDLQActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationResponse,
    Code,
    ForwardMessageToDeadLetterQueueResponse,
)
from ropeway.gateway.grpc.receipt_handles import Handle, ack, handle, keep
from ropeway.gateway.grpc.source_letters import bury_at_source
from ropeway.gateway.grpc.statuses import OK, RefusedError, status, together
from ropeway.gateway.processors.at_source import is_of_source
from ropeway.gateway.processors.needs import SUB, popped_needs
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack

if TYPE_CHECKING:
    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import (
        AckMessageEntry,
        AckMessageRequest,
        ChangeInvisibleDurationRequest,
        ForwardMessageToDeadLetterQueueRequest,
    )

_TO_DEAD_LETTERS = -1


def _current(group: str, text: str, call: Call) -> Handle:
    """The handle that counts now, which is renewed no longer.

    Raises:
        RefusedError: What the client has is none.
    """
    given = handle(text)
    current = call.messaging.renewals.end(group, text, call.principal)
    return given if current == text else handle(current)


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
        await ack(call, current, topic, group)
        result = OK
    except RefusedError as error:
        result = status(error.code, error.message)
    return AckMessageResultEntry(
        message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=result
    )


@rpc("ChangeInvisibleDuration")
async def change_invisible_duration(
    request: ChangeInvisibleDurationRequest, call: Call
) -> ChangeInvisibleDurationResponse:
    """Keep a message for a time from now, or give it back after that."""
    topic, group = validation.topic(request.topic), validation.group(request.group)
    invisible_ms = validation.invisible_ms(request.invisible_duration, 0)
    current = _current(group, request.receipt_handle, call)
    changed = await keep(
        call, current, topic, group, invisible_ms, suspend=request.suspend
    )
    return ChangeInvisibleDurationResponse(status=OK, receipt_handle=changed.text)


@rpc("ForwardMessageToDeadLetterQueue")
async def forward_to_dead_letters(
    request: ForwardMessageToDeadLetterQueueRequest, call: Call
) -> ForwardMessageToDeadLetterQueueResponse:
    """Nobody can handle a message: to the dead letters with it, and it is done."""
    topic, group = validation.topic(request.topic), validation.group(request.group)
    current = _current(group, request.receipt_handle, call)
    await bury(call, current, topic, group, request.message_id)
    return ForwardMessageToDeadLetterQueueResponse(status=OK)


async def bury(call: Call, of: Handle, topic: str, group: str, message_id: str) -> None:
    """Have a message in hand among the dead letters, and done.

    Raises:
        RefusedError: It is not in hand by that receipt, or cannot be stored now.
    """
    at_source = is_of_source(of.receipt.broker, call.node)
    try:
        offset = 0 if at_source else _message_id(of, topic, group, call)
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
    kept = await keep(call, of, topic, group, of.receipt.invisible_ms or 1)
    if at_source:
        await bury_at_source(of, header, call.node)
    else:
        await call.do(header)
    await ack(call, kept, topic, group)


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
