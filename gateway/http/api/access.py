"""Access control: what it would decide, and by which rule."""

from __future__ import annotations

import ipaddress

import msgspec
from aiohttp import web

from ropeway.acl.api import Action
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of

KINDS = ("topic", "group", "cluster", "namespace")
ACTIONS = tuple(action.lower() for action in Action)


async def _access(request: web.Request) -> web.Response:
    params = Params(request.query, "principal", "action", "kind", "name", "from")
    state = state_of(request)
    if state.app.node.guard is None:
        raise RefusedError("access control is off: everybody may do everything", 409)
    kind = params.choice("kind", KINDS)
    found = await state.console.explain_access(
        params.text("principal"),
        params.choice("action", ACTIONS),
        f"{kind}:{params.text('name')}",
        _address(params.text("from", "127.0.0.1")),
    )
    return reply(msgspec.structs.asdict(found))


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise RefusedError(f"from is {text!r:.80}; allowed: an IP address") from None


ROUTES = [web.get("/api/access", _access)]
