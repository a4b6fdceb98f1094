"""Consumer groups: the list, and one with its lag over time, queue by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.members import consumers
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import ALL, GET, LIST, group_need

if TYPE_CHECKING:
    from ropeway.gateway.http.state import State


async def _groups(request: web.Request) -> web.Response:
    params = Params(request.query, *paging.NAMES)
    state = state_of(request)
    await require(state, group_need(ALL, (GET, LIST)))
    page = paging.page(params, state.app.node.routes.groups)
    rows = await state.console.gather(_row(state, name) for name in page.names)
    return reply({"total": page.total, "offset": page.offset, "groups": rows})


async def _row(state: State, group: str) -> dict[str, Any]:
    lags = await state.console.describe_group(group)
    connected = consumers(await state.console.consumers_of(group))
    return {
        "name": group,
        "topics": len({one.queue.topic for one in lags}),
        "lag": sum(one.lag for one in lags),
        "consumers": len(connected["members"]),
        "model": connected["model"],
        "type": connected["type"],
    }


async def _group(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    name = request.match_info["group"]
    await require(state, group_need(name, (GET,)))
    setup = state.app.node.routes.groups.get(name)
    if setup is None:
        raise RefusedError(f"there is no group {name!r:.150}", 404)
    lags = await state.console.describe_group(name)
    return reply(
        {
            "name": name,
            "retry_max_times": setup.retry_max_times,
            "consume_enable": setup.consume_enable,
            "broadcast_enable": setup.consume_broadcast_enable,
            "queues": [
                {
                    "topic": one.queue.topic,
                    "broker": one.queue.broker_name,
                    "queue_id": one.queue.queue_id,
                    "done": one.committed,
                    "end": one.end,
                    "lag": one.lag,
                }
                for one in lags
            ],
            "history": state.history.look(name, lags),
            **consumers(await state.console.consumers_of(name)),
        }
    )


ROUTES = [
    web.get("/api/groups", _groups),
    web.get("/api/groups/{group}", _group),
]
