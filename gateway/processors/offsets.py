"""Offsets: how far groups have come, and where queues begin and end.

Source: ConsumerManageProcessor.java and AdminBrokerProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from ropeway.common.eager import eager, own_task
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, SUB, UPDATE, on_group, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    Offset,
    QueryConsumerOffset,
    SearchOffset,
    StoreTime,
    UpdateConsumerOffset,
)

_UPPER = "UPPER"


@handles(QueryConsumerOffset, on_topic(SUB, GET) & on_group(SUB, GET))
def query_consumer_offset(
    request: QueryConsumerOffset, context: Context
) -> Offset | Answer:
    """Where a group goes on in a queue."""
    node = context.node
    offset = node.offsets.get(request.consumer_group, request.topic, request.queue_id)
    if offset is not None:
        return Offset(offset=offset)
    if request.set_zero_if_not_found:
        topic = node.topics.get(request.topic)
        queues = topic.partitions if topic else ()
        # A queue that still has its first message: from there, so that a new group
        # does not lose what arrives before its first pull. A real broker says so
        # only where the queue has a message already.
        if 0 <= request.queue_id < len(queues) and queues[request.queue_id].first == 0:
            return Offset(offset=0)
    return Answer(
        ResponseCode.QUERY_NOT_FOUND,
        "Not found, maybe this group consumer boot first",
        fields={},
    )


@handles(UpdateConsumerOffset, on_topic(SUB, UPDATE) & on_group(SUB, UPDATE))
@eager
async def update_consumer_offset(
    request: UpdateConsumerOffset, context: Context
) -> Answer:
    """Where a group goes on from now on."""
    groups, name = context.node.groups, request.consumer_group
    if groups.get(name) is None and await own_task(groups.find(name)) is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {name:.200} not exist!"
        )
    if request.commit_offset < 0:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"commitOffset is {request.commit_offset}; allowed: 0 or more",
        )
    lookup.find_partition(context.node, request.topic, request.queue_id)
    queue = (request.consumer_group, request.topic, request.queue_id)
    if context.node.resets.pending and context.node.resets.get(*queue):
        return Answer(remark="Offset has been previously reset", fields={})
    context.node.offsets.commit(*queue, request.commit_offset)
    return Answer(fields={})


@handles(GetMaxOffset, on_topic(SUB, GET), reads=True)
def get_max_offset(request: GetMaxOffset, context: Context) -> Offset:
    """The offset that the next message of a queue will get."""
    # `committed` asks for less than the end only where appends can be in flight; our
    # logs make an entry visible when it is durable, so the two ends are one.
    partition = lookup.find_partition(context.node, request.topic, request.queue_id)
    return Offset(offset=partition.end)


@handles(GetMinOffset, on_topic(SUB, GET), reads=True)
def get_min_offset(request: GetMinOffset, context: Context) -> Offset:
    """The offset of the oldest message of a queue."""
    partition = lookup.find_partition(context.node, request.topic, request.queue_id)
    return Offset(offset=partition.first)


@handles(SearchOffset, on_topic(SUB, GET), reads=True)
async def search_offset(request: SearchOffset, context: Context) -> Offset:
    """The message of a queue that was stored at a time."""
    partition = lookup.find_partition(context.node, request.topic, request.queue_id)
    upper = request.boundary_type.upper() == _UPPER
    return Offset(offset=await partition.offset_at(request.timestamp, upper=upper))


@handles(GetEarliestMsgStoreTime, on_topic(SUB, GET), reads=True)
async def get_earliest_store_time(
    request: GetEarliestMsgStoreTime, context: Context
) -> StoreTime:
    """When the oldest message of a queue was stored; -1 where there is none."""
    partition = lookup.find_partition(context.node, request.topic, request.queue_id)
    stored_ms = await partition.store_time(partition.first)
    return StoreTime(timestamp=-1 if stored_ms is None else stored_ms)
