"""SendMessage and RecallMessage: messages become the sends that remoting clients make.

Source: SendMessageActivity.java and RecallMessageActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.calls import rpc
from ropeway.gateway.grpc.message_decoder import DecodedMessage, outgoing
from ropeway.gateway.grpc.protocol import (
    Code,
    RecallMessageResponse,
    SendMessageResponse,
    SendResultEntry,
)
from ropeway.gateway.grpc.statuses import OK, RefusedError
from ropeway.gateway.lite import names as lite_names
from ropeway.gateway.node import message_types, names
from ropeway.gateway.processors.needs import PUB, topic_needs
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.send import (
    RecallMessage,
    RecallReply,
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
    SendReply,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import RecallMessageRequest, SendMessageRequest
    from ropeway.gateway.node.node import Node

_ANY_QUEUE = -1


@rpc("SendMessage")
async def send_message(request: SendMessageRequest, call: Call) -> SendMessageResponse:
    """Store a message, or several of one topic in one queue, all or none."""
    if not request.messages:
        raise RefusedError(Code.MESSAGE_CORRUPTED, "no message to send")
    first = request.messages[0].topic
    topic = validation.topic(first)
    messages: list[DecodedMessage] = []
    for one in request.messages:
        if messages:
            await call.slices().pause()
            if one.topic != first:
                raise RefusedError(
                    Code.MESSAGE_CORRUPTED, "topic in message is not same"
                )
        messages.append(outgoing(call.node, topic, one))
    try:
        for made in messages:
            _check_type(call.node, topic, made)
    except RefusedError:
        # Who may not send there does not learn that the topic is there.
        await call.require(*topic_needs(call.node, topic, (PUB,)))
        raise
    if len(messages) == 1:
        reply = await _send_one(topic, messages[0], call)
    else:
        reply = await _send_batch(topic, messages, call)
    entries = [
        SendResultEntry(
            status=OK,
            message_id=one.message_id,
            # What ends the transaction later, on whichever node then leads.
            transaction_id=reply.msg_id if one.is_half else one.message_id,
            offset=reply.queue_offset + at,
            recall_handle=reply.recall_handle,
        )
        for at, one in enumerate(messages)
    ]
    return SendMessageResponse(status=OK, entries=entries)


def _check_type(node: Node, topic: str, one: DecodedMessage) -> None:
    """Refuse a message of another type than its topic's, as RocketMQ's proxy does."""
    served = node.topics.get(topic)
    if served is None or topic.startswith(names.RETRY_PREFIX):
        return
    expected = message_types.type_of_topic(topic, served.setup.attributes)
    try:
        message_types.check(expected, one.pairs)
    except message_types.WrongTypeError as error:
        raise RefusedError(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, str(error)
        ) from error


async def _send_one(topic: str, one: DecodedMessage, call: Call) -> SendReply:
    queue_id = _queue(call.node, topic, one)
    # A lite topic is always on the same broker; others are on the one that is asked.
    broker = _broker_of_lite(call.node, topic, one) if one.lite_topic else None
    header = _header(SendMessageV2, topic, one, queue_id, broker)
    reply = await call.caller.get(header, one.body)
    return reply.header(SendReply)


async def _send_batch(
    topic: str, messages: Sequence[DecodedMessage], call: Call
) -> SendReply:
    first = messages[0]
    if any(one.sys_flag or one.lite_topic for one in messages):
        raise RefusedError(
            Code.BAD_REQUEST,
            f"{len(messages)} messages together; allowed: neither compressed ones nor "
            "transactions nor those of lite topics",
        )
    entries = [BatchEntry(0, one.body, one.properties) for one in messages]
    groups = {one.group for one in messages}
    queue_id = _queue(call.node, topic, first) if len(groups) == 1 else _ANY_QUEUE
    header = _header(SendBatchMessage, topic, first, queue_id, batch=True)
    reply = await call.caller.get(header, encode_batch(entries))
    return reply.header(SendReply)


def _header(
    kind: type[SendMessage],
    topic: str,
    one: DecodedMessage,
    queue_id: int,
    broker: str | None = None,
    *,
    batch: bool = False,
) -> SendMessage:
    return kind(
        producer_group=topic,
        topic=topic,
        default_topic=names.AUTO_CREATE_TOPIC,
        default_topic_queue_nums=1,
        queue_id=queue_id,
        sys_flag=one.sys_flag,
        born_timestamp=one.born_ms,
        flag=0,
        properties="" if batch else one.properties,
        batch=batch,
        bname=broker,
    )


def _broker_of_lite(node: Node, topic: str, one: DecodedMessage) -> str | None:
    known = node.routes.topics.get(topic)
    if known is None or not known.route:
        return None
    return lite_names.broker(one.lite_topic, known.route)


def _queue(node: Node, topic: str, one: DecodedMessage) -> int:
    """The queue of a message group is always the same; else any will do."""
    served = node.topics.get(topic)
    if served is None or not one.group:
        return _ANY_QUEUE
    # Clients in several languages hash differently, so what they choose is not asked.
    return one.group_hash % max(1, served.setup.write_queue_nums)


@rpc("RecallMessage")
async def recall_message(
    request: RecallMessageRequest, call: Call
) -> RecallMessageResponse:
    """Take back a message whose time has not come."""
    header = RecallMessage(
        topic=validation.topic(request.topic), recall_handle=request.recall_handle
    )
    reply = await call.caller.get(header)
    message_id = reply.header(RecallReply).msg_id
    return RecallMessageResponse(status=OK, message_id=message_id)
