"""Faults of Pulsar, and between it and nodes, where it has their log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.clients import ORDERS
from tests.simulation.pulsar_brokers import BUNDLES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.simulation.node import Node
    from tests.simulation.plan import Fault
    from tests.simulation.pulsar_brokers import Broker
    from tests.simulation.world import World

TRIMMED = f"/{ORDERS}-partition-"
"""Retention deletes of these: all others are kept for as long as a run lasts."""


def _broker(world: World, fault: Fault) -> Broker:
    assert world.pulsar is not None
    return world.pulsar.brokers[fault.number // 4 % len(world.pulsar.brokers)]


async def _kill(world: World, node: Node, fault: Fault) -> bool:
    broker = _broker(world, fault)
    process = broker.pulsar.kill(broker)
    if process is None:
        return False
    world.kill(process)
    await asyncio.sleep(fault.for_s)
    broker.start()
    return True


async def _unload(world: World, node: Node, fault: Fault) -> bool:
    assert world.pulsar is not None
    bundles = [fault.number % BUNDLES] if fault.number % 3 else [*range(BUNDLES)]
    unloaded = [world.pulsar.unload(one) for one in bundles]
    return any(unloaded)


async def _slow(world: World, node: Node, fault: Fault) -> bool:
    broker = _broker(world, fault)
    broker.is_slow = True
    await asyncio.sleep(fault.for_s)
    broker.is_slow = False
    return True


async def _freeze(world: World, node: Node, fault: Fault) -> bool:
    broker = _broker(world, fault)
    if broker.process is None:
        return False
    world.loop.hold(broker.process, fault.for_s)
    return True


async def _cut(world: World, node: Node, fault: Fault) -> bool:
    """Have nothing get from a node to the brokers, or back, or both."""
    assert world.pulsar is not None
    for broker in world.pulsar.brokers:
        if fault.number % 3 != 0:
            world.network.cut(node.host, broker.host, fault.for_s)
        if fault.number % 3 != 1:
            world.network.cut(broker.host, node.host, fault.for_s)
    await asyncio.sleep(fault.for_s)
    return True


async def _alone(world: World, node: Node, fault: Fault) -> bool:
    """Have clients alone reach a node: ZooKeeper is lost first, and Pulsar then."""
    assert world.pulsar is not None
    assert world.zookeeper is not None
    pulsar = [one.host for one in world.pulsar.brokers]
    zookeeper = [one.process.host for one in world.zookeeper.servers]
    left_s = fault.for_s
    for hosts, part in ((zookeeper, fault.number % 8), (pulsar, 16)):
        for host in hosts:
            world.network.cut(node.host, host, left_s)
            world.network.cut(host, node.host, left_s)
        wait_s = min(left_s, fault.for_s * part / 16)
        await asyncio.sleep(wait_s)
        left_s -= wait_s
    return True


async def _trim(world: World, node: Node, fault: Fault) -> bool:
    """Have retention delete what was closed some time ago, of topics of one kind."""
    assert world.pulsar is not None
    return world.pulsar.trim(TRIMMED)


async def _lose(world: World, node: Node, fault: Fault) -> bool:
    """Have brokers hear a node, which hears nothing of them, and then lose both."""
    assert world.pulsar is not None
    brokers = {one.host for one in world.pulsar.brokers}
    there = world.network.between(node.host)
    ends = [one for one in there if one.process.host in brokers]
    for end in ends:
        end.silent = True
    await asyncio.sleep(fault.for_s)
    for end in ends:
        for one in (end, end.peer):
            if not one.lost:
                one.reset()
    return bool(ends)


DOING: dict[str, Callable[[World, Node, Fault], Awaitable[bool]]] = {
    "ps_kill": _kill,
    "ps_unload": _unload,
    "ps_slow": _slow,
    "ps_freeze": _freeze,
    "ps_cut": _cut,
    "ps_lose": _lose,
    "ps_alone": _alone,
    "ps_trim": _trim,
}
