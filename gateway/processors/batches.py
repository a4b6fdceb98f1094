"""Batches over many queues: messages are staged, and committed together.

Ours alone: RocketMQ's own brokers have transactions of one message each.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from ropeway.gateway.node import names
from ropeway.gateway.node.delays import DELAYING
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import KNOWN, PUB, on_topic, topic_need
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.send_batch import check_batch
from ropeway.gateway.processors.throttling import charge_send
from ropeway.gateway.wire import bodies, message, properties
from ropeway.gateway.wire.batch import cut, decode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import (
    CommitBatch,
    LastBatch,
    LastBatchReply,
    Stage,
    StagedBatch,
    StageReply,
)
from ropeway.gateway.wire.send_codec import NO_MARK, plain_batch
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

_ROOM_BYTES = 256
"""What a delivered message's properties may gain: the broker's own, and its mark."""


@handles(Stage, on_topic(PUB))
async def stage(request: Stage, context: Context) -> StageReply:
    """Keep messages until a commit names them."""
    node = context.node
    _check_producer(request.producer_id)
    topic = lookup.find_topic(node, request.topic)
    lookup.find_partition(node, request.topic, request.queue_id)
    if (
        not topic.writable
        or request.topic in names.NOT_FOR_SENDING
        or request.topic.startswith(names.RETRY_PREFIX)
    ):
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"the topic[{request.topic}] sending message is forbidden",
        )
    await _check_entries(context)
    charge_send(context, topic.name)
    offset = await node.batches.stage(
        request.producer_id,
        request.topic,
        request.queue_id,
        context.body,
        context.peer.packed_address,
        _owner(context),
    )
    return StageReply(offset=offset)


def _owner(context: Context) -> str:
    """Who alone may commit what is staged, and commit as its producer."""
    if context.principal is None:
        return ""
    # As a property: names of principals may have any characters.
    return quote(str(context.principal), safe=":@", errors="backslashreplace")


def _check_producer(producer_id: str) -> None:
    # What may name a group may name a producer.
    if complaint := names.group_complaint(producer_id):
        raise Refusal(ResponseCode.INVALID_PARAMETER, f"producerId: {complaint}")


async def _check_entries(context: Context) -> None:
    """Refuse now what could not be delivered later, while others have their turns."""
    node, body = context.node, context.body
    check_batch(body, node.config.requests.batch_messages)
    if not body:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL, "no messages to stage; allowed: 1 or more"
        )
    room = message.MAX_PROPERTIES_BYTES - len(node.property_suffix) - _ROOM_BYTES
    longest = node.config.limits.message_bytes
    slices, before = context.slices(), 0
    for part in cut(body):
        await slices.pause()
        before += _check_slice(part, before, room, longest)


def _check_slice(part: bytes, before: int, room: int, longest: int) -> int:
    """Refuse a part of a batch; says how many messages it has."""
    if len(part) <= longest and (plain := _count_plain(part, room)):
        return plain
    entries = decode_batch(part, before)
    for entry in entries:
        if len(entry.body) > longest:
            raise Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                f"a message of {len(entry.body)} bytes in a batch; allowed: {longest}",
            )
        if len(entry.properties.encode()) > room:
            raise Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                f"properties of {len(entry.properties.encode())} bytes in a batch; "
                f"allowed: {room}",
            )
        pairs = properties.parse(entry.properties)
        if not DELAYING.isdisjoint(pairs) or properties.TRANSACTION_PREPARED in pairs:
            raise Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                "a delay or a transaction is not supported for messages of a batch",
            )
    return len(entries)


def _count_plain(part: bytes, room: int) -> int:
    """How many messages a part has; 0 where one is not plain, or has no room left.

    It makes records that nobody keeps, compiled: looking at each takes longer.
    """
    gained = "." * (message.MAX_PROPERTIES_BYTES - room)
    made = plain_batch(
        *(message.MAGIC_V1, b"", 0, 0, 0, b"", 0, b"", 0, gained, 0, 0, NO_MARK, part)
    )
    return len(made) if made else 0


@handles(CommitBatch, KNOWN)
async def commit_batch(request: CommitBatch, context: Context) -> Answer:
    """Deliver what was staged, once, and answer when it is there."""
    _check_producer(request.producer_id)
    if request.batch_id < 0:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"batchId is {request.batch_id}; allowed: 0 and more",
        )
    try:
        asked = msgspec.json.decode(context.body, type=StagedBatch)
    except UNREADABLE as error:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"body names no staged messages: {reason_of(error)}",
        ) from error

    async def may_send(topic: str) -> None:
        # It might when it staged; who may no longer sends nothing.
        await context.require(topic_need(topic, (PUB,)))

    first = await context.node.batches.commit(
        request.producer_id, request.batch_id, asked.staged, _owner(context), may_send
    )
    told = StagedBatch(staged={name: list(at) for name, at in first.items()})
    return Answer(body=bodies.encode(told))


@handles(LastBatch, KNOWN)
async def last_batch(request: LastBatch, context: Context) -> LastBatchReply:
    """Tell which batch of a producer was committed last."""
    _check_producer(request.producer_id)
    last = await context.node.batches.last(request.producer_id, _owner(context))
    return LastBatchReply(batch_id=last)
