"""Messages on their way: for a delivery time, another try, an end of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from ropeway.client import admin_delays, admin_transactions
from ropeway.client.errors import ResponseError
from ropeway.gateway.http.api.topics import find
from ropeway.gateway.http.login import changing, require
from ropeway.gateway.http.params import Params, RefusedError, wanted_of
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.node import names
from ropeway.gateway.processors.needs import (
    ALL,
    GET,
    LIST,
    PUB,
    group_need,
    topic_needs,
)
from ropeway.gateway.wire import recall
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from ropeway.client.admin_delays import Delayed
    from ropeway.gateway.http.state import State
    from ropeway.gateway.wire.commands.timers import WaitingMessage
    from ropeway.routing.api import Topic


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which message to take back."""

    recall_handle: str


MOST = 200
USUAL = 50
MOST_GROUPS = 1000
"""Groups whose retries are looked at, a request to brokers each."""


async def _timed(request: web.Request) -> web.Response:
    params = Params(request.query, "topic", "limit")
    state = state_of(request)
    topic = await _named(state, params)
    limit = params.number("limit", USUAL, least=1, most=MOST)
    timed = await state.console.waiting(topic, max_messages=limit)
    delayed = await _at_levels(state, topic, limit)
    found = [_shown(one, handle=one.recall_handle) for one in timed]
    found += [_shown(one, level=one.level) for one in delayed or ()]
    found.sort(key=lambda one: one["deliver_ms"])
    return reply({"messages": found[:limit], "levels_shown": delayed is not None})


def _shown(
    one: WaitingMessage | Delayed,
    *,
    level: int | None = None,
    handle: str | None = None,
) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "deliver_ms": one.deliver_ms,
        "key_id": one.msg_id,
        "delay_level": level,
        "recall_handle": handle,
    }


async def _at_levels(
    state: State, topic: str | None, most: int
) -> list[Delayed] | None:
    """Those at delay levels; None for whom may not read the brokers' own topic."""
    try:
        return await admin_delays.delayed(state.console, topic, max_messages=most)
    except ResponseError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        return None


async def _recall(request: web.Request) -> web.Response:
    """Take one back; who may not send to its topic is told nothing of it."""
    state = state_of(request)
    wanted = await wanted_of(request, _Wanted, '{"recall_handle": "TEXT"}')
    try:
        handle = recall.parse(wanted.recall_handle)
    except MessageError as error:
        raise RefusedError(str(error)) from None
    await require(state, *topic_needs(state.app.node, handle.topic, (PUB,)))
    async with changing(request) as console:
        await console.recall(handle, wanted.recall_handle)
    return reply({"key_id": handle.unique_key})


async def _transactions(request: web.Request) -> web.Response:
    params = Params(request.query, "topic", "limit")
    state = state_of(request)
    topic = await _named(state, params)
    limit = params.number("limit", USUAL, least=1, most=MOST)
    found = await admin_transactions.open_transactions(
        state.console, topic=topic, most=limit
    )
    found.sort(key=lambda one: one.born_ms)
    return reply(
        {
            "transactions": [
                {
                    "key_id": one.msg_id,
                    "topic": one.topic,
                    "producer_group": one.producer_group,
                    "born_ms": one.born_ms,
                    "checks": one.checks,
                }
                for one in found[:limit]
            ]
        }
    )


async def _named(state: State, params: Params) -> str | None:
    """The topic that is asked for, for whom may look at it; None: of all."""
    topic = params.text("topic", "") or None
    if topic is not None:
        await require(state, *topic_needs(state.app.node, topic, (GET,)))
        find(state.app.node, topic)
    return topic


async def _retries(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    await require(state, group_need(ALL, (GET, LIST)))
    topics = state.app.node.routes.topics
    retries = sorted(name for name in topics if name.startswith(names.RETRY_PREFIX))
    rows = await state.console.gather(
        _row(state, topics[name]) for name in retries[:MOST_GROUPS]
    )
    return reply({"groups": [one for one in rows if one["messages"]]})


async def _row(state: State, topic: Topic) -> dict[str, Any]:
    group = topic.name.removeprefix(names.RETRY_PREFIX)
    lags = await state.console.describe_group(group)
    lefts = [one.lag for one in lags if one.queue.topic == topic.name]
    if not lefts:
        # It has acknowledged none so far.
        spans = await state.console.spans(topic.name, topic.route)
        lefts = [one.end - one.begin for one in spans]
    return {"group": group, "messages": sum(lefts)}


ROUTES = [
    web.get("/api/waiting", _timed),
    web.post("/api/waiting/recall", _recall),
    web.get("/api/retries", _retries),
    web.get("/api/transactions", _transactions),
]
