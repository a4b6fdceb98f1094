"""Routes and assignments: each broker with its own address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import ListenerConfig
from ropeway.gateway.grpc.protocol import (
    AddressScheme,
    Code,
    MessageType,
    Permission,
    QueryAssignmentRequest,
    QueryRouteRequest,
    Resource,
)
from ropeway.routing.api import PERM_READ, PERM_WRITE, Topic
from tests.gateway.grpc.thin import Thin, create, in_order, serving
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


def route(topic: str) -> QueryRouteRequest:
    return QueryRouteRequest(topic=Resource(name=topic))


def assignment(topic: str, group: str) -> QueryAssignmentRequest:
    return QueryAssignmentRequest(
        topic=Resource(name=topic), group=Resource(name=group)
    )


@looped
async def test_a_route_has_every_queue_with_the_address_that_was_asked(tmp_path: Path):
    listeners = (ListenerConfig(port=0), ListenerConfig(port=0))
    async with serving(tmp_path, listeners=listeners) as (app, client):
        await create(app, "orders", "FIFO", queues=3)
        for listener in app.server.listeners:
            thin = Thin(listener.advertised)
            answer = await thin.call("QueryRoute", route("orders"))
            await thin.close()
            assert answer.status.code == Code.OK
            assert [one.id for one in answer.message_queues] == [0, 1, 2]
            for queue in answer.message_queues:
                (address,) = queue.broker.endpoints.addresses
                assert f"{address.host}:{address.port}" == listener.advertised
                assert queue.broker.endpoints.scheme == AddressScheme.IPv4
                assert queue.broker.name == "broker-0"
                assert queue.permission == Permission.READ_WRITE
                assert list(queue.accept_message_types) == [MessageType.FIFO]
        missing = await client.call("QueryRoute", route("nowhere"))
        assert missing.status.code == Code.TOPIC_NOT_FOUND


@looped
async def test_queues_say_what_may_be_done_with_them(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        for name, perm in {"r": PERM_READ, "w": PERM_WRITE, "n": 0}.items():
            setup = Topic(name=name, read_queue_nums=2, write_queue_nums=1, perm=perm)
            await app.node.topics.put(setup)
        found = {
            name: [
                one.permission
                for one in (await client.call("QueryRoute", route(name))).message_queues
            ]
            for name in "rwn"
        }
        assert found == {
            "r": [Permission.READ, Permission.READ],
            "w": [Permission.WRITE],
            "n": [Permission.NONE],
        }
        refused = await client.call("QueryAssignment", assignment("w", "readers"))
        assert refused.status.code == Code.FORBIDDEN


@looped
async def test_who_consumes_in_order_gets_each_queue(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", queues=3)
        await in_order(app, "ordered")
        for group, ids in {"readers": [-1], "ordered": [0, 1, 2]}.items():
            answer = await client.call("QueryAssignment", assignment("orders", group))
            assert [one.message_queue.id for one in answer.assignments] == ids


@looped
async def test_no_queue_brings_back_what_nobody_knows(tmp_path: Path):
    """Before, a request of 1 MB for 256 queues was answered with 256 MB."""
    unknown = bytes((0xFA, 0x01)) + bytes((100,)) + b"x" * 100
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", queues=3)
        await in_order(app, "ordered")
        asked, assigned = route("orders"), assignment("orders", "ordered")
        for request in (asked, assigned):
            request.topic.MergeFromString(unknown)
            assert unknown in request.SerializeToString()
        routes = await client.call("QueryRoute", asked)
        assignments = await client.call("QueryAssignment", assigned)
        for answer in (routes, assignments):
            assert answer.status.code == Code.OK
            assert unknown not in answer.SerializeToString()
        assert [one.topic.name for one in routes.message_queues] == ["orders"] * 3
