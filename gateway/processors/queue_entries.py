"""A queue's index, entry by entry, for people who look for what is wrong with it.

Source: AdminBrokerProcessor.queryConsumeQueue, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.connections import subscription_data
from ropeway.gateway.processors.context import Answer, Context
from ropeway.gateway.processors.needs import GET, on_group_if_given, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies, message, properties
from ropeway.gateway.wire.commands.broker_admin import QueryConsumeQueue

if TYPE_CHECKING:
    from ropeway.storage.api import Partition

MAX_COUNT = 1024
_MAX_BYTES = 4 * 1024 * 1024
"""Of the messages that are read for it, as for one pull."""


@handles(QueryConsumeQueue, on_topic(GET) & on_group_if_given(GET))
async def query_consume_queue(request: QueryConsumeQueue, context: Context) -> Answer:
    """Where messages of a queue are, how long they are, and the hashes of their tags.

    Where a group is named, what it wants of the topic comes with them.
    """
    topic = request.topic or ""
    partition = lookup.find_partition(context.node, topic, request.queue_id)
    wanted = filter_data = None
    if name := request.consumer_group:
        group = context.node.clients.consumer_group(name)
        wanted = subscription_data(group, topic) if group else None
        # What it means for groups that filter by tags; a JSON text in JSON.
        filter_data = "null" if wanted else f"{name:.200}@{topic} is not online!"
    found = admin_bodies.QueueEntries(
        subscription_data=wanted,
        filter_data=filter_data,
        queue_data=await _entries(partition, request.index, request.count),
        max_queue_index=partition.end,
        min_queue_index=partition.first,
    )
    return Answer(body=bodies.encode(found))


async def _entries(
    partition: Partition, index: int, count: int
) -> list[admin_bodies.QueueEntry]:
    if not partition.first <= index < partition.end or count <= 0:
        return []
    chunk = await partition.read(index, min(count, MAX_COUNT), _MAX_BYTES)
    return [_entry(record) for piece in chunk.data for record in message.split(piece)]


def _entry(record: memoryview) -> admin_bodies.QueueEntry:
    pairs = properties.parse(message.view_properties(record).decode())
    tags = pairs.get(properties.TAGS)
    return admin_bodies.QueueEntry(
        physic_offset=message.decode(record).message_id,
        physic_size=len(record),
        tags_code=properties.tag_hash(tags) if tags else 0,
    )
