"""Whether the process lives, and whether clients can use it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.node.leadership import NoLeaderError
from ropeway.routing.api import RouteError

if TYPE_CHECKING:
    from ropeway.gateway.node.node import Node

PROBE_S = 2.0
"""How long a part has to answer; probes themselves wait for seconds."""


async def unready(node: Node) -> list[str]:
    """Why clients cannot use the node now, a sentence for each reason; or nothing.

    A node that stands by can be used: it sends on what its master has to answer.
    """
    reasons = [await _routes(node), await _leader(node), _log(node)]
    return [reason for reason in reasons if reason]


def role(node: Node) -> str:
    """What the node is to its broker."""
    if node.leadership.is_certain():
        return "leads"
    return "follows" if node.leadership.is_led_elsewhere() else "waits for a master"


async def _routes(node: Node) -> str:
    try:
        await asyncio.wait_for(node.routes.catch_up(), PROBE_S)
    except (RouteError, TimeoutError):
        return "the route store does not answer"
    return ""


async def _leader(node: Node) -> str:
    try:
        await asyncio.wait_for(node.leadership.settle(), PROBE_S)
    except (NoLeaderError, TimeoutError):
        return f"broker {node.config.broker} has no master"
    return ""


def _log(node: Node) -> str:
    if overdue_ms := node.log.overdue_ms():
        return f"the log has not stored a message that came {overdue_ms} ms ago"
    return ""
