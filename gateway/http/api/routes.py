"""Where a topic's queues are: brokers, their nodes, and partitions of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.gateway.http.api.topics import find
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import GET, PUB, SUB, topic_needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.routing.api import Broker


async def _route(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    node, name = state.app.node, request.match_info["topic"]
    await require(state, *topic_needs(state.app.node, name, (PUB, SUB, GET)))
    topic = find(node, name)
    running = node.routes.brokers
    return reply(
        {
            "topic": topic.name,
            "brokers": [
                {
                    "name": broker,
                    "partitions": list(partitions),
                    "nodes": _nodes(running.get(broker, ())),
                }
                for broker, partitions in sorted(topic.route.items())
            ],
        }
    )


def _nodes(nodes: Sequence[Broker]) -> list[dict[str, Any]]:
    """The master first; none where the broker does not run."""
    return [
        {"name": one.node, "address": one.addresses[0], "master": number == 0}
        for number, one in enumerate(nodes)
    ]


ROUTES = [web.get("/api/routes/{topic}", _route)]
