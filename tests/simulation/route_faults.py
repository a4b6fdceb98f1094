"""Faults between nodes and ZooKeeper, where their routes are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ropeway.routing.zookeeper.zookeeper_config import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.simulation.node import Node
    from tests.simulation.plan import Fault
    from tests.simulation.world import World
    from tests.simulation.zookeeper_servers import Connection


def _connection(world: World, node: Node) -> Connection | None:
    """A node's connection to a server, if it has one."""
    if world.zookeeper is None or node.process is None:
        return None
    return world.zookeeper.connection(node.process)


def _may_fail(world: World, node: Node, fault: Fault) -> None:
    """A start that does not reach the routes for long is given up, and begun again."""
    until_s = world.loop.time() + fault.for_s + WAIT_S
    node.may_fail_until_s = max(node.may_fail_until_s, until_s)


async def _expire(world: World, node: Node, fault: Fault) -> bool:
    connection = _connection(world, node)
    if connection is None or connection.session is None:
        return False
    assert world.zookeeper is not None
    world.zookeeper.ended[connection.session.number] = None
    world.zookeeper.expire(connection.session)
    return True


async def _drop(world: World, node: Node, fault: Fault) -> bool:
    connection = _connection(world, node)
    if connection is None:
        return False
    connection.server.close(connection)
    return True


async def _lose(world: World, node: Node, fault: Fault) -> bool:
    connection = _connection(world, node)
    if connection is None:
        return False
    session, ensemble = connection.session, world.zookeeper
    if session is None or ensemble is None:
        return False

    def lose(request: Any) -> None:
        connection.loses = None
        if fault.number % 3 == 0:
            # It is made, and nobody hears of it.
            ensemble.submit(session.number, request)
        connection.server.close(connection)

    connection.loses = lose
    await asyncio.sleep(fault.for_s)
    is_lost, connection.loses = connection.loses is None, None
    return is_lost


async def _half_open(world: World, node: Node, fault: Fault) -> bool:
    connection = _connection(world, node)
    if connection is None:
        return False
    # It stays so: who does not look whether anybody is there never hears of it.
    connection.silent = True
    _may_fail(world, node, fault)
    return True


async def _cut(world: World, node: Node, fault: Fault) -> bool:
    if world.zookeeper is None:
        return False
    for server in world.zookeeper.servers:
        world.network.cut(node.host, server.process.host, fault.for_s)
        world.network.cut(server.process.host, node.host, fault.for_s)
    _may_fail(world, node, fault)
    await asyncio.sleep(fault.for_s)
    return True


async def _down(world: World, node: Node, fault: Fault) -> bool:
    if world.zookeeper is None:
        return False
    world.zookeeper.stop(fault.for_s)
    _may_fail(world, node, fault)
    await asyncio.sleep(fault.for_s)
    return True


DOING: dict[str, Callable[[World, Node, Fault], Awaitable[bool]]] = {
    "zk_expire": _expire,
    "zk_drop": _drop,
    "zk_lose": _lose,
    "zk_half_open": _half_open,
    "zk_cut": _cut,
    "zk_down": _down,
}
