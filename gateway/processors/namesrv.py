"""The name server: where topics are, who the brokers are, and small settings.

A client keeps an answer for half a minute, so none is given before the route store has
caught up with what other nodes changed.

Source: DefaultRequestProcessor.java and RouteInfoManager.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import names
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    LIST,
    PUB,
    SUB,
    UPDATE,
    on_cluster,
    on_every_topic,
    on_topic,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.write_permission import perm_on
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import (
    DeleteKvConfig,
    DeleteTopicInNamesrv,
    GetAllTopicList,
    GetBrokerClusterInfo,
    GetKvConfig,
    GetRouteInfo,
    KvValue,
    PutKvConfig,
)
from ropeway.gateway.wire.commands.namesrv_admin import (
    GetKvList,
    GetSystemTopicListFromNamesrv,
    GetTopicsByCluster,
)
from ropeway.routing.api import PERM_WRITE, SENT_BACK, Topic
from ropeway.storage.api import MAX_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.gateway.wire.header import Header
    from ropeway.routing.api import RouteStore

ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"
"""Settings here say which queues an ordered topic has, for clients that ask."""


@handles(GetRouteInfo, on_topic(PUB, SUB, GET), anywhere=True)
async def get_route_info(request: GetRouteInfo, context: Context) -> Answer:
    """Which brokers have a topic's queues, of those that run.

    In a migration, those of the source for what has not moved.
    """
    routes = await _caught_up(context)
    brokers = _brokers(context, routes)
    topic = await routes.find_topic(request.topic)
    source = None if request.own_only else context.node.source
    theirs = None
    if source is not None and (
        topic is None
        or (topic.mirrored and topic.writes != SENT_BACK)
        or _is_of_both(request.topic, context)
    ):
        theirs = await source.find(request.topic, brokers)
        if topic is None or topic.is_at_source:
            if theirs is not None:
                return Answer(body=theirs.body)
            topic = None
    topic = topic or _coming(request.topic, brokers, context)
    places = [
        (broker, len(partitions))
        for broker, partitions in (topic.route.items() if topic else ())
        if broker in brokers
    ]
    if topic is None or not places:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic route info in name server for the topic: {request.topic:.200}",
        )
    # Of a mirror that is asked about as one of both, producers are led here.
    is_led = theirs is not None and topic.mirrored
    perm = PERM_WRITE if is_led else topic.perm
    if topic.mirrored and topic.writes == SENT_BACK:
        perm |= PERM_WRITE
    order = routes.settings.get((ORDER_TOPIC_NAMESPACE, request.topic))
    route = bodies.TopicRoute(
        broker_datas=[brokers[broker] for broker, _ in places],
        order_topic_conf=order if order is not None else msgspec.UNSET,
        queue_datas=[
            bodies.QueueData(
                broker_name=broker,
                perm=perm_on(routes, broker, perm),
                read_queue_nums=min(topic.read_queue_nums, queues),
                topic_sys_flag=topic.topic_sys_flag,
                write_queue_nums=min(topic.write_queue_nums, queues),
            )
            for broker, queues in places
        ],
    )
    if theirs is not None:
        queues = theirs.route.queue_datas
        if is_led:
            queues = [
                msgspec.structs.replace(one, perm=one.perm & ~PERM_WRITE)
                for one in queues
            ]
        route = msgspec.structs.replace(
            route,
            broker_datas=[*route.broker_datas, *theirs.route.broker_datas],
            queue_datas=[*route.queue_datas, *queues],
        )
    return Answer(body=bodies.encode(route))


def _is_of_both(name: str, context: Context) -> bool:
    """Whether clients need the topics of both clusters that have a name.

    A group has retries wherever it consumes, and a reply belongs where the client is
    that waits for it.
    """
    return names.is_derived(name) or name == names.reply_topic(
        context.node.config.cluster
    )


def _coming(name: str, brokers: Collection[str], context: Context) -> Topic | None:
    """A group's retry topic, before the group's first heartbeat makes it.

    A consumer asks for its route before it sends that, and again half a minute later:
    for so long a real name server has a new group wait for what it refused.
    """
    group_name = name.removeprefix(names.RETRY_PREFIX)
    if group_name == name or names.group_complaint(group_name):
        return None
    node = context.node
    group = node.groups.get(group_name)
    if group is None and not node.config.topics.auto_create_groups:
        return None
    queues = min(group.retry_queue_nums, MAX_PARTITIONS) if group is not None else 1
    return Topic(
        name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        route={broker: list(range(queues)) for broker in brokers},
    )


async def _caught_up(context: Context) -> RouteStore:
    routes = context.node.routes
    await routes.catch_up()
    return routes


def _brokers(context: Context, routes: RouteStore) -> dict[str, bodies.BrokerData]:
    """The brokers that run, by name, with the addresses for who asks.

    Each is told by the listener that is the counterpart of the one asked. This one
    runs, whatever the route store knows of it.
    """
    config = context.node.config
    asked = context.peer.advertised
    known = routes.brokers
    us = next(
        (one for one in known.get(config.broker, ()) if asked in one.addresses), None
    )
    index = us.addresses.index(asked) if us else 0
    brokers = {config.broker: _broker(config.broker, config.cluster, [asked])}
    for name, nodes in known.items():
        addresses = [one.addresses[min(index, len(one.addresses) - 1)] for one in nodes]
        if name != config.broker or us is not None:
            brokers[name] = _broker(name, nodes[0].cluster, addresses)
    return brokers


def _broker(name: str, cluster: str, addresses: list[str]) -> bodies.BrokerData:
    # Broker ids are quoted: a real broker leaves the quotes out for Go and C++, and
    # every client reads quoted ones.
    return bodies.BrokerData(
        broker_addrs={str(rank): one for rank, one in enumerate(addresses)},
        broker_name=name,
        cluster=cluster,
    )


@handles(GetBrokerClusterInfo, on_cluster(GET), anywhere=True)
async def get_broker_cluster_info(_: GetBrokerClusterInfo, context: Context) -> Answer:
    """Every broker that runs, and the brokers of every cluster."""
    routes = await _caught_up(context)
    brokers = dict(sorted(_brokers(context, routes).items()))
    clusters: dict[str, list[str]] = {}
    for name, broker in brokers.items():
        clusters.setdefault(broker.cluster, []).append(name)
    info = bodies.ClusterInfo(broker_addr_table=brokers, cluster_addr_table=clusters)
    return Answer(body=bodies.encode(info))


@handles(GetAllTopicList, on_every_topic(GET, LIST), anywhere=True)
async def get_all_topic_list(_: GetAllTopicList, context: Context) -> Answer:
    """The names of all topics."""
    topics = sorted(filter(context.shows, (await _caught_up(context)).topics))
    return Answer(body=bodies.encode(bodies.TopicList(topic_list=topics)))


@handles(GetTopicsByCluster, on_every_topic(GET, LIST), anywhere=True)
async def get_topics_by_cluster(
    request: GetTopicsByCluster, context: Context
) -> Answer:
    """The names of the topics that a cluster's brokers have."""
    routes = await _caught_up(context)
    brokers = {
        name
        for name, broker in _brokers(context, routes).items()
        if broker.cluster == request.cluster
    }
    topics = sorted(
        name
        for name, topic in routes.topics.items()
        if not brokers.isdisjoint(topic.route) and context.shows(name)
    )
    return Answer(body=bodies.encode(bodies.TopicList(topic_list=topics)))


