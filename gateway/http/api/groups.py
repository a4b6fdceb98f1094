"""Consumer groups: the list, and one with its lag over time, queue by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.members import consumers
from ropeway.gateway.http.login import offered, require
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.node import names
from ropeway.gateway.node.traffic import GROUP_GET_NUMS
from ropeway.gateway.processors.needs import (
    ALL,
    CREATE,
    DELETE,
    GET,
    LIST,
    UPDATE,
    group_need,
)

if TYPE_CHECKING:
    from ropeway.gateway.http.state import State

COLUMNS = ("lag", "out_rate", "consumers")


async def _groups(request: web.Request) -> web.Response:
    params = Params(request.query, *paging.NAMES, paging.SORT)
    state = state_of(request)
    await require(state, group_need(ALL, (GET, LIST)))

    async def make(name: str) -> paging.Row:
        return await _row(state, name)

    groups = filter(names.is_listed_group, state.app.node.routes.groups)
    return reply(
        await paging.rows(params, groups, make, state.console, COLUMNS, "groups")
    )


async def _row(state: State, group: str) -> dict[str, Any]:
    lags = await state.console.describe_group(group)
    connected = consumers(await state.console.consumers_of(group))
    topics = {one.queue.topic for one in lags}
    known = state.app.node.routes.topics
    given = await state.console.gather(
        state.console.counted(GROUP_GET_NUMS, f"{topic}@{group}", known[topic].route)
        for topic in topics & known.keys()
    )
    return {
        "name": group,
        "topics": len(topics),
        "lag": sum(one.lag for one in lags),
        "out_rate": sum(one.rate for one in given),
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
            "offered": await offered(
                state,
                update=(group_need(name, (CREATE,)),),
                delete=(group_need(name, (DELETE,)),),
                move=(group_need(name, (UPDATE,)),),
            ),
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
