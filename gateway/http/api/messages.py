"""Messages: looked up by id, by key and by time; one with its body and its trace."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from aiohttp import web
from msgspec import structs

from ropeway.client import admin_explain, admin_traces
from ropeway.client.errors import RemotingError
from ropeway.gateway.http.api import backward, shown
from ropeway.gateway.http.api.topics import find
from ropeway.gateway.http.console import in_words
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import shows, state_of
from ropeway.gateway.processors.needs import GET, SUB, topic_needs
from ropeway.gateway.wire import host_port, trace
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.client.lags import QueueSpan
    from ropeway.client.message import ReceivedMessage
    from ropeway.gateway.http.state import State
    from ropeway.gateway.node.node import Node

MOST = 200
USUAL = 50
MOST_GROUPS = 50
"""Groups that a message is explained for at a time."""
PAGE_NAMES = ("limit", "text", "cursor", "most")
_NAMES = ("topic", "key", "id", "begin", "end", *PAGE_NAMES)
_MAX_MS = 1 << 53
"""The largest whole number that a browser can count to."""


async def _messages(request: web.Request) -> web.Response:
    params = Params(request.query, *_NAMES)
    state = state_of(request)
    topic = await _topic(state, params.text("topic"))
    limit = params.number("limit", USUAL, least=1, most=MOST)
    begin_ms = params.number("begin", 0, most=_MAX_MS)
    end_ms = params.number("end", _MAX_MS, most=_MAX_MS)
    if begin_ms > end_ms:
        raise RefusedError(f"begin is {begin_ms}; allowed: up to end, {end_ms}")
    if identity := params.text("id", ""):
        found = await _by_id(state, topic, identity)
    elif key := params.text("key", ""):
        found = await state.console.query(
            topic, key, max_messages=limit, begin_ms=begin_ms, end_ms=end_ms
        )
    elif begin_ms or end_ms < _MAX_MS:
        found = await _by_time(state, topic, begin_ms, end_ms, limit)
        text = params.text("text", "").lower()
        found = [one for one in found if not text or backward.has(one, text)]
    else:
        return reply(await page_of(state, topic, params))
    return reply({"messages": [*map(shown.in_list, newest(found, limit))]})


async def page_of(state: State, topic: str, params: Params) -> dict[str, Any]:
    """A page of a topic's messages, the newest first, as `backward.page` reads it."""
    spans = await state.console.spans(topic, state.app.node.routes.topics[topic].route)
    found = await backward.page(
        state.console,
        spans,
        limit=params.number("limit", USUAL, least=1, most=MOST),
        text=params.text("text", ""),
        cursor=params.text("cursor", "", most=backward.MAX_CURSOR),
        most=params.number(
            "most", backward.MOST_LOOKED, least=1, most=backward.MOST_LOOKED
        ),
    )
    return {
        "messages": [
            {
                **shown.in_list(one),
                "topic": one.properties.get("RETRY_TOPIC", one.topic),
                "reconsume_times": one.reconsume_times,
            }
            for one in found.messages
        ],
        "looked": found.looked,
        "total": sum(one.end - one.begin for one in spans),
        "cursor": found.cursor,
    }


async def _topic(state: State, name: str) -> str:
    """The topic of a name, for whom may know that there is one.

    Raises:
        RefusedError: It may not, or there is none.
    """
    await require(state, *topic_needs(state.app.node, name, (SUB, GET)))
    return find(state.app.node, name).name


def newest(found: Iterable[ReceivedMessage], limit: int) -> list[ReceivedMessage]:
    """The newest first, and no more than so many."""
    return heapq.nlargest(limit, found, key=lambda one: (one.store_ms, one.message_id))


async def _by_id(state: State, topic: str, identity: str) -> list[ReceivedMessage]:
    one = await view(state, identity, topic)
    if one is not None:
        return [one]
    return await state.console.query(topic, identity, is_unique_key=True)


async def view(state: State, identity: str, topic: str) -> ReceivedMessage | None:
    """The message of an offsetMsgId, where it is one of a broker of ours.

    Who chooses an id must not choose whom we connect to.
    """
    try:
        place = parse_offset_msg_id(identity)
    except MessageError:
        return None
    broker = _broker_at(state.app.node, host_port.join(place.host, place.port))
    if broker is None:
        return None
    return await state.console.view_at(broker, place.message_id, topic)


def _broker_at(node: Node, address: str) -> str | None:
    for name, nodes in node.routes.brokers.items():
        if any(address in one.addresses for one in nodes):
            return name
    return None


async def _by_time(
    state: State, topic: str, begin_ms: int, end_ms: int, limit: int
) -> list[ReceivedMessage]:
    """The last messages that were stored in a time."""
    spans = await state.console.spans(topic, state.app.node.routes.topics[topic].route)
    found = await state.console.gather(
        _in_queue(state, span, begin_ms, end_ms, limit)
        for span in spans
        if span.end > span.begin
    )
    return [one for messages in found for one in messages]


async def _in_queue(
    state: State, span: QueueSpan, begin_ms: int, end_ms: int, limit: int
) -> list[ReceivedMessage]:
    queue, console = span.queue, state.console
    begin, end = span.begin, span.end
    if begin_ms:
        begin = await console.offset_at(queue, begin_ms)
    if end_ms < _MAX_MS:
        end = await console.offset_at(queue, end_ms + 1)
    begin = max(begin, end - limit)
    return await console.read(queue, begin, end - begin)


async def _message(request: web.Request) -> web.Response:
    params = Params(request.query, "topic")
    state = state_of(request)
    topic = await _topic(state, params.text("topic"))
    message = await _one(state, topic, request.match_info["id"])
    return reply(shown.whole(message, await _trace(state, message)))


async def _one(state: State, topic: str, identity: str) -> ReceivedMessage:
    found = await _by_id(state, topic, identity)
    if not found:
        raise RefusedError(f"there is no such message in topic {topic}", 404)
    return found[0]


async def _delivery(request: web.Request) -> web.Response:
    """What each group of the topic has to do with a message, and why."""
    params = Params(request.query, "topic")
    state = state_of(request)
    topic = await _topic(state, params.text("topic"))
    message = await _one(state, topic, request.match_info["id"])
    route = state.app.node.routes.topics[topic].route
    groups = await state.console.groups_of(topic, route)
    rows = await state.console.gather(
        _explained(state, message, group) for group in groups[:MOST_GROUPS]
    )
    return reply({"total": len(groups), "groups": rows})


async def _explained(
    state: State, message: ReceivedMessage, group: str
) -> dict[str, Any]:
    """The findings of one group; what a broker refused is told in their place."""
    row: dict[str, Any] = {"group": group, "findings": [], "error": None}
    try:
        found = await admin_explain.about(state.console, message, group)
    except RemotingError as error:
        return {**row, "error": in_words(error)}
    return {**row, "findings": [structs.asdict(one) for one in found]}


async def _trace(state: State, message: ReceivedMessage) -> list[trace.Step]:
    """What clients wrote down that they did with it, in the order of time."""
    known = trace.TRACE_TOPIC in state.app.node.routes.topics
    if not (known and shows(state, trace.TRACE_TOPIC)):
        return []
    return await admin_traces.trace(state.console, message.msg_id)


ROUTES = [
    web.get("/api/messages", _messages),
    web.get("/api/messages/{id}", _message),
    web.get("/api/messages/{id}/groups", _delivery),
]
