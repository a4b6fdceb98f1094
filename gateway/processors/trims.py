"""Trimming topics: their oldest messages are given up before retention does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.floors import trim
from ropeway.gateway.node.names import is_system_topic
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import DELETE, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.trims import QueueTrimmed, TopicTrimmed, TrimTopic

if TYPE_CHECKING:
    from ropeway.storage.api import Partition


@handles(TrimTopic, on_topic(DELETE))
async def trim_topic(request: TrimTopic, context: Context) -> Answer:
    """Give up a topic's messages below an offset or a time."""
    node = context.node
    topic = lookup.find_topic(node, request.topic)
    if is_system_topic(topic.name):
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"topic[{topic.name}] is the broker's own; it deletes there by itself",
        )
    if request.offset is not None and request.queue_id < 0:
        raise Refusal(ResponseCode.INVALID_PARAMETER, "an offset is one queue's")
    queues = range(topic.setup.read_queue_nums)
    if request.queue_id >= 0:
        if request.queue_id not in queues:
            raise Refusal(
                ResponseCode.INVALID_PARAMETER,
                f"topic[{topic.name}] has no queue {request.queue_id}; allowed: 0 to "
                f"{queues.stop - 1}",
            )
        queues = range(request.queue_id, request.queue_id + 1)
    await node.log.ready(topic.name)
    partitions = {queue_id: topic.partitions[queue_id] for queue_id in queues}
    before = {queue_id: one.first for queue_id, one in partitions.items()}
    floors = {one.number: await _floor(request, one) for one in partitions.values()}
    after = await trim(
        *(node.log, node.routes, topic.source, node.config.broker, floors),
        dry_run=request.dry_run,
    )
    trimmed = [
        QueueTrimmed(queue_id, before[queue_id], after[one.number])
        for queue_id, one in partitions.items()
    ]
    answer = TopicTrimmed(broker_name=node.config.broker, queues=trimmed)
    return Answer(body=bodies.encode(answer))


async def _floor(request: TrimTopic, partition: Partition) -> int:
    if request.offset is not None:
        return request.offset
    if request.timestamp < 0:
        return partition.end
    return await partition.offset_at(request.timestamp)
