"""Request and reply: what answers a message goes to the client that asked.

Source: ReplyMessageProcessor.java and AbstractSendMessageProcessor.msgCheck, RocketMQ
5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names, record_builder
from ropeway.gateway.node.calls import NoAnswerError
from ropeway.gateway.node.reply_to import ReplyTo, ReplyToError
from ropeway.gateway.processors import auto_create
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import PUB, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.relay import NotConnectedError, ask_producer
from ropeway.gateway.processors.send_store import new_message
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.reply import (
    PushReplyMessage,
    SendReplyMessage,
    SendReplyMessageV2,
)
from ropeway.gateway.wire.commands.send import SendMessage, SendReply
from ropeway.gateway.wire.errors import MessageError
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic

log = structlog.get_logger(__name__)

_NOT_STORED = "0"
"""The message id of a reply that is only pushed: clients fail without one."""


@handles(SendReplyMessage, on_topic(PUB))
@handles(SendReplyMessageV2, on_topic(PUB))
async def send_reply(request: SendMessage, context: Context) -> Answer:
    """Give a reply to the client that waits for it, and keep it where that is set."""
    pairs = properties.parse(request.properties)
    to = _asker(context, pairs)
    topic, queue_id = await _place(request, context)
    pairs[properties.MSG_REGION] = context.node.config.region
    pairs[properties.TRACE_ON] = "true"
    failure = await _push(request, context, to, pairs)
    stored = None
    # Go's client loses a reply's body where the application does not set it again.
    if context.node.config.store_replies and context.body and topic.writable:
        stored = await _store(request, context, topic, queue_id, pairs)
    if failure is not None:
        # Kept all the same, as a real broker does.
        raise Refusal(ResponseCode.SYSTEM_ERROR, failure)
    message_id, offset = stored or (_NOT_STORED, 0)
    return Answer(
        header=SendReply(
            msg_id=message_id,
            queue_id=queue_id,
            queue_offset=offset,
            msg_region=context.node.config.region,
            trace_on=True,
        )
    )


def _asker(context: Context, pairs: dict[str, str]) -> ReplyTo | None:
    """Who waits for a reply, whose properties name nobody but the client afterwards.

    Raises:
        Refusal: No request with this correlation id was sent by it.
    """
    address = pairs.get(properties.REPLY_TO_CLIENT)
    if address is None:
        return None
    addresses = context.node.reply_to
    if addresses is None:
        return ReplyTo(address)
    try:
        to = addresses.verify(address, pairs.get(properties.CORRELATION_ID, ""))
    except ReplyToError as error:
        raise Refusal(ResponseCode.NO_PERMISSION, str(error)) from error
    pairs[properties.REPLY_TO_CLIENT] = to.client_id
    return to


async def _place(request: SendMessage, context: Context) -> tuple[ServedTopic, int]:
    """The topic and queue that a reply names."""
    if complaint := names.topic_complaint(request.topic):
        raise Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    if request.topic in names.NOT_FOR_SENDING:
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"Sending message to topic[{request.topic}] is forbidden.",
        )
    topic = await auto_create.auto_create(
        context, request.topic, request.default_topic, request.default_topic_queue_nums
    )
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic}] not exist, apply first please!",
        )
    if request.queue_id >= len(topic.partitions):
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"request queueId[{request.queue_id}] is illegal, topic {topic.name} has "
            f"queues 0 to {len(topic.partitions) - 1}",
        )
    return topic, max(request.queue_id, 0)


async def _push(
    request: SendMessage, context: Context, to: ReplyTo | None, pairs: dict[str, str]
) -> str | None:
    """Give a reply to who asked; why that failed, or None where it has it."""
    if to is None:
        return f"reply message properties[{properties.REPLY_TO_CLIENT}] is null"
    pushed_ms = now_ms()
    push = PushReplyMessage(
        producer_group=request.producer_group,
        topic=request.topic,
        default_topic=request.default_topic,
        default_topic_queue_nums=request.default_topic_queue_nums,
        queue_id=request.queue_id,
        sys_flag=request.sys_flag,
        born_timestamp=request.born_timestamp,
        flag=request.flag,
        born_host=context.peer.address,
        store_host=context.peer.advertised,
        store_timestamp=pushed_ms,
        properties=properties.dump(
            {**pairs, properties.PUSH_REPLY_TIME: str(pushed_ms)}
        ),
        reconsume_times=request.reconsume_times,
        unit_mode=request.unit_mode,
    )
    try:
        answer = await ask_producer(context, to, push, context.body)
    except NotConnectedError:
        return f"push reply message fail, channel of <{to.client_id}> not found."
    except NoAnswerError as error:
        return f"push reply message to {to.client_id} fail: {error}"
    if answer.code:
        return f"push reply message to {to.client_id} fail: {answer.remark}"
    return None


async def _store(
    request: SendMessage,
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    pairs: dict[str, str],
) -> tuple[str, int] | None:
    """Keep a reply; its message id and offset, or None where that failed.

    Who asked has it by then, so a failure is for people to know, not for clients.
    """
    node = context.node
    peer = context.peer
    try:
        partition = topic.partitions[queue_id]
        await node.log.ready(topic.name, (partition.number,))
        store_ms = now_ms()
        record = record_builder.make_record(
            topic,
            queue_id,
            partition.next_offset,
            store_ms,
            new_message(request, context, properties.dump(pairs)),
        )
        offset = await record_builder.appended(partition, [record], store_ms)
    except (LogError, MessageError) as error:
        log.warning("reply not kept", topic=topic.name, reason=str(error))
        return None
    identity = topic.id_bases[queue_id] | offset
    return f"{peer.id_prefix.decode()}{identity:016X}", offset