@handles(GetSystemTopicListFromNamesrv, on_every_topic(GET, LIST), anywhere=True)
async def get_system_topics(
    _: GetSystemTopicListFromNamesrv, context: Context
) -> Answer:
    """The topics named like clusters and brokers, and a broker that knows the rest."""
    brokers = _brokers(context, await _caught_up(context))
    names = {broker.cluster for broker in brokers.values()} | brokers.keys()
    topics = bodies.TopicList(
        broker_addr=context.peer.advertised, topic_list=sorted(names)
    )
    return Answer(body=bodies.encode(topics))


@handles(DeleteTopicInNamesrv, on_cluster(UPDATE), anywhere=True)
async def delete_topic_route(request: DeleteTopicInNamesrv, context: Context) -> Answer:
    """Forget a topic's route until its brokers register again.

    Brokers that run are asked to delete a topic themselves. Those that do not, and
    registered before the others deleted it, find it deleted when they come back.
    """
    await context.node.topics.delete_outdated(request.topic)
    return Answer()


def _refuse_access(namespace: str) -> None:
    """Keep clients from what the nodes keep for access control and of deletions."""
    if namespace.startswith((names.ACCESS_NAMESPACES, names.DELETIONS_NAMESPACE)):
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"namespace {namespace:.80} is for nodes alone; rules are changed by the "
            "acl and user commands",
        )


@handles(PutKvConfig, on_cluster(UPDATE), anywhere=True)
async def put_kv_config(request: PutKvConfig, context: Context) -> Answer:
    """Set a setting."""
    _refuse_access(request.namespace)
    await context.node.routes.put_setting(request.namespace, request.key, request.value)
    return Answer()


@handles(GetKvConfig, on_cluster(GET), anywhere=True)
async def get_kv_config(request: GetKvConfig, context: Context) -> Header:
    """A setting's value."""
    _refuse_access(request.namespace)
    settings = (await _caught_up(context)).settings
    value = settings.get((request.namespace, request.key))
    if value is None:
        raise Refusal(
            ResponseCode.QUERY_NOT_FOUND,
            f"No config item, Namespace: {request.namespace:.200} "
            f"Key: {request.key:.200}",
        )
    return KvValue(value=value)


@handles(DeleteKvConfig, on_cluster(UPDATE), anywhere=True)
async def delete_kv_config(request: DeleteKvConfig, context: Context) -> Answer:
    """Remove a setting."""
    _refuse_access(request.namespace)
    await context.node.routes.put_setting(request.namespace, request.key, None)
    return Answer()


@handles(GetKvList, on_cluster(GET), anywhere=True)
async def get_kv_list(request: GetKvList, context: Context) -> Answer:
    """All settings of a namespace."""
    _refuse_access(request.namespace)
    settings = (await _caught_up(context)).settings
    table = {
        key: value
        for (namespace, key), value in settings.items()
        if namespace == request.namespace
    }
    if not table:
        raise Refusal(
            ResponseCode.QUERY_NOT_FOUND,
            f"No config item, Namespace: {request.namespace:.200}",
        )
    return Answer(body=bodies.encode(admin_bodies.KvTable(table)))
