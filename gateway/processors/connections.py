"""Who is connected: consumers and producers by group.

Source: AdminBrokerProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    on_cluster,
    on_group,
    on_topic_if_given,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    GetConsumerConnectionList,
    GetProducerConnectionList,
)
from ropeway.gateway.wire.commands.broker_admin import GetAllProducerInfo
from ropeway.gateway.wire.commands.group_admin import QuerySubscriptionByConsumer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.node.clients import ConsumerGroup, Member


@handles(GetConsumerConnectionList, on_group(GET))
def get_consumer_connections(
    request: GetConsumerConnectionList, context: Context
) -> Answer:
    """The clients that consume in a group, and what they want."""
    group = context.node.clients.consumer_group(request.consumer_group)
    if group is None:
        raise Refusal(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"the consumer group[{request.consumer_group:.200}] not online",
        )
    data = group.data
    found = admin_bodies.ConsumerConnection(
        connection_set=_connections(group.members.values()),
        consume_from_where=bodies.named(data.consume_from_where, bodies.WHERES),
        consume_type=bodies.named(data.consume_type, bodies.TYPES),
        message_model=bodies.named(data.message_model, bodies.MODELS),
        subscription_table={
            topic: wanted
            for topic in group.subscriptions
            if (wanted := subscription_data(group, topic))
        },
    )
    return Answer(body=bodies.encode(found))


@handles(GetProducerConnectionList, on_cluster(GET))
def get_producer_connections(
    request: GetProducerConnectionList, context: Context
) -> Answer:
    """The clients that produce in a group."""
    members = context.node.clients.producers(request.producer_group)
    if not members:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"the producer group[{request.producer_group:.200}] not exist",
        )
    found = admin_bodies.ProducerConnection(_connections(members))
    return Answer(body=bodies.encode(found))


@handles(GetAllProducerInfo, on_cluster(GET))
def get_all_producers(_: GetAllProducerInfo, context: Context) -> Answer:
    """The clients that produce, by group."""
    clients = context.node.clients
    table = admin_bodies.ProducerTable(
        {
            group: [
                admin_bodies.ProducerInfo(
                    client_id=member.client_id,
                    language=member.language,
                    last_update_timestamp=member.seen_ms,
                    remote_ip=f"/{member.link.address}",
                    version=member.version,
                )
                for member in clients.producers(group)
            ]
            for group in clients.producer_groups()
        }
    )
    return Answer(body=bodies.encode(table))


@handles(
    QuerySubscriptionByConsumer, on_group(GET, field="group") & on_topic_if_given(GET)
)
def query_subscription(
    request: QuerySubscriptionByConsumer, context: Context
) -> Answer:
    """What the connected consumers of a group want of a topic."""
    group = context.node.clients.consumer_group(request.group)
    data = subscription_data(group, request.topic or "") if group else None
    answer = admin_bodies.SubscriptionAnswer(
        request.group, data or msgspec.UNSET, request.topic or msgspec.UNSET
    )
    return Answer(body=bodies.encode(answer))


def _connections(members: Iterable[Member]) -> list[admin_bodies.ConnectionInfo]:
    return [
        admin_bodies.ConnectionInfo(
            client_addr=member.link.address,
            client_id=member.client_id,
            language=member.language,
            version=member.version,
        )
        for member in members
    ]


def subscription_data(
    group: ConsumerGroup, topic: str
) -> bodies.SubscriptionData | None:
    """What a group's members want of a topic; None where they want nothing."""
    known = group.subscriptions.get(topic)
    if known is None:
        return None
    tags = sorted(known.tags)
    return bodies.SubscriptionData(
        topic=topic,
        sub_string=known.expression,
        tags_set=tuple(tags),
        code_set=tuple(properties.tag_hash(tag) for tag in tags),
        sub_version=known.version,
        expression_type=known.expression_type,
    )
