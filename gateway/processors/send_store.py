"""Storing a message: its record is made and appended, and the send answered."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names
from ropeway.gateway.node.client_owners import TakenError
from ropeway.gateway.node.creations import TooLongError, TooManyError
from ropeway.gateway.node.delays import DELAYING
from ropeway.gateway.node.record_builder import NewMessage, make_record
from ropeway.gateway.processors import timed
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.message import TRANSACTION_MASK
from ropeway.gateway.wire.send_codec import record_of, sent_frame

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.processors.context import Context
    from ropeway.gateway.wire.commands.send import SendMessage
    from ropeway.storage.api import LogError


def store(
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
    record = make_record(
        topic,
        queue_id,
        partition.next_offset,
        store_ms,
        new_message(request, context, text + node.property_suffix),
    )
    id_base = topic.id_bases[queue_id]
    done = partial(stored, context, asked_queue_id, unique_key, id_base, 1, handle)
    partition.append([record], store_ms, done)


def new_message(request: SendMessage, context: Context, text: str) -> NewMessage:
    """What was sent, to be stored with other properties, and as no transaction's."""
    peer = context.peer
    return NewMessage(
        body=context.body,
        properties=text,
        flag=request.flag,
        sys_flag=request.sys_flag & ~TRANSACTION_MASK,
        born_ms=request.born_timestamp,
        born_host=peer.packed_address,
        store_host=peer.packed_advertised,
        reconsume_times=request.reconsume_times or 0,
    )


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


def stored(
    context: Context,
    queue_id: int,
    unique_key: str,
    id_base: int,
    count: int,
    recall_handle: bytes,
    offset: int,
    error: LogError | None,
) -> None:
    """Answer a send with what has become of it."""
    peer = context.peer
    if error is not None:
        context.refuse(code_of(error) or ResponseCode.SYSTEM_ERROR, str(error))
        return
    if (take := peer.take_answer) is not None:
        identity = f"{peer.id_prefix.decode()}{id_base | offset:016X}"
        reply = SendReply(
            identity, queue_id, offset, unique_key, recall_handle.decode() or None
        )
        take(context.opaque, Answer(header=reply))
        return
    if context.came_s:
        context.node.latencies.observe(context.code, context.came_s)
    if context.one_way:
        peer.respond()
        return
    peer.respond(
        sent_frame(
            queue_id,
            unique_key,
            peer.id_prefix,
            id_base | offset,
            count,
            context.node.region_json,
            offset,
            context.opaque,
            ROPEWAY_VERSION,
            recall_handle,
        )
    )
