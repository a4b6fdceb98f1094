"""How far groups are: their lag, and how old what they have not done is.

Source: AdminBrokerProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.node.node import now_ms
from gateway.processors import lookup
from gateway.processors.context import Answer, Context
from gateway.processors.dispatch import handles
from gateway.wire import admin_bodies, bodies
from gateway.wire.commands.admin import GetConsumeStats
from gateway.wire.commands.group_admin import QueryConsumeTimeSpan

if TYPE_CHECKING:
    from gateway.node.node import Node
    from gateway.node.topics import ServedTopic

_TOPIC_SEPARATOR = ";"


@handles(GetConsumeStats)
async def get_consume_stats(request: GetConsumeStats, context: Context) -> Answer:
    """How far a group is in every queue of its topics."""
    node = context.node
    pairs = []
    for name in _topics(request, node):
        topic = node.topics.get(name)
        for queue_id in range(topic.setup.read_queue_nums if topic else 0):
            assert topic is not None, "it has queues"
            queue = bodies.MessageQueue(node.config.broker, queue_id, name)
            progress = await _progress(node, request.consumer_group, topic, queue_id)
            pairs.append((queue, progress))
    stats = admin_bodies.ConsumeStats(offset_table=admin_bodies.object_map(pairs))
    return Answer(body=bodies.encode(stats))


def _topics(request: GetConsumeStats, node: Node) -> list[str]:
    """The topics that are asked for; by default those that the group has offsets in.

    What connected consumers no longer subscribe to is left out, unless asked for in a
    list.
    """
    group = request.consumer_group
    if listed := [
        one for one in (request.topic_list or "").split(_TOPIC_SEPARATOR) if one
    ]:
        return listed
    topics = [request.topic] if request.topic else node.offsets.topics(group)
    connected = node.clients.consumer_group(group)
    if connected is None or not connected.subscriptions:
        return topics
    return [topic for topic in topics if topic in connected.subscriptions]


async def _progress(
    node: Node, group: str, topic: ServedTopic, queue_id: int
) -> admin_bodies.QueueProgress:
    partition = topic.partitions[queue_id]
    offset = node.offsets.get(group, topic.name, queue_id) or 0
    done_ms = None
    if partition.first < offset <= partition.end:
        done_ms = await partition.store_time(offset - 1)
    return admin_bodies.QueueProgress(
        broker_offset=partition.end,
        consumer_offset=offset,
        last_timestamp=done_ms or 0,
        pull_offset=offset,
    )


@handles(QueryConsumeTimeSpan)
async def query_consume_time_span(
    request: QueryConsumeTimeSpan, context: Context
) -> Answer:
    """How old what a group has and has not done of a topic is."""
    topic = lookup.find_topic(context.node, request.topic)
    spans = [
        await _time_span(context.node, request.group, topic, queue_id)
        for queue_id in range(len(topic.partitions))
    ]
    return Answer(body=bodies.encode(admin_bodies.QueueTimeSpans(spans)))


async def _time_span(
    node: Node, group: str, topic: ServedTopic, queue_id: int
) -> admin_bodies.QueueTimeSpan:
    partition = topic.partitions[queue_id]
    offset = node.offsets.get(group, topic.name, queue_id) or 0

    async def stored_ms(at: int) -> int | None:
        if not partition.first <= at < partition.end:
            return None
        return await partition.store_time(at)

    oldest_ms = await stored_ms(partition.first)
    done_ms = await stored_ms(offset - 1) if offset else oldest_ms
    next_ms = await stored_ms(max(offset, partition.first))
    return admin_bodies.QueueTimeSpan(
        consume_time_stamp=_or_none(done_ms),
        delay_time=0 if next_ms is None else now_ms() - next_ms,
        max_time_stamp=_or_none(await stored_ms(partition.end - 1)),
        message_queue=bodies.MessageQueue(node.config.broker, queue_id, topic.name),
        min_time_stamp=_or_none(oldest_ms),
    )


def _or_none(time_ms: int | None) -> int:
    """-1 is how the protocol says that there is no time."""
    return -1 if time_ms is None else time_ms
