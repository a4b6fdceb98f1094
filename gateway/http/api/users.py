"""Users of access control with their policies, where the node keeps some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.client import admin_users
from ropeway.client.errors import ResponseError
from ropeway.gateway.http.console import in_words
from ropeway.gateway.http.login import offered
from ropeway.gateway.http.params import Params
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import UPDATE, cluster_need

if TYPE_CHECKING:
    from ropeway.gateway.http.console import Console

_OFF = "Access control is off: everybody may do everything."


async def _users(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    node = state.app.node
    update = cluster_need(node.config.cluster, (UPDATE,))
    found: dict[str, Any] = {
        "users": [],
        "policies": [],
        "reason": None,
        "offered": await offered(state, update=(update,)),
    }
    if node.guard is None:
        return reply({**found, "reason": _OFF, "offered": []})
    try:
        return reply({**found, **await _known(state.console)})
    except ResponseError as error:
        # The user may not look, or no hook keeps users.
        return reply({**found, "reason": in_words(error), "offered": []})


async def _known(console: Console) -> dict[str, Any]:
    return {
        "users": [
            {"user": one.username, "type": one.user_type, "status": one.user_status}
            for one in await admin_users.users(console)
        ],
        "policies": [
            {
                "user": (subject.subject or "").removeprefix("User:"),
                "resource": entry.resource,
                "actions": entry.actions or [],
                "sources": entry.source_ips or [],
                "decision": entry.decision,
            }
            for subject in await admin_users.policies(console)
            for policy in subject.policies or ()
            for entry in policy.entries or ()
        ],
    }


ROUTES = [web.get("/api/users", _users)]
