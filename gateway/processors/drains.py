"""Taking brokers out of a cluster: what `ropeway broker drain` and `remove` ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import drains
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.processors.needs import GET, UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.drains import DrainBroker, GetDrain, RemoveBroker

if TYPE_CHECKING:
    from ropeway.gateway.processors.context import Context


@handles(DrainBroker, on_cluster(UPDATE))
async def drain_broker(request: DrainBroker, context: Context) -> Answer:
    """Have this broker get nothing more; or let it have queues again."""
    node = context.node
    await (node.drains.undo() if request.undo else node.drains.begin())
    return Answer()


@handles(GetDrain, on_cluster(GET))
async def get_drain(_: GetDrain, context: Context) -> Answer:
    """What this broker has yet."""
    return Answer(body=bodies.encode(await context.node.drains.look()))


@handles(RemoveBroker, on_cluster(UPDATE), anywhere=True)
async def remove_broker(request: RemoveBroker, context: Context) -> Answer:
    """Forget a broker that does not run."""
    node = context.node
    removed = await drains.remove(
        node.routes, node.config.cluster, request.broker, gone=request.gone
    )
    return Answer(body=bodies.encode(removed))
