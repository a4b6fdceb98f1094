"""Compacted topics: the newest message of a key, and compacting now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, SUB, UPDATE, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.compaction import (
    CompactTopic,
    GetLatest,
    QueueCompaction,
    TopicCompaction,
)

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic


@handles(GetLatest, on_topic(SUB, GET))
async def get_latest(request: GetLatest, context: Context) -> Answer:
    """The newest message of a topic with a key."""
    node = context.node
    topic = _compacted(request.topic, context)
    if not topic.readable:
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic.name}] pulling message is forbidden",
        )
    await node.log.ready(topic.name)
    found = await node.compaction.latest(topic.name, request.key)
    if found is None:
        raise Refusal(
            ResponseCode.QUERY_NOT_FOUND,
            f"no message of topic {topic.name} has the key {request.key:.200}",
        )
    return Answer(body=found.data)


@handles(CompactTopic, on_topic(UPDATE))
async def compact_topic(request: CompactTopic, context: Context) -> Answer:
    """How far compaction of a topic is; once it is done, where that is asked for."""
    node = context.node
    topic = _compacted(request.topic, context)
    await node.log.ready(topic.name)
    if request.force:
        found = await node.compaction.compact(topic.name)
    else:
        found = await node.compaction.status(topic.name)
    queue_ids = {one.number: at for at, one in enumerate(topic.partitions)}
    queues = [
        QueueCompaction(
            queue_id=queue_ids[one.number],
            clean_end=one.clean_end,
            end=one.end,
            messages=one.clean_records,
            bytes=one.clean_bytes,
            problem=one.problem,
        )
        for one in found
        if one.number in queue_ids
    ]
    answer = TopicCompaction(broker_name=node.config.broker, queues=queues)
    return Answer(body=bodies.encode(answer))


def _compacted(name: str, context: Context) -> ServedTopic:
    topic = lookup.find_topic(context.node, name)
    if not topic.compacted:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"topic[{name}] has not the attribute cleanup.policy=COMPACTION",
        )
    return topic
