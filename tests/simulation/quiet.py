"""What has to be left of clients that have gone: nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.node.forwarder import LOOK_S

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.gateway.connection import Connection
    from tests.simulation.model import Model
    from tests.simulation.node import Node
    from tests.simulation.world import World

QUIET_S = 8.0
"""How long after all clients have gone a node may take to forget them."""
SILENCE_S = 3 * LOOK_S
"""And what it has sent on to one that lost its power without a word."""


async def quiet(world: World, model: Model, one: Node, hosts: Collection[str]) -> None:
    """See that a node whose clients have gone has nothing left of them.

    Args:
        world: Where it is.
        model: Told what is left.
        one: The node.
        hosts: Those of all nodes, which send on to each other what they are asked.
    """
    app = one.app
    if app is None:
        model.wrong("back: the node has ended by itself")
        return
    node = app.node
    until_s = world.loop.time() + QUIET_S
    if world.pulsar is not None:
        until_s += SILENCE_S
    left: dict[str, int] = {}
    while world.loop.time() < until_s:
        left = {
            "connections": sum(
                _host(each) not in hosts
                for one in app.server.listeners
                for each in one.connections
            ),
            "tasks": len(node.tasks),
            "waiting requests": app.server.waiting[0],
            "bytes waiting for the disk": node.log.waiting_bytes(),
        }
        if not any(left.values()):
            return
        await asyncio.sleep(0.5)
    model.wrong(f"left: {left}")


def _host(connection: Connection) -> str:
    """Who is at the other end."""
    assert connection._transport is not None
    host: str = connection._transport.get_extra_info("peername")[0]
    return host
