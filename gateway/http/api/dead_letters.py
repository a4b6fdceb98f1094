"""Dead letters: which groups have some, and giving them to their group once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from ropeway.client.errors import RemotingError
from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.messages import PAGE_NAMES, page_of, view
from ropeway.gateway.http.api.topics import find
from ropeway.gateway.http.console import in_words
from ropeway.gateway.http.login import changing, require
from ropeway.gateway.http.params import Params, RefusedError, decode_body
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.node import names
from ropeway.gateway.processors.needs import ALL, GET, LIST, SUB, topic_need

if TYPE_CHECKING:
    from ropeway.gateway.http.console import Console
    from ropeway.gateway.http.state import State
    from ropeway.routing.api import Topic

MOST_REPLAYED = 200
"""Messages that one request gives back."""


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters to give back."""

    messages: list[str]
    """Their offsetMsgIds."""


async def _groups(request: web.Request) -> web.Response:
    params = Params(request.query, *paging.NAMES)
    state = state_of(request)
    await require(state, topic_need(ALL, (GET, LIST)))
    page = paging.page(
        params,
        (
            name.removeprefix(names.DLQ_PREFIX)
            for name in state.app.node.routes.topics
            if name.startswith(names.DLQ_PREFIX)
        ),
    )
    rows = await state.console.gather(_row(state, group) for group in page.names)
    return reply({"total": page.total, "offset": page.offset, "groups": rows})


async def _row(state: State, group: str) -> dict[str, Any]:
    topic = find(state.app.node, names.dlq_topic(group))
    spans = await state.console.spans(topic.name, topic.route)
    return {"group": group, "messages": sum(one.end - one.begin for one in spans)}


async def _find(state: State, group: str) -> Topic:
    """The topic of a group's dead letters; who may not see it is not told of it.

    Raises:
        RefusedError: There is none, or it may not be seen.
    """
    name = names.dlq_topic(group)
    await require(state, topic_need(name, (SUB, GET)))
    return find(state.app.node, name)


async def _letters(request: web.Request) -> web.Response:
    params = Params(request.query, *PAGE_NAMES)
    state = state_of(request)
    topic = await _find(state, request.match_info["group"])
    return reply(await page_of(state, topic.name, params))


async def _replay(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    group = request.match_info["group"]
    topic = (await _find(state, group)).name
    wanted = _read(await request.read())
    async with changing(request) as console:
        answers = await console.gather(
            _replay_one(state, console, group, topic, identity)
            for identity in wanted.messages
        )
    return reply({"results": answers})


def _read(body: bytes) -> _Wanted:
    wanted = decode_body(body, _Wanted, '{"messages": ["ID", ...]}')
    if not 0 < len(wanted.messages) <= MOST_REPLAYED:
        raise RefusedError(
            f"{len(wanted.messages)} messages; allowed: 1 to {MOST_REPLAYED}"
        )
    return wanted


async def _replay_one(
    state: State, console: Console, group: str, topic: str, identity: str
) -> dict[str, Any]:
    """Give one back; each has an outcome of its own."""
    try:
        dead = await view(state, identity, topic)
        if dead is None:
            return {"id": identity, "error": "there is no such dead letter"}
        await console.replay(group, dead)
    except RemotingError as error:
        return {"id": identity, "error": in_words(error)}
    return {"id": identity, "error": None}


ROUTES = [
    web.get("/api/dead-letters", _groups),
    web.get("/api/dead-letters/{group}", _letters),
    web.post("/api/dead-letters/{group}/replay", _replay),
]
