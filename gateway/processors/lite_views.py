"""What administrators ask of lite topics: who subscribes, and who is behind.

Source: LiteManagerProcessor.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import UNSET

from ropeway.gateway.lite import lite_attributes, names
from ropeway.gateway.node import attributes
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    UPDATE,
    Needs,
    on_cluster,
    on_group,
    on_topic,
    topic_needs,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies, lite_bodies
from ropeway.gateway.wire.admin_bodies import QueueProgress, TopicOffset
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.lite_views import (
    GetBrokerLiteInfo,
    GetLiteClientInfo,
    GetLiteGroupInfo,
    GetLiteTopicInfo,
    GetParentTopicInfo,
    TriggerLiteDispatch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.acl.api import Need
    from ropeway.gateway.lite.subscribers import Subscriber
    from ropeway.gateway.lite.views import Lag
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.node.served_topic import ServedTopic

_MOST_NAMES = 10_000
"""LiteManagerProcessor.MAX_RETURN_COUNT."""
_MOST_LAGS = 1000
"""Each costs a look into the log."""
_NEVER = -1


@handles(GetBrokerLiteInfo, on_cluster(GET))
def get_broker_lite_info(_: GetBrokerLiteInfo, context: Context) -> Answer:
    """How many lite topics, subscriptions and offsets there are."""
    node = context.node
    subscribers = list(node.lite.subscribers)
    count = node.lite.count()
    offsets = node.offsets
    info = lite_bodies.BrokerLiteInfo(
        cq_table_size=sum(1 for _ in node.topics) + count,
        current_lmq_num=count,
        event_map_size=len(subscribers),
        group_meta=_groups(node),
        lite_subscription_count=sum(len(_named(one)) for one in subscribers),
        max_lmq_num=node.config.limits.lite_topics,
        offset_table_size=sum(len(offsets.topics(one)) for one in offsets.groups()),
        order_info_count=node.lite.views.in_hand(),
        store_type="default" if node.config.pulsar is None else "pulsar",
        topic_meta={one.name: _minutes(one) for one in node.topics if one.of_lites},
    )
    return Answer(body=bodies.encode(info))


def _groups(node: Node) -> dict[str, list[str]]:
    """The groups that consume lite topics, by parent."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for group in node.groups:
        if parent := lite_attributes.of_group(group.attributes).parent:
            found[parent].append(group.name)
    return {parent: sorted(groups) for parent, groups in sorted(found.items())}


def _minutes(topic: ServedTopic) -> int:
    return int(topic.setup.attributes.get(attributes.LITE_EXPIRATION, _NEVER))


@handles(GetParentTopicInfo, on_topic(GET))
def get_parent_topic_info(request: GetParentTopicInfo, context: Context) -> Answer:
    """How many lite topics a topic has, and the groups that consume them."""
    node = context.node
    topic = _parent(node, request.topic)
    info = lite_bodies.ParentTopicInfo(
        groups=_groups(node).get(topic.name, UNSET),
        lite_topic_count=node.lite.views.topics_of(topic.name),
        lmq_num=node.lite.count(),
        topic=topic.name,
        ttl=_minutes(topic),
    )
    return Answer(body=bodies.encode(info))


@handles(GetLiteTopicInfo, on_topic(GET, field="parent_topic"))
async def get_lite_topic_info(request: GetLiteTopicInfo, context: Context) -> Answer:
    """How many messages a lite topic has, and who subscribes to it."""
    node, lite = context.node, request.lite_topic
    topic = _parent(node, request.parent_topic)
    count, last_ms = await node.lite.views.size(topic.name, lite)
    known = node.routes.topics.get(topic.name)
    info = lite_bodies.LiteTopicInfo(
        lite_topic=lite,
        parent_topic=topic.name,
        sharding_to_broker=known is None
        or not known.route
        or names.broker(lite, known.route) == node.config.broker,
        subscriber=[
            lite_bodies.ClientGroup(client_id, group)
            for client_id, group in dict.fromkeys(
                # As a real broker names a group that wants all.
                ("*" if one.wants_all else one.client_id, one.group)
                for one in node.lite.subscribers.of(topic.name, lite)
            )
        ],
        topic_offset=TopicOffset(
            last_update_timestamp=last_ms, max_offset=count, min_offset=0
        ),
    )
    return Answer(body=bodies.encode(info))


