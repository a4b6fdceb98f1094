"""What has to hold of routes: they never go back, and all nodes agree in the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.routing.api import RouteStore, Topic
    from tests.simulation.model import Model
    from tests.simulation.node import Node
    from tests.simulation.world import World
    from tests.simulation.zookeeper_servers import Ensemble


LOOK_S = 0.02
OFTEN_S = 0.005
"""Where a broker has several nodes."""


def follow(model: Model, process: str, routes: RouteStore) -> None:
    """Have a process' routes looked at whenever they change: nothing is deleted here.

    Args:
        model: Told of what should not be.
        process: Whose routes they are.
        routes: The routes.
    """
    known: dict[str, Topic] = {}

    def changed(name: str) -> None:
        before, now = known.get(name), routes.topics.get(name)
        for broker, numbers in before.route.items() if before is not None else ():
            kept = now.route.get(broker, []) if now is not None else []
            if kept[: len(numbers)] != numbers:
                model.wrong(
                    f"routes: {name} on {broker} had {numbers} in {process}, "
                    f"and has {kept}"
                )
        if now is not None:
            known[name] = now

    known.update(routes.topics)
    routes.watch_topics(changed)


async def hold(world: World, model: Model, nodes: list[Node]) -> None:
    """See, again and again, that who says that nobody can have its place has it."""
    ensemble = world.zookeeper
    while ensemble is not None:
        _one_master(world, model, nodes)
        for node in nodes:
            routes = node.app.node.routes if node.app is not None else None
            if routes is None or routes.held_until_s <= world.loop.time():
                continue
            session = routes._session.id  # type: ignore[attr-defined]
            folder = f"/ropeway/brokers/{node.broker}"
            # Of one that was ended before its time it cannot know.
            if session not in {*_owners(ensemble, folder), *ensemble.ended}:
                model.wrong(
                    f"master: {node.process} says that it has its place in session "
                    f"{session}, and has not"
                )
                return
        await asyncio.sleep(LOOK_S if world.pulsar is None else OFTEN_S)


def _one_master(world: World, model: Model, nodes: list[Node]) -> None:
    """See that of the nodes of a broker no two would answer at this moment."""
    sure: dict[str, Node] = {}
    for node in nodes:
        if node.app is None or node.process is None:
            continue
        leadership, now_s = node.app.node.leadership, world.loop.time()
        if (
            leadership.leads
            and max(leadership.certain_until_s, leadership._proven_until_s()) >= now_s
            and now_s <= leadership.late_s
            and node.process.held_until_s <= now_s
        ):
            other = sure.setdefault(node.broker, node)
            if other is not node:
                model.wrong(f"master: {other.process} and {node.process} both lead")


def _owners(ensemble: Ensemble, path: str) -> set[int]:
    """The sessions of what is below a path, at the server that is least behind."""
    tree = max((one.tree for one in ensemble.servers), key=lambda one: one.zxid)
    folder = tree.nodes.get(path)
    names = folder.children if folder is not None else ()
    return {tree.nodes[f"{path}/{name}"].owner for name in names}


async def agree(world: World, model: Model, nodes: list[Node], until_s: float) -> None:
    """Wait until all nodes know the same, and all that was acknowledged."""
    while lines := _complaints(model, nodes):
        if world.loop.time() > until_s:
            for line in lines[:5]:
                model.wrong(f"routes: {line}")
            return
        await asyncio.sleep(0.5)


def _complaints(model: Model, nodes: list[Node]) -> list[str]:
    found = []
    first: RouteStore | None = None
    for node in nodes:
        if node.app is None:
            return [f"{node.name} does not serve"]
        routes = node.app.node.routes
        first = first or routes
        brokers = sorted(routes.brokers)
        if brokers != sorted({one.broker for one in nodes}):
            found.append(f"{node.name} knows of {brokers}")
        if dict(routes.topics) != dict(first.topics):
            found.append(f"{node.name} has other topics than {nodes[0].name}")
        for (topic, broker), count in model.queues.items():
            known = routes.topics.get(topic)
            numbers = known.route.get(broker, []) if known is not None else []
            if len(numbers) < count:
                found.append(
                    f"{node.name} has {numbers} of {topic} on {broker}, not {count}"
                )
    return found
