"""Which broker a node serves, where nobody says: the first that has too few nodes.

Each node writes down the broker that it joined, once, and finds it again after a
restart. The table is a namespace of settings, node by node, so that whoever wants to
move a node edits one line of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from ropeway.routing.api import RouteStore

log = structlog.get_logger(__name__)

NAMESPACE = "ROPEWAY_NODES"
"""Settings here say which broker a node serves."""


async def join(
    routes: RouteStore, node: str, first_broker: str, replication_num: int
) -> str:
    """Find a node's broker; choose one where it has none.

    Args:
        routes: Where that is written down.
        node: The node.
        first_broker: The name of the first broker; others have their numbers for its 0.
        replication_num: Nodes that a broker is to have.

    Raises:
        RouteError: It cannot be written down.
    """
    known = _members(routes)
    if node in known:
        return known[node]

    def choose(_: str | None) -> str:
        others = [broker for one, broker in _members(routes).items() if one != node]
        return _first_with_room(first_broker, Counter(others), replication_num)

    while True:
        await routes.change_setting(NAMESPACE, node, choose)
        known = _members(routes)
        broker = known[node]
        # In ZooKeeper another may have come at the same moment: then the last by name
        # goes on.
        crowd = sorted(one for one, joined in known.items() if joined == broker)
        if node in crowd[:replication_num]:
            log.info("joined a broker", broker=broker, node=node, nodes=crowd)
            return broker


def _members(routes: RouteStore) -> dict[str, str]:
    return {
        key: value
        for (namespace, key), value in routes.settings.items()
        if namespace == NAMESPACE
    }


def _first_with_room(first_broker: str, sizes: Counter[str], most: int) -> str:
    base = first_broker.removesuffix("-0")
    number = 0
    while sizes[broker := f"{base}-{number}"] >= most:
        number += 1
    return broker
