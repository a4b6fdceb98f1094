"""Producing: single messages and batches, one-way or answered."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from gateway.node import names, storing
from gateway.node.node import now_ms
from gateway.processors import retry
from gateway.processors.context import LATER, Context, Later, Refusal
from gateway.processors.dispatch import handles
from gateway.processors.plain import store_plain, stored
from gateway.wire import message, properties
from gateway.wire.batch import decode_batch
from gateway.wire.codes import ResponseCode
from gateway.wire.commands.send import SendBatchMessage, SendMessage, SendMessageV2
from gateway.wire.plain import plain_batch

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from gateway.node.topics import ServedTopic
    from storage.api import RecordParts

_NOT_YET = {
    properties.TRANSACTION_PREPARED: "transactional messages are",
    properties.TIMER_DELIVER_MS: "delivery at a given time is",
    properties.TIMER_DELAY_SEC: "delivery after a given time is",
    properties.TIMER_DELAY_MS: "delivery after a given time is",
    properties.START_DELIVER_TIME: "delivery at a given time is",
}


@handles(SendMessage)
@handles(SendMessageV2)
@handles(SendBatchMessage)
def send_message(
    request: SendMessage, context: Context
) -> Later | Coroutine[None, None, Later]:
    """Store a message or a batch, in a topic that is made where it is missing."""
    topic = context.node.topics.get(request.topic)
    if topic is None:
        return _create_and_send(request, context)
    if not topic.writable or topic.name in names.NOT_FOR_SENDING:
        raise _forbidden(request)
    limit = context.node.config.limits.message_bytes
    if not 0 < len(context.body) <= limit:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"message body of {len(context.body)} bytes; allowed: 1 to {limit}",
        )
    if request.sys_flag & message.TRANSACTION_MASK:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            "transactional messages are not supported yet "
            f"(sysFlag {request.sys_flag})",
        )
    queue_id = request.queue_id
    if not 0 <= queue_id < len(topic.partitions):
        queue_id = _any_queue(queue_id, topic)
    if request.batch:
        _send_batch(request, context, topic, queue_id)
        return LATER
    if topic.name.startswith(names.RETRY_PREFIX):
        return _send_to_retry(request, context, topic, queue_id)
    _send(request, context, topic, queue_id, queue_id)
    return LATER


async def _create_and_send(request: SendMessage, context: Context) -> Later:
    if complaint := names.topic_complaint(request.topic):
        raise Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    if request.topic in names.NOT_FOR_SENDING:
        raise _forbidden(request)
    topics = context.node.topics
    topic = await topics.auto_create(
        request.topic, request.default_topic, request.default_topic_queue_nums
    )
    if topic is None and request.topic.startswith(names.RETRY_PREFIX):
        topic = await topics.ensure_derived(request.topic, 1)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic}] not exist, apply first please!",
        )
    result = send_message(request, context)
    return result if isinstance(result, Later) else await result


def _forbidden(request: SendMessage) -> Refusal:
    return Refusal(
        ResponseCode.NO_PERMISSION,
        f"Sending message to topic[{request.topic}] is forbidden.",
    )


async def _send_to_retry(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Later:
    """A consumer that could not send a message back sends it as a new one."""
    target = await retry.dead_letters_if_exhausted(request, context)
    if target is None:
        _send(request, context, topic, queue_id, queue_id)
    else:
        _send(request, context, target, 0, 0, delayed=False)
    return LATER


def _any_queue(queue_id: int, topic: ServedTopic) -> int:
    if queue_id >= 0:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"request queueId[{queue_id}] is illegal, topic {topic.name} has queues "
            f"0 to {len(topic.partitions) - 1}",
        )
    return random.randrange(topic.setup.write_queue_nums or 1)  # noqa: S311 - a spread


def _send(
    request: SendMessage,
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    asked_queue_id: int,
    *,
    delayed: bool = True,
) -> None:
    if not store_plain(
        context,
        topic,
        queue_id,
        asked_queue_id,
        request.sys_flag,
        request.born_timestamp,
        request.flag,
        request.reconsume_times or 0,
        request.properties,
    ):
        _send_with_care(
            request, context, topic, queue_id, asked_queue_id, delayed=delayed
        )


def _send_with_care(
    request: SendMessage,
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    asked_queue_id: int,
    *,
    delayed: bool,
) -> None:
    """Store a message that lacks its unique key, or asks for more than storing."""
    node = context.node
    peer = context.peer
    text, pairs = _properties(request.properties)
    unique_key = pairs.get(properties.UNIQ_KEY)
    if not unique_key:
        unique_key = pairs[properties.UNIQ_KEY] = node.unique_keys.make()
        text = properties.dump(pairs)
    _refuse_not_yet(pairs)
    if pairs.pop(properties.POP_CK, None):
        text = properties.dump(pairs)
    if properties.DELAY in pairs and delayed:
        topic, queue_id, text = node.schedule.divert(topic, queue_id, pairs, text)
    partition = topic.partitions[queue_id]
    store_ms = now_ms()
    record = storing.make_record(
        topic,
        queue_id,
        partition.next_offset,
        store_ms,
        body=context.body,
        text=text + node.property_suffix,
        pairs=pairs,
        flag=request.flag,
        sys_flag=request.sys_flag,
        born_ms=request.born_timestamp,
        born_host=peer.packed_address,
        store_host=peer.packed_advertised,
        reconsume_times=request.reconsume_times or 0,
    )
    id_base = topic.id_bases[queue_id]
    done = partial(stored, context, asked_queue_id, unique_key, id_base, 1)
    partition.append([record], store_ms, done)


def _send_batch(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> None:
    if topic.name.startswith(names.RETRY_PREFIX):
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"batch request does not support retry group {topic.name}",
        )
    node = context.node
    peer = context.peer
    partition = topic.partitions[queue_id]
    id_base = topic.id_bases[queue_id]
    store_ms = now_ms()
    records = plain_batch(
        topic.magic,
        topic.name_field,
        queue_id,
        request.sys_flag,
        request.born_timestamp,
        peer.packed_address,
        store_ms,
        peer.packed_advertised,
        request.reconsume_times or 0,
        node.property_suffix,
        partition.next_offset,
        id_base,
        context.body,
    ) or _batch_with_care(request, context, topic, queue_id, store_ms)
    unique_key = properties.parse(request.properties).get(properties.UNIQ_KEY, "")
    done = partial(stored, context, queue_id, unique_key, id_base, len(records))
    partition.append(records, store_ms, done)


def _batch_with_care(
    request: SendMessage,
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    store_ms: int,
) -> Sequence[RecordParts]:
    """Make the records of a batch with a message that is not plain, or refuse it."""
    node = context.node
    peer = context.peer
    records = []
    first = topic.partitions[queue_id].next_offset
    for offset, entry in enumerate(decode_batch(context.body), first):
        text, pairs = _properties(entry.properties)
        _refuse_not_yet(pairs)
        if pairs.get(properties.DELAY, "0") != "0":
            raise Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                "a delay level is not supported for messages of a batch",
            )
        records.append(
            storing.make_record(
                topic,
                queue_id,
                offset,
                store_ms,
                body=entry.body,
                text=text + node.property_suffix,
                pairs=pairs,
                flag=entry.flag,
                sys_flag=request.sys_flag,
                born_ms=request.born_timestamp,
                born_host=peer.packed_address,
                store_host=peer.packed_advertised,
                reconsume_times=request.reconsume_times or 0,
            )
        )
    return records


def _properties(text: str) -> tuple[str, dict[str, str]]:
    """Properties in wire form, ended where they were not, and taken apart."""
    if text and not text.endswith(properties.VALUE_END):
        text += properties.VALUE_END
    return text, properties.parse(text)


def _refuse_not_yet(pairs: dict[str, str]) -> None:
    for name in pairs.keys() & _NOT_YET.keys():
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL, f"{_NOT_YET[name]} not supported yet ({name})"
        )
