"""Clients that are connected: producers, and consumers by their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.client import admin_clients, admin_groups
from ropeway.client.admin_groups import SilentClientError
from ropeway.client.versions import version_text
from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.members import consumers
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import ALL, GET, LIST, group_need

if TYPE_CHECKING:
    from ropeway.client.admin_clients import RunningInfo
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

    async def make(name: str) -> paging.Row | None:
        found = consumers(await state.console.consumers_of(name))
        return {"group": name, **found} if found["members"] else None

    # Brokers can be asked of one group at a time.
    groups = state.app.node.routes.groups
    return await paging.kept(params, groups, make, state.console, "groups")


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
        "version": version_text(one.version),
        "seen_ms": one.last_update_timestamp,
    }


async def _client(request: web.Request) -> web.Response:
    """What a consumer says of itself, with the stacks of its threads."""
    params = Params(request.query, "group")
    state = state_of(request)
    group, client = params.text("group"), request.match_info["client"]
    await require(state, group_need(group, (GET,)))
    found: dict[str, Any] = {"id": client, "group": group, "answers": True}
    info = None
    try:
        body = await admin_groups.running_info(state.console, group, client, stack=True)
        info = None if body is None else admin_clients.read_running_info(body)
    except SilentClientError:
        found["answers"] = False
    return reply({**found, **_running(info)})


def _running(info: RunningInfo | None) -> dict[str, Any]:
    """What it says; null where it says nothing."""
    if info is None:
        return {"queues": None, "topics": None, "queries": None, "stack": None}
    return {
        "queues": [
            {
                "topic": one.queue.topic,
                "broker": one.queue.broker_name,
                "queue_id": one.queue.queue_id,
                "committed": one.committed,
                "cached": one.cached,
            }
            for one in info.queues
        ],
        "topics": [
            {
                "topic": name,
                "pulled_per_s": one.pull_tps,
                "done_per_s": one.consume_ok_tps,
                "failed_per_s": one.consume_failed_tps,
                "consume_ms": one.consume_rt,
            }
            for name, one in sorted(info.rates.items())
        ],
        "queries": [
            {
                "name": one.name,
                "batches": [
                    {
                        "ended_ms": batch.ended_ms,
                        "batch": batch.number,
                        "rows_in": batch.rows_in,
                        "rows_out": batch.rows_out,
                        "batch_ms": batch.took_ms,
                        "lag": batch.lag,
                    }
                    for batch in one.batches
                ],
            }
            for one in info.queries
        ],
        "stack": info.stack,
    }


ROUTES = [
    web.get("/api/clients", _clients),
    web.get("/api/clients/{client}", _client),
]