@handles(
    GetLiteClientInfo,
    on_topic(GET, field="parent_topic") & on_group(GET, field="group"),
)
def get_lite_client_info(request: GetLiteClientInfo, context: Context) -> Answer:
    """What a client subscribes to."""
    node, group = context.node, request.group
    topic = _parent(node, request.parent_topic)
    if _parent_of(node, group) != topic.name:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"Subscription [{group}]-[{topic.name}] not match.",
        )
    if request.max_count <= 0:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"maxCount is {request.max_count}; allowed: 1 and more",
        )
    one = node.lite.subscribers.find(group, request.client_id)
    most = min(request.max_count, _MOST_NAMES)
    info = lite_bodies.LiteClientInfo(
        client_id=request.client_id,
        group=group,
        last_access_time=_NEVER if one is None else one.seen_ms,
        lite_topic_count=-1 if one is None else len(_named(one)),
        lite_topic_set=UNSET if one is None else list(islice(_named(one), most)),
        parent_topic=topic.name,
    )
    return Answer(body=bodies.encode(info))


def _named(one: Subscriber) -> list[str]:
    """What a client subscribes to, as a real broker names it.

    All lite topics are one name: LiteSubscriptionRegistryImpl, RocketMQ 5.5.0.
    """
    if one.wants_all:
        return [f"{one.parent}@{one.group}"]
    return [names.queue_name(one.parent, lite) for lite in one.lites]


def _consumed_by(request: GetLiteGroupInfo, context: Context) -> Iterator[Need]:
    # Whoever may make groups binds one to any topic: what is told of that takes more.
    group = context.node.groups.get(request.group)
    if group and (parent := lite_attributes.of_group(group.attributes).parent):
        yield from topic_needs(context.node, parent, (GET,))


@handles(GetLiteGroupInfo, on_group(GET, field="group") & Needs(_consumed_by))
async def get_lite_group_info(request: GetLiteGroupInfo, context: Context) -> Answer:
    """How far behind a group is, in one lite topic or in all."""
    node, group = context.node, request.group
    parent = _consumed(node, group)
    if request.lite_topic:
        info = await _in_one(node, parent, request.lite_topic, group)
    elif request.top_k < 1:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"topK is {request.top_k}; allowed: 1 to {_MOST_LAGS}",
        )
    else:
        lags = await node.lite.views.lags(parent, group, min(request.top_k, _MOST_LAGS))
        info = lite_bodies.LiteGroupInfo(
            earliest_unconsumed_timestamp=(
                lags.oldest[0].earliest_ms if lags.oldest else _NEVER
            ),
            group=group,
            lag_count_top_k=_shown(lags.largest),
            lag_timestamp_top_k=_shown(lags.oldest),
            parent_topic=parent,
            total_lag_count=lags.total,
        )
    return Answer(body=bodies.encode(info))


async def _in_one(
    node: Node, parent: str, lite: str, group: str
) -> lite_bodies.LiteGroupInfo:
    views = node.lite.views
    found = await views.position(parent, lite, group)
    if found is None:
        count, _ = await views.size(parent, lite)
        return lite_bodies.LiteGroupInfo(
            earliest_unconsumed_timestamp=_NEVER,
            group=group,
            lite_topic=lite,
            parent_topic=parent,
            total_lag_count=0 if count else -1,
        )
    return lite_bodies.LiteGroupInfo(
        earliest_unconsumed_timestamp=found.earliest_ms,
        group=group,
        lite_topic=lite,
        lite_topic_offset_wrapper=QueueProgress(
            broker_offset=found.messages,
            consumer_offset=found.done,
            last_timestamp=found.done_ms,
            pull_offset=0,
        ),
        parent_topic=parent,
        total_lag_count=found.messages - found.done,
    )


def _shown(lags: Sequence[Lag]) -> list[lite_bodies.LiteLag]:
    return [
        lite_bodies.LiteLag(
            earliest_unconsumed_timestamp=one.earliest_ms,
            lag_count=one.messages,
            lite_topic=one.lite,
        )
        for one in lags
    ]


@handles(TriggerLiteDispatch, on_group(UPDATE, field="group"))
def trigger_lite_dispatch(request: TriggerLiteDispatch, context: Context) -> Answer:
    """Have clients look at all that they subscribe to."""
    _consumed(context.node, request.group)
    context.node.lite.look_again(request.group, request.client_id or None)
    return Answer()


def _parent(node: Node, name: str) -> ServedTopic:
    """The topic with lite topics of that name.

    Raises:
        Refusal: There is no such topic, or it has none.
    """
    topic = node.topics.get(name)
    if topic is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"Topic [{name:.200}] not exist.")
    if not topic.of_lites:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER, f"Topic [{topic.name}] type not match."
        )
    return topic


def _parent_of(node: Node, name: str) -> str:
    """The topic whose lite topics a group consumes; empty for another group.

    Raises:
        Refusal: There is no such group.
    """
    group = node.groups.get(name)
    if group is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"Group [{name:.200}] not exist.",
        )
    return lite_attributes.of_group(group.attributes).parent


def _consumed(node: Node, name: str) -> str:
    """The same.

    Raises:
        Refusal: There is no such group, or it consumes no lite topics.
    """
    parent = _parent_of(node, name)
    if not parent:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER, f"Group [{name}] is not a LITE group."
        )
    return parent
