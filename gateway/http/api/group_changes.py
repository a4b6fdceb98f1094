"""Making, changing and deleting consumer groups from the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from ropeway.client import admin_groups
from ropeway.gateway.http.login import changing, require
from ropeway.gateway.http.params import Params, RefusedError, wanted_of
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import CREATE, DELETE, group_need

if TYPE_CHECKING:
    from ropeway.acl.api import Action

_MOST_RETRIES = 1000
"""As many as the page lets somebody ask for; RocketMQ has 16 by default."""


class _Changed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a group is to be."""

    consume_enable: bool = True
    broadcast_enable: bool = True
    retry_max_times: Annotated[int, Meta(ge=0, le=_MOST_RETRIES)] = 16

    def settings(self) -> dict[str, Any]:
        """The same as members of `bodies.GroupConfig`."""
        return {
            "consume_enable": self.consume_enable,
            "consume_broadcast_enable": self.broadcast_enable,
            "retry_max_times": self.retry_max_times,
        }


class _New(_Changed, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A group that is to be on all brokers."""

    name: str


_ALLOWED = (
    '"consume_enable": true, "broadcast_enable": true, "retry_max_times": 0 to '
    f"{_MOST_RETRIES}"
)


async def _create(request: web.Request) -> web.Response:
    allowed = f'{{"name": "NAME", {_ALLOWED}}}'
    wanted = await wanted_of(request, _New, allowed)
    async with changing(request) as console:
        await admin_groups.create(console, wanted.name, wanted.settings())
    return reply({"name": wanted.name}, status=201)


async def _change(request: web.Request) -> web.Response:
    name = await _known(request, CREATE)
    wanted = await wanted_of(request, _Changed, f"{{{_ALLOWED}}}")
    async with changing(request) as console:
        await admin_groups.update(console, name, wanted.settings())
    return reply({"name": name})


async def _delete(request: web.Request) -> web.Response:
    Params(request.query)
    name = await _known(request, DELETE)
    async with changing(request) as console:
        await console.delete_group(name)
    return reply({"name": name})


async def _known(request: web.Request, action: Action) -> str:
    """The group that a request names, for whom may know that there is one."""
    state, name = state_of(request), request.match_info["group"]
    await require(state, group_need(name, (action,)))
    if name not in state.app.node.routes.groups:
        raise RefusedError(f"there is no group {name!r:.150}", 404)
    return name


ROUTES = [
    web.post("/api/groups", _create),
    web.put("/api/groups/{group}", _change),
    web.delete("/api/groups/{group}", _delete),
]
