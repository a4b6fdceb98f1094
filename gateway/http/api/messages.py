"""Messages: looked up by id, by key and by time; one with its body and its trace."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from aiohttp import web

from ropeway.gateway.http.api import shown
from ropeway.gateway.http.api.topics import find
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
_MAX_MS = 1 << 53
"""The largest whole number that a browser can count to."""


async def _messages(request: web.Request) -> web.Response:
    params = Params(request.query, "topic", "key", "id", "begin", "end", "limit")
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
    else:
        found = await _by_time(state, topic, begin_ms, end_ms, limit)
    return reply({"messages": [*map(shown.in_list, newest(found, limit))]})


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
    found = await _by_id(state, topic, request.match_info["id"])
    if not found:
        raise RefusedError(f"there is no such message in topic {topic}", 404)
    message = found[0]
    return reply(shown.whole(message, await _trace(state, message)))


async def _trace(state: State, message: ReceivedMessage) -> list[trace.Step]:
    """What clients wrote down that they did with it, in the order of time."""
    known = trace.TRACE_TOPIC in state.app.node.routes.topics
    if not (known and shows(state, trace.TRACE_TOPIC)):
        return []
    found = await state.console.query(trace.TRACE_TOPIC, message.msg_id)
    steps = [
        step
        for one in found
        for step in trace.decode(one.body)
        if step.msg_id == message.msg_id
    ]
    return sorted(steps, key=lambda step: step.time_ms or 0)


ROUTES = [
    web.get("/api/messages", _messages),
    web.get("/api/messages/{id}", _message),
]
