"""How far groups are: their lag, and how old what they have not done is.

Source: AdminBrokerProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    Needs,
    group_need,
    on_cluster,
    on_group,
    on_topic,
    on_topic_if_given,
    topic_needs,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetConsumeStats
from ropeway.gateway.wire.commands.broker_admin import GetBrokerConsumeStats
from ropeway.gateway.wire.commands.group_admin import (
    QueryConsumeTimeSpan,
    QueryCorrectionOffset,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Need
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.node.served_topic import ServedTopic

    _Pair = tuple[bodies.MessageQueue, admin_bodies.QueueProgress]

_TOPIC_SEPARATOR = ";"
_GROUP_SEPARATOR = ","
_FEW_TOPICS = 64
"""Of a group that was in more, one request of a flow is worked on at a time."""
_WAITING_BYTES = 4096
"""What such a request takes while it waits for those before it, about."""
_NO_CORRECTION = 2**63 - 1


def _listed(request: GetConsumeStats, context: Context) -> Iterator[Need]:
    for name in _names(request.topic_list, _TOPIC_SEPARATOR, context):
        yield from topic_needs(context.node, name, (GET,))


def _filtered(request: QueryCorrectionOffset, context: Context) -> Iterator[Need]:
    for name in _names(request.filter_groups, _GROUP_SEPARATOR, context):
        yield group_need(name, (GET,))


@handles(GetConsumeStats, on_group(GET) & on_topic_if_given(GET) & Needs(_listed))
async def get_consume_stats(request: GetConsumeStats, context: Context) -> Answer:
    """How far a group is in every queue of its topics."""
    names, slices = _topics(request, context), context.slices()
    if len(names) <= _FEW_TOPICS:
        return await _stats(request, names, context)
    await slices.begin_large(_WAITING_BYTES)
    try:
        return await _stats(request, names, context)
    finally:
        slices.end_large()


async def _stats(
    request: GetConsumeStats, names: list[str], context: Context
) -> Answer:
    node, slices, pairs = context.node, context.slices(), []
    for name in names:
        await slices.pause()
        if context.peer.closed:
            break
        if (topic := node.topics.get(name)) and context.shows(name):
            pairs += await _in_topic(node, request.consumer_group, topic)
    stats = admin_bodies.ConsumeStats(offset_table=admin_bodies.object_map(pairs))
    return Answer(body=bodies.encode(stats))


async def _in_topic(node: Node, group: str, topic: ServedTopic) -> list[_Pair]:
    return [
        (
            bodies.MessageQueue(node.config.broker, queue_id, topic.name),
            await _progress(node, group, topic, queue_id),
        )
        for queue_id in range(topic.setup.read_queue_nums)
    ]


def _topics(request: GetConsumeStats, context: Context) -> list[str]:
    """The topics that are asked for; by default those that the group has offsets in.

    What connected consumers no longer subscribe to is left out, unless asked for in a
    list.
    """
    node, group = context.node, request.consumer_group
    if listed := _names(request.topic_list, _TOPIC_SEPARATOR, context):
        return listed
    topics = [request.topic] if request.topic else node.offsets.topics(group)
    return _subscribed(node, group, topics)


def _names(joined: str | None, separator: str, context: Context) -> list[str]:
    """What is listed, each once.

    Raises:
        Refusal: It is too much.
    """
    listed = joined or ""
    count, allowed = listed.count(separator) + 1, context.node.config.requests.names
    if count > allowed:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"{count} names in a list; allowed: {allowed}",
        )
    return [one for one in dict.fromkeys(listed.split(separator)) if one]


def _subscribed(node: Node, group: str, topics: list[str]) -> list[str]:
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
    # What retention or an administrator has deleted is no lag: it goes on behind.
    offset = max(offset, partition.first)
    return admin_bodies.QueueProgress(
        broker_offset=partition.end,
        consumer_offset=offset,
        last_timestamp=done_ms or 0,
        pull_offset=max(offset, node.pulled.get(group, topic.name, queue_id)),
    )


@handles(GetBrokerConsumeStats, on_cluster(GET))
async def get_broker_consume_stats(
    request: GetBrokerConsumeStats, context: Context
) -> Answer:
    """How far every group is in each of its topics."""
    node = context.node
    groups = []
    behind = in_flight = 0
    for group in sorted(one.name for one in node.groups):
        found = []
        for name in _subscribed(node, group, node.offsets.topics(group)):
            topic = node.topics.get(name)
            if (
                topic is None
                or not context.shows(name)
                or (request.is_order and not topic.setup.order)
            ):
                continue
            pairs = await _in_topic(node, group, topic)
            behind += sum(one.broker_offset - one.consumer_offset for _, one in pairs)
            in_flight += sum(one.pull_offset - one.consumer_offset for _, one in pairs)
            table = admin_bodies.object_map(pairs)
            found.append(admin_bodies.ConsumeStats(offset_table=table))
        groups.append({group: found})
    stats = admin_bodies.ConsumeStatsList(
        broker_addr=context.peer.advertised,
        consume_stats_list=groups,
        total_diff=behind,
        total_inflight_diff=in_flight,
    )
    return Answer(body=bodies.encode(stats))


@handles(
    QueryCorrectionOffset,
    on_topic(GET) & on_group(GET, field="compare_group") & Needs(_filtered),
)
def query_correction_offset(request: QueryCorrectionOffset, context: Context) -> Answer:
    """The lowest offset of all groups in each queue, for one that follows them.

    A queue where the group itself is behind that gets the highest number there is.
    """
    node = context.node
    topic = lookup.find_topic(context.node, request.topic)
    left_out = set(_names(request.filter_groups, _GROUP_SEPARATOR, context))
    lowest: dict[int, int] = {}
    for group in node.offsets.groups():
        if group in left_out or names.is_inner(group):
            continue
        for queue_id, offset in node.offsets.queues(group, topic.name).items():
            if (
                queue_id < len(topic.partitions)
                and offset >= topic.partitions[queue_id].first
            ):
                lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
    own = node.offsets.queues(request.compare_group, topic.name)
    for queue_id, offset in own.items():
        if lowest.get(queue_id, offset) > offset:
            lowest[queue_id] = _NO_CORRECTION
    return Answer(body=bodies.encode(admin_bodies.CorrectedOffsets(lowest)))


@handles(QueryConsumeTimeSpan, on_topic(GET) & on_group(GET, field="group"))
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
