"""SendMessage and RecallMessage: messages become the sends that remoting clients make.

Source: SendMessageActivity.java and RecallMessageActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ropeway.gateway.grpc import message_groups, validation
from ropeway.gateway.grpc.message_decoder import DecodedMessage, named, outgoing
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    Code,
    RecallMessageResponse,
    SendMessageResponse,
    SendResultEntry,
)
from ropeway.gateway.grpc.statuses import OK, RefusedError
from ropeway.gateway.lite import names as lite_names
from ropeway.gateway.node import message_types, names
from ropeway.gateway.node.source_routes import SourceError
from ropeway.gateway.processors.needs import PUB, topic_needs
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.send import (
    RecallMessage,
    RecallReply,
    SendBatchMessage,
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
    topic = named(first)
    served = call.node.topics.get(topic)
    if served is None or not served.of_users:
        validation.topic(first)
    messages: list[DecodedMessage] = []
    for one in request.messages:
        if messages:
            await call.slices().pause()
            if one.topic != first:
                raise RefusedError(
                    Code.MESSAGE_CORRUPTED, "topic in message is not same"
                )
        messages.append(outgoing(call.node, topic, one))
    served = call.node.topics.get(topic)
    if served is not None and served.kind != message_types.MIXED:
        # As RocketMQ's proxy does.
        for made in messages:
            if made.kind != served.kind:
                await _refuse_type(topic, served.kind, made.kind, call)
    reply = await _send(topic, messages, call)
    entries = [
        SendResultEntry(
            status=OK,
            message_id=one.message_id,
            # What ends the transaction later, on whichever node then leads.
            transaction_id=reply.msg_id
            if one.kind == message_types.TRANSACTION
            else one.message_id,
            offset=reply.queue_offset + at,
            recall_handle=reply.recall_handle,
        )
        for at, one in enumerate(messages)
    ]
    return SendMessageResponse(status=OK, entries=entries)


async def _refuse_type(topic: str, expected: str, actual: str, call: Call) -> NoReturn:
    """Refuse a message of another type than its topic's."""
    # Who may not send there does not learn that the topic is there.
    await call.require(*topic_needs(call.node, topic, (PUB,)))
    raise RefusedError(
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        str(message_types.WrongTypeError(expected, actual)),
    )


async def _send(
    topic: str, messages: Sequence[DecodedMessage], call: Call
) -> SendReply:
    """Have a message stored, or several as a batch."""
    node, first = call.node, messages[0]
    if is_batch := len(messages) > 1:
        body = _batch(messages)
        is_one_group = len({one.group for one in messages}) == 1
    else:
        body, is_one_group = first.body, bool(first.group)
    # The queue of a message group is always the same; else any will do.
    queue_id = await _queue(node, topic, first) if is_one_group else _ANY_QUEUE
    header = (SendBatchMessage if is_batch else SendMessageV2)(
        producer_group=topic,
        topic=topic,
        default_topic=names.AUTO_CREATE_TOPIC,
        default_topic_queue_nums=1,
        queue_id=queue_id,
        sys_flag=first.sys_flag,
        born_timestamp=first.born_ms,
        flag=0,
        properties="" if is_batch else first.properties,
        batch=is_batch,
        bname=_broker(node, topic, first),
    )
    return await call.get(header, SendReply, body)


def _batch(messages: Sequence[DecodedMessage]) -> bytes:
    """The body of a batch."""
    if any(one.sys_flag or one.lite_topic for one in messages):
        raise RefusedError(
            Code.BAD_REQUEST,
            f"{len(messages)} messages together; allowed: neither compressed ones nor "
            "transactions nor those of lite topics",
        )
    return encode_batch([BatchEntry(0, one.body, one.properties) for one in messages])


def _broker(node: Node, topic: str, one: DecodedMessage) -> str | None:
    """The broker that a message has to go to; None where it is the one asked."""
    known = node.routes.topics.get(topic)
    if known is None or not known.route:
        return None
    if one.lite_topic:
        # It is always on the same broker.
        return lite_names.broker(one.lite_topic, known.route)
    if known.is_migrating and not known.is_at_source:
        # Clients that came before it moved were led to any node.
        return next(iter(known.route))
    return None


async def _queue(node: Node, topic: str, one: DecodedMessage) -> int:
    """The queue of a message's group; any, where there is no group or topic."""
    if not one.group:
        return _ANY_QUEUE
    served = node.topics.get(topic)
    if served is not None:
        queues = served.setup.write_queue_nums
    elif node.source is not None:
        try:
            queues = await node.source.queues(topic, node.routes.brokers)
        except SourceError as error:
            raise RefusedError(Code.HA_NOT_AVAILABLE, str(error)) from error
    else:
        return _ANY_QUEUE
    # Clients in several languages hash differently, so what they choose is not asked.
    return message_groups.queue_of(one.group, max(1, queues))


@rpc("RecallMessage")
async def recall_message(
    request: RecallMessageRequest, call: Call
) -> RecallMessageResponse:
    """Take back a message whose time has not come."""
    header = RecallMessage(
        topic=validation.topic(request.topic), recall_handle=request.recall_handle
    )
    reply = await call.get(header, RecallReply)
    return RecallMessageResponse(status=OK, message_id=reply.msg_id)
