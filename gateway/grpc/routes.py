"""QueryRoute and QueryAssignment: which broker has which queues, and where it is.

Each broker of the route comes with its own address: a client sends to the node that
leads the broker, whatever node it has asked. Brokers of a migration's source come with
this node's address, since it asks them for its clients.

Source: RouteActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    Address,
    AddressScheme,
    Assignment,
    Broker,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    QueryAssignmentResponse,
    QueryRouteResponse,
    Resource,
)
from ropeway.gateway.grpc.statuses import OK, RefusedError
from ropeway.gateway.lite import lite_attributes as lite_settings
from ropeway.gateway.node import message_types
from ropeway.gateway.processors.needs import SUB, group_need
from ropeway.gateway.wire import bodies, host_port
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.routing.api import PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import (
        QueryAssignmentRequest,
        QueryRouteRequest,
    )

_IPV4 = 4
_MASTER = "0"
_ANY_QUEUE = -1
_TYPES = {
    message_types.NORMAL: [MessageType.NORMAL],
    message_types.FIFO: [MessageType.FIFO],
    message_types.DELAY: [MessageType.DELAY],
    message_types.TRANSACTION: [MessageType.TRANSACTION],
    message_types.PRIORITY: [MessageType.PRIORITY],
    message_types.LITE: [MessageType.LITE],
    message_types.MIXED: [
        MessageType.NORMAL,
        MessageType.FIFO,
        MessageType.DELAY,
        MessageType.TRANSACTION,
    ],
}


@rpc("QueryRoute")
async def query_route(request: QueryRouteRequest, call: Call) -> QueryRouteResponse:
    """Every queue of a topic."""
    name = validation.topic(request.topic)
    route = await _route(name, call)
    topic = call.node.routes.topics.get(name)
    # Of one that is not here, nobody here knows.
    kind = (
        message_types.type_of_topic(name, topic.attributes)
        if topic is not None
        else message_types.MIXED
    )
    accepted = _TYPES.get(kind, [MessageType.MESSAGE_TYPE_UNSPECIFIED])
    brokers = _Brokers(route, call)
    named = _only_name(request.topic)
    queues = [
        MessageQueue(
            topic=named,
            id=queue_id,
            permission=permission,
            broker=brokers.of(data.broker_name, rank),
            accept_message_types=accepted,
        )
        for data in route.queue_datas
        for rank in brokers.ranks(data.broker_name)
        for queue_id, permission in _queues(data)
    ]
    return QueryRouteResponse(status=OK, message_queues=queues)


def _only_name(topic: Resource) -> Resource:
    """A topic without fields that are not known: each queue would bring them back."""
    return Resource(resource_namespace=topic.resource_namespace, name=topic.name)


async def _route(name: str, call: Call) -> bodies.TopicRoute:
    own_only = call.node.source is None
    reply = await call.do(GetRouteInfo(topic=name, own_only=own_only))
    return bodies.decode(bodies.TopicRoute, bytes(reply.body))


def _queues(data: bodies.QueueData) -> Iterator[tuple[int, Permission]]:
    """A broker's queues, and what may be done with each."""
    reads = data.read_queue_nums if data.perm & PERM_READ else 0
    writes = data.write_queue_nums if data.perm & PERM_WRITE else 0
    for queue_id in range(max(reads, writes, 1)):
        if queue_id < min(reads, writes):
            yield queue_id, Permission.READ_WRITE
        elif queue_id < reads:
            yield queue_id, Permission.READ
        elif queue_id < writes:
            yield queue_id, Permission.WRITE
        else:
            yield queue_id, Permission.NONE


class _Brokers:
    """The brokers of a route, as gRPC clients are told of them.

    Args:
        route: Of a topic.
        call: Who asks.
    """

    def __init__(self, route: bodies.TopicRoute, call: Call) -> None:
        self._known = {one.broker_name: one for one in route.broker_datas}
        self._ours = {call.node.config.broker, *call.node.routes.brokers}
        self._asked = call.advertised

    def ranks(self, name: str) -> Iterable[str]:
        """The nodes of a broker that clients are told of."""
        return self._known[name].broker_addrs if name in self._ours else (_MASTER,)

    def of(self, name: str, rank: str) -> Broker:
        """A node of a broker, and where clients reach it."""
        ours = name in self._ours
        address = self._known[name].broker_addrs[rank] if ours else self._asked
        host, port = host_port.split(address)
        return Broker(
            name=name,
            id=int(rank),
            endpoints=Endpoints(
                scheme=_scheme(host), addresses=[Address(host=host, port=port)]
            ),
        )


def _scheme(host: str) -> AddressScheme:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return AddressScheme.DOMAIN_NAME
    return AddressScheme.IPv4 if version == _IPV4 else AddressScheme.IPv6


@rpc("QueryAssignment")
async def query_assignment(
    request: QueryAssignmentRequest, call: Call
) -> QueryAssignmentResponse:
    """What a consumer is to ask for: of each broker any queue, or in order each one."""
    name = validation.group(request.group)
    await call.require(group_need(name, (SUB,)))
    group = call.node.groups.get(name)
    in_order = (
        group is not None
        and group.consume_message_orderly
        # In order or not, they are handed out by lite topic.
        and not lite_settings.of_group(group.attributes).parent
    )
    route = await _route(validation.topic(request.topic), call)
    brokers = _Brokers(route, call)
    topic = _only_name(request.topic)
    assignments = [
        Assignment(message_queue=_assigned(topic, data, brokers, queue_id))
        for data in route.queue_datas
        if data.perm & PERM_READ and data.read_queue_nums > 0
        for queue_id in (range(data.read_queue_nums) if in_order else (_ANY_QUEUE,))
    ]
    if not assignments:
        raise RefusedError(Code.FORBIDDEN, "no readable queue")
    return QueryAssignmentResponse(status=OK, assignments=assignments)


def _assigned(
    topic: Resource, data: bodies.QueueData, brokers: _Brokers, queue_id: int
) -> MessageQueue:
    both = PERM_READ | PERM_WRITE
    writable = data.perm & both == both
    return MessageQueue(
        topic=topic,
        id=queue_id,
        permission=Permission.READ_WRITE if writable else Permission.READ,
        broker=brokers.of(data.broker_name, _MASTER),
    )
