"""Messages of another cluster, stored with their offsets and times."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import TYPE_CHECKING

from ropeway.gateway.node.record_builder import appended
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import PUB, UPDATE, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.mirrors import MessagesMirrored, MirrorMessages
from ropeway.gateway.wire.record_rewrite import mirrored

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic


@handles(MirrorMessages, on_topic(PUB) & on_topic(UPDATE))
async def mirror_messages(request: MirrorMessages, context: Context) -> Answer:
    """Store those of the messages that are not there yet, all in their order."""
    node, queue_id = context.node, request.queue_id
    topic = lookup.find_topic(node, request.topic)
    partition = lookup.find_partition(node, topic.name, queue_id)
    _refuse_others(topic)
    await node.log.ready(topic.name, [partition.number])
    try:
        place = (topic.magic, topic.name_field, queue_id, topic.id_bases[queue_id])
        records = mirrored(context.body, *place, context.peer.packed_advertised)
    except ValueError as error:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    # From here to the last append nobody else comes between.
    new = [one for one in records if one[0] >= partition.next_offset]
    for expected, (offset, _, _) in enumerate(new, partition.next_offset):
        if offset != expected:
            raise Refusal(
                ResponseCode.INVALID_PARAMETER,
                f"topic[{topic.name}] queue {queue_id} has messages up to offset "
                f"{expected - 1}; the next came with offset {offset}: those between "
                "are missing",
            )
    stored = [
        appended(partition, [record for _, _, record in some], store_ms)
        for store_ms, some in groupby(new, key=lambda one: one[1])
    ]
    if stored:
        await asyncio.gather(*stored)
    return Answer(header=MessagesMirrored(next_offset=partition.end))


def _refuse_others(topic: ServedTopic) -> None:
    """A mirror is the only one that writes, and only to topics of users."""
    complaint = None
    if not topic.of_users:
        complaint = "is the broker's own"
    elif topic.writable:
        complaint = "takes messages of clients, so a mirror cannot; allowed: perm 4"
    if complaint:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER, f"topic[{topic.name}] {complaint}"
        )
