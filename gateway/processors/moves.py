"""Moving queues between brokers: what `ropeway route rebalance` asks, and nodes ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.forwarder import ForwardingError
from ropeway.gateway.node.moves import MoveError
from ropeway.gateway.processors.context import Answer, Context
from ropeway.gateway.processors.needs import NODES, UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.moves import (
    DueMessages,
    HandedOver,
    MoveQueue,
    StoreDue,
    TakeQueue,
)

if TYPE_CHECKING:
    from ropeway.gateway.node.node import Node


@handles(MoveQueue, on_cluster(UPDATE))
async def move_queue(request: MoveQueue, context: Context) -> Answer:
    """Give this broker's last queue of a topic to another broker."""
    node, client = context.node, context.peer.address

    async def hand_over(handed: HandedOver) -> None:
        await _hand_over(node, request.to_broker, handed, client)

    moved = await node.moves.give(
        request.topic, request.to_broker, hand_over, request.partition
    )
    return Answer(body=bodies.encode(moved))


async def _hand_over(node: Node, taker: str, handed: HandedOver, client: str) -> None:
    """Tell the broker that gets a queue.

    Raises:
        MoveError: It does not take it, or does not say so.
    """
    nodes = node.routes.brokers.get(taker)
    if not nodes:
        raise MoveError(f"broker {taker} does not run any more")
    try:
        await node.forwarder.ask(
            nodes[0].addresses[0],
            RequestCode.ROPEWAY_TAKE_QUEUE,
            bodies.encode(handed),
            client,
        )
    except ForwardingError as error:
        raise MoveError(f"broker {taker} did not take it: {error}") from error


@handles(TakeQueue, NODES)
async def take_queue(_: TakeQueue, context: Context) -> Answer:
    """Keep what another broker says of a queue that this one is about to get."""
    await context.node.moves.take(bodies.decode(HandedOver, context.body))
    return Answer()


@handles(StoreDue, NODES)
async def store_due(_: StoreDue, context: Context) -> Answer:
    """Store messages that waited at another broker, in a topic that is here by now."""
    due = bodies.decode(DueMessages, context.body)
    await context.node.moves.store(due)
    return Answer()
