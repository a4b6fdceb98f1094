"""Producing: single messages and batches, one-way or answered."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.common.eager import settled
from ropeway.gateway.node import message_keys, message_types, names, record_builder
from ropeway.gateway.node.client_owners import TakenError
from ropeway.gateway.node.creations import TooLongError, TooManyError
from ropeway.gateway.node.delays import DELAYING
from ropeway.gateway.processors import auto_create, retry, timed
from ropeway.gateway.processors.context import (
    LATER,
    Context,
    Later,
    NotPreparedError,
    Refusal,
)
from ropeway.gateway.processors.half_message import check_half, store_half
from ropeway.gateway.processors.needs import PUB, SUB, Needs, topic_need, topic_needs
from ropeway.gateway.processors.queue_choice import queue_of
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.send_answer import stored
from ropeway.gateway.processors.send_batch import no_batch, send_batch
from ropeway.gateway.processors.throttling import charge_send, has_to_wait, wait_to_send
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
)
from ropeway.gateway.wire.message import TRANSACTION_MASK
from ropeway.gateway.wire.properties import TRANSACTION_PREPARED
from ropeway.gateway.wire.send_codec import record_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Need
    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.served_topic import ServedTopic

_PUB = (PUB,)


def _needs(request: SendMessage, context: Context) -> Iterator[Need]:
    if request.topic.startswith(names.RETRY_PREFIX):
        return _retry_needs(request, context)
    return iter((topic_need(request.topic, _PUB),))


def _retry_needs(request: SendMessage, context: Context) -> Iterator[Need]:
    """What consumers need that send back to their groups' retry topics."""
    yield from topic_needs(context.node, request.topic, (SUB,))
    # The group will take the message for one of that topic.
    pairs = properties.parse(request.properties)
    if origin := pairs.get(properties.RETRY_TOPIC):
        yield from topic_needs(context.node, origin, (SUB,))


@handles(SendMessage, Needs(_needs))
@handles(SendMessageV2, Needs(_needs))
@handles(SendBatchMessage, Needs(_needs))
def send_message(request: SendMessage, context: Context) -> Eventual[Later]:
    """Store a message or a batch, in a topic that is made where it is missing."""
    topic = context.node.topics.get(request.topic)
    if topic is None:
        raise _missing(request, context)
    if context.node.quotas.sends:
        if has_to_wait(context, topic.name):
            return _wait_and_send(request, context)
        charge_send(context, topic.name)
    if not topic.plain:
        _check_topic(request, topic)
    limit = context.node.config.limits.message_bytes
    # Without a body, a message deletes its key.
    least = 0 if topic.compacted and not request.batch else 1
    if not least <= len(context.body) <= limit:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"message body of {len(context.body)} bytes; allowed: {least} to {limit}",
        )
    queue_id = request.queue_id
    if not topic.plain or not 0 <= queue_id < len(topic.partitions):
        queue_id = queue_of(request, context, topic)
    if request.sys_flag & TRANSACTION_MASK or (
        TRANSACTION_PREPARED in request.properties and _says_half(request)
    ):
        check_half(request.sys_flag)
        return _send_half(request, context, topic, queue_id)
    if request.batch:
        send_batch(request, context, topic, queue_id)
        return LATER
    if not topic.plain and topic.name.startswith(names.RETRY_PREFIX):
        return _send_to_retry(request, context, topic, queue_id)
    _store(request, context, topic, queue_id)
    return LATER


def _missing(request: SendMessage, context: Context) -> Exception:
    """What becomes of a send whose topic is not there."""
    if complaint := names.topic_complaint(request.topic):
        return Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    if request.topic in names.NOT_FOR_SENDING:
        return _forbidden(request)
    return NotPreparedError(request.topic, partial(_create, request, context))


async def _wait_and_send(request: SendMessage, context: Context) -> Later:
    """Send what nobody can be held back for, when the topic's quota lets it."""
    await wait_to_send(context, request.topic)
    if context.node.topics.get(request.topic) is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic}] was deleted while the send waited",
        )
    charge_send(context, request.topic)
    return await settled(send_message(request, context))


def _check_topic(request: SendMessage, topic: ServedTopic) -> None:
    """Refuse what a topic does not take."""
    if not topic.writable or topic.name in names.NOT_FOR_SENDING:
        raise _forbidden(request)
    if topic.message_type != message_types.MIXED:
        message_types.check(topic.message_type, properties.parse(request.properties))
    if topic.compacted and not request.batch:
        message_keys.check(properties.parse(request.properties))


def _says_half(request: SendMessage) -> bool:
    """Whether the properties say what clients also say by a flag."""
    pairs = properties.parse(request.properties)
    if pairs.get(TRANSACTION_PREPARED, "").lower() != "true":
        return False
    # Clients before 4.6.1 left it with messages that they sent again.
    return not (request.reconsume_times and pairs.get(properties.DELAY, "0") != "0")


