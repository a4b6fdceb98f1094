"""Offsets go on where retention has deleted all that a queue had."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import Remoting
from tests.requests import sending
from tests.simulation.clients import BROKER, ORDERS, PORT, QUEUES
from tests.simulation.pulsar_brokers import BUNDLES
from tests.simulation.pulsar_faults import TRIMMED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.model import Model
    from tests.simulation.node import Node
    from tests.simulation.world import World

REOPENED_S = 3.0
"""Nodes have their producers back by then, and have noted where partitions end."""
OPEN_S = 60.0
"""Within this time a queue of a broker that begins anew takes a message."""


async def check(
    world: World,
    model: Model,
    nodes: list[Node],
    copies: int,
    ends: Mapping[tuple[str, int], int],
) -> None:
    """Have nothing left of a topic while nobody sends, and kill who knows of it.

    Args:
        world: Where Pulsar is.
        model: Told of what should not be.
        nodes: All of them.
        copies: How many each broker has.
        ends: By topic and number, where queues ended.
    """
    assert world.pulsar is not None
    for bundle in range(BUNDLES):
        world.pulsar.unload(bundle)
    await asyncio.sleep(REOPENED_S)
    world.pulsar.trim(TRIMMED, age_s=0.0)
    world.trace.note("run", "nothing is left of a topic")
    for node in nodes:
        node.may_not_start(0.0)
        node.kill()
        node.start()
    task = world.loop.spawn(
        world.process("sender", "10.0.2.2"), _send(world, model, nodes, copies, ends)
    )
    await task


async def _send(
    world: World,
    model: Model,
    nodes: list[Node],
    copies: int,
    ends: Mapping[tuple[str, int], int],
) -> None:
    until_s = world.loop.time() + OPEN_S
    for number, node in enumerate(nodes[::copies]):
        for queue_id in range(QUEUES):
            there = number * BROKER + queue_id
            end = ends.get((ORDERS, there), 0)
            while (offset := await _sent(node, queue_id)) is None:
                if world.loop.time() > until_s:
                    model.wrong(f"emptied: {ORDERS}/{there} takes no message any more")
                    return
                await asyncio.sleep(0.5)
            if end and offset != end:
                model.wrong(
                    f"emptied: {ORDERS}/{there} ended at {end}, and goes on at {offset}"
                )


async def _sent(node: Node, queue_id: int) -> int | None:
    """Send one message; its offset, or None where it is not taken now."""
    try:
        async with asyncio.timeout(8.0):
            client = Remoting(*await asyncio.open_connection(node.host, PORT))
            try:
                answer = await client.ask(sending(ORDERS, queue_id=queue_id), b"on")
            finally:
                await client.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    if answer.code != ResponseCode.SUCCESS:
        return None
    return answer.read(SendReply).queue_offset
