"""What parts of a broker stand on, of a node that runs in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.node.broker_context import BrokerContext
from ropeway.gateway.wire import message

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.node import Node

HOST = message.pack_host("127.0.0.1", 1)


def broker_of(node: Node, clock: Callable[[], int] = now_ms) -> BrokerContext:
    """The context of a node's broker, by another clock."""
    return BrokerContext(
        *("broker-0", "cluster", node.routes, node.topics),
        *(node.offsets, node.log, lambda: HOST, clock),
    )
