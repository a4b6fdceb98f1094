"""The last hours, or the last day, of this node's broker, a topic or a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aiohttp import web

from ropeway.gateway.http.day_history import MEASURES, STEPS
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import GET, cluster_need, group_need, topic_needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.acl.api import Need
    from ropeway.gateway.http.day_history import Kind, Range
    from ropeway.gateway.node.node import Node


async def _history(request: web.Request) -> web.Response:
    params = Params(request.query, "kind", "name", "range")
    kind = cast("Kind", params.choice("kind", tuple(MEASURES)))
    name = "" if kind == "broker" else params.text("name")
    wanted = cast("Range", params.choice("range", tuple(STEPS)))
    state = state_of(request)
    node = state.app.node
    await require(state, *_needs(node, kind, name))
    times_ms, series = state.day.past(kind, name, wanted)
    return reply({"broker": node.config.broker, "times_ms": times_ms, "series": series})


def _needs(node: Node, kind: Kind, name: str) -> Sequence[Need]:
    if kind == "topic":
        return tuple(topic_needs(node, name, (GET,)))
    if kind == "group":
        return (group_need(name, (GET,)),)
    return (cluster_need(node.config.cluster, (GET,)),)


ROUTES = [web.get("/api/history", _history)]