def _send_half(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Eventual[Later]:
    if request.batch:
        raise no_batch("transaction")
    return store_half(request, context, topic, queue_id)


async def _create(request: SendMessage, context: Context) -> None:
    """Make the topic of a send, unless somebody has done so.

    Raises:
        Refusal: It is not there, and is not to be made.
    """
    name = request.topic
    if context.node.topics.get(name) is not None:
        return
    topic = await auto_create.auto_create(
        context, name, request.default_topic, request.default_topic_queue_nums
    )
    if topic is None and name.startswith(names.RETRY_PREFIX):
        with auto_create.topic(context, name):
            topic = await context.node.topics.ensure_derived(name, 1)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{name}] not exist, apply first please!",
        )


def _forbidden(request: SendMessage) -> Refusal:
    remark = f"the topic[{request.topic}] sending message is forbidden"
    if request.topic in names.NOT_FOR_SENDING:
        remark = f"Sending message to topic[{request.topic}] is forbidden."
    return Refusal(ResponseCode.NO_PERMISSION, remark)


async def _send_to_retry(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Later:
    """A consumer that could not send a message back sends it as a new one."""
    target = await retry.dead_letters_if_exhausted(request, context)
    if target is None:
        _store(request, context, topic, queue_id)
    else:
        _store(request, context, target, 0, delayed=False)
    return LATER


def _store(
    request: SendMessage,
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    *,
    delayed: bool = True,
) -> None:
    """Make a message's record, append it, and answer when it is stored."""
    peer = context.peer
    partition = topic.partitions[queue_id]
    id_base = topic.id_bases[queue_id]
    offset = partition.next_offset
    store_ms = now_ms()
    record = record_of(
        topic.magic,
        topic.name_field,
        queue_id,
        request.sys_flag,
        request.born_timestamp,
        peer.packed_address,
        store_ms,
        peer.packed_advertised,
        request.reconsume_times or 0,
        context.node.property_suffix,
        offset,
        id_base | offset,
        request.flag,
        context.body,
        request.properties,
        True,
    )
    if record is None:
        _store_special(request, context, topic, queue_id, delayed=delayed)
        return
    done = partial(stored, context, queue_id, record[2][-1], id_base, 1, b"")
    partition.append([record], store_ms, done)


def _store_special(
    request: SendMessage,
    context: Context,
    topic: ServedTopic,
    asked_queue_id: int,
    *,
    delayed: bool,
) -> None:
    """Store a message that lacks its unique key, or asks for more than storing."""
    node = context.node
    peer = context.peer
    text, pairs = properties.ended(request.properties)
    unique_key = pairs.get(properties.UNIQ_KEY)
    if not unique_key:
        unique_key = pairs[properties.UNIQ_KEY] = node.unique_keys.make()
        text = properties.dump(pairs)
    if properties.REPLY_TO_CLIENT in pairs:
        text = _request_text(request, context, text, pairs)
    store_ms, queue_id, handle = now_ms(), asked_queue_id, b""
    if delayed and not DELAYING.isdisjoint(pairs):
        place = node.delays.divert(topic, queue_id, pairs, text, store_ms)
        if place.due_ms is not None:
            handle = timed.recall_handle(node, topic, unique_key, place.due_ms)
        topic, queue_id, text = place.topic, place.queue_id, place.text
    partition = topic.partitions[queue_id]
    record = record_builder.make_record(
        topic,
        queue_id,
        partition.next_offset,
        store_ms,
        body=context.body,
        text=text + node.property_suffix,
        flag=request.flag,
        sys_flag=request.sys_flag,
        born_ms=request.born_timestamp,
        born_host=peer.packed_address,
        store_host=peer.packed_advertised,
        reconsume_times=request.reconsume_times or 0,
    )
    id_base = topic.id_bases[queue_id]
    done = partial(stored, context, asked_queue_id, unique_key, id_base, 1, handle)
    partition.append([record], store_ms, done)


def _request_text(
    request: SendMessage, context: Context, text: str, pairs: dict[str, str]
) -> str:
    """The properties of a request, with an address that replies are believed by.

    The client that waits is known from then on, before its next heartbeat names it.
    """
    # What is sent back is still the request of who sent it first.
    if request.topic.startswith(names.RETRY_PREFIX):
        return text
    client_id = pairs[properties.REPLY_TO_CLIENT]
    if not context.peer.forwarded:
        with suppress(TakenError, TooManyError, TooLongError):
            context.node.clients.register_producer(
                context.peer, client_id, request.producer_group, context.principal
            )
    addresses, principal = context.node.reply_to, context.principal
    if addresses is None or principal is None:
        return text
    correlation_id = pairs.get(properties.CORRELATION_ID, "")
    pairs[properties.REPLY_TO_CLIENT] = addresses.sign(
        client_id, correlation_id, principal
    )
    return properties.dump(pairs)
