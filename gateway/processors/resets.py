"""Moving groups: to a time, to an offset, to where another group is.

Source: AdminBrokerProcessor.resetOffsetInner and cloneGroupOffset, and Broker2Client
.resetOffset, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors import auto_create, callbacks
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    UPDATE,
    on_group,
    on_topic,
    on_topic_if_given,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.group_admin import CloneGroupOffset, ResetOffset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.node.node import Node
    from ropeway.gateway.node.served_topic import ServedTopic

_NO_OFFSET = -1


@handles(ResetOffset, on_topic(UPDATE) & on_group(UPDATE, field="group"))
async def reset_offset(request: ResetOffset, context: Context) -> Answer:
    """Have a group go on at a time or an offset, whether it is connected or not."""
    node = context.node
    topic = node.topics.get(request.topic)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST, f"Topic {request.topic:.200} does not exist"
        )
    if await node.groups.find(request.group) is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"Group {request.group:.200} does not exist",
        )
    offsets = {
        queue_id: await _wanted(request, node, topic, queue_id)
        for queue_id in _queue_ids(request, topic)
    }
    queues = _move(request, node, topic, offsets)
    await node.offsets.flush()
    moved = admin_bodies.ResetOffsets(admin_bodies.object_map(queues.items()))
    return Answer(body=bodies.encode(moved))


def _queue_ids(request: ResetOffset, topic: ServedTopic) -> list[int]:
    queues = topic.setup.read_queue_nums
    if request.queue_id < 0:
        return list(range(queues))
    if request.queue_id >= queues:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{request.queue_id}] is illegal, topic {topic.name} has queues "
            f"0 to {queues - 1}",
        )
    return [request.queue_id]


async def _wanted(
    request: ResetOffset, node: Node, topic: ServedTopic, queue_id: int
) -> int:
    """Where the group goes on in a queue."""
    partition = topic.partitions[queue_id]
    offset = request.offset
    if request.queue_id >= 0 and offset not in (None, _NO_OFFSET):
        assert offset is not None
        if not partition.first <= offset <= partition.end:
            raise Refusal(
                ResponseCode.SYSTEM_ERROR,
                f"Target offset {offset} not in consume queue range "
                f"[{partition.first}-{partition.end}]",
            )
        return offset
    if request.timestamp < 0:
        offset = partition.end
    else:
        offset = await partition.offset_at(request.timestamp)
    if not request.is_force:
        committed = node.offsets.get(request.group, topic.name, queue_id)
        if committed is not None:
            return min(offset, committed)
    return offset


def _move(
    request: ResetOffset, node: Node, topic: ServedTopic, offsets: Mapping[int, int]
) -> dict[bodies.MessageQueue, int]:
    """Move the group, and see that its consumers hear of it."""
    queues = {
        bodies.MessageQueue(node.config.broker, queue_id, topic.name): offset
        for queue_id, offset in offsets.items()
    }
    connected = node.clients.consumer_group(request.group)
    if connected is None:
        node.resets.put(request.group, topic.name, offsets)
    else:
        # What was pulled in vain before is answered after they have been told.
        told = callbacks.tell_reset(connected, request, queues)
        untold = connected.members.keys() - told
        node.resets.put(request.group, topic.name, offsets, told, untold)
        for queue_id in offsets if untold else ():
            node.pull_hold.release(topic.partitions[queue_id])
    node.pulled.forget(group=request.group, topic=topic.name)
    return queues


@handles(
    CloneGroupOffset,
    on_group(UPDATE, field="dest_group")
    & on_group(GET, field="src_group")
    & on_topic_if_given(UPDATE),
)
async def clone_offsets(request: CloneGroupOffset, context: Context) -> Answer:
    """Have one group go on where another one is."""
    node = context.node
    source, target = request.src_group, request.dest_group
    await auto_create.ensure_group(
        context, target, f"Group {target:.200} does not exist"
    )
    names = [request.topic] if request.topic else node.offsets.topics(source)
    connected = node.clients.consumer_group(source)
    for name in names:
        topic = node.topics.get(name)
        if topic is None or (
            not request.offline
            and connected is not None
            and connected.subscriptions
            and name not in connected.subscriptions
        ):
            continue
        offsets = {
            queue_id: offset
            for queue_id, offset in node.offsets.queues(source, name).items()
            if queue_id < len(topic.partitions)
        }
        if offsets:
            reset = ResetOffset(group=target, topic=name, timestamp=0, is_force=True)
            _move(reset, node, topic, offsets)
    await node.offsets.flush()
    return Answer()
