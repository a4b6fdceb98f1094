"""Clients that are connected: producers, and consumers by their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.members import consumers
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import ALL, GET, LIST, group_need

if TYPE_CHECKING:
    from ropeway.gateway.http.state import State
    from ropeway.gateway.wire.admin_bodies import ProducerInfo

CONSUMERS, PRODUCERS = "consumers", "producers"


async def _clients(request: web.Request) -> web.Response:
    params = Params(request.query, *paging.NAMES, "kind")
    kind = params.choice("kind", (CONSUMERS, PRODUCERS))
    state = state_of(request)
    find = _consumers if kind == CONSUMERS else _producers
    return reply(await find(state, params))


async def _consumers(state: State, params: Params) -> dict[str, Any]:
    await require(state, group_need(ALL, (GET, LIST)))
    # Brokers can be asked of one group at a time: a page is a page of groups.
    page = paging.page(params, state.app.node.routes.groups)
    known = await state.console.gather(map(state.console.consumers_of, page.names))
    rows = [
        {"group": name, **found}
        for name, one in zip(page.names, known, strict=True)
        if (found := consumers(one))["members"]
    ]
    return {"total": page.total, "offset": page.offset, "groups": rows}


async def _producers(state: State, params: Params) -> dict[str, Any]:
    known = await state.console.producers()
    page = paging.page(params, known)
    rows = [
        {"group": name, "members": [*map(_producer, known[name].values())]}
        for name in page.names
    ]
    return {"total": page.total, "offset": page.offset, "groups": rows}


def _producer(one: ProducerInfo) -> dict[str, Any]:
    return {
        "id": one.client_id,
        "address": one.remote_ip.removeprefix("/"),
        "language": one.language,
        "version": one.version,
        "seen_ms": one.last_update_timestamp,
    }


ROUTES = [web.get("/api/clients", _clients)]
