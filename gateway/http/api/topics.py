"""Topics: the list with rates, and one with its queues and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.client.admin_topics import approximate_bytes
from ropeway.client.errors import ResponseError
from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.kinds import ALL, CHOICES, Kind, kinds
from ropeway.gateway.http.login import offered, require
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import shows, state_of
from ropeway.gateway.node import names
from ropeway.gateway.node.traffic import TOPIC_PUT_NUMS, TOPIC_PUT_SIZE
from ropeway.gateway.processors.needs import ALL as EVERY
from ropeway.gateway.processors.needs import (
    CREATE,
    DELETE,
    GET,
    LIST,
    PUB,
    topic_need,
    topic_needs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.client.lags import QueueSpan
    from ropeway.gateway.http.state import State
    from ropeway.gateway.node.node import Node
    from ropeway.routing.api import Topic

COLUMNS = (
    *("in_rate", "in_bytes_rate", "in_day", "in_bytes_day"),
    *("messages", "approx_bytes"),
)
PERMISSIONS = ((4, "read"), (2, "write"))


async def _topics(request: web.Request) -> web.Response:
    params = Params(request.query, *paging.NAMES, paging.SORT, "kind")
    kind = params.choice("kind", CHOICES)
    state = state_of(request)
    await require(state, topic_need(EVERY, (GET, LIST)))
    node = state.app.node
    found: Iterable[str] = [one for one in node.routes.topics if shows(state, one)]
    if kind != ALL:
        wanted, kind_of = Kind(kind), kinds(node)
        found = [name for name in found if kind_of(name) is wanted]

    async def make(name: str) -> paging.Row | None:
        topic = node.routes.topics.get(name)
        if topic is None:
            return None
        return await _row(state, topic, await state.console.spans(name, topic.route))

    return reply(
        await paging.rows(params, found, make, state.console, COLUMNS, "topics")
    )


async def _row(state: State, topic: Topic, spans: list[QueueSpan]) -> dict[str, Any]:
    sent, size = await state.console.gather(
        state.console.counted(name, topic.name, topic.route)
        for name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE)
    )
    return {
        **_setup(state.app.node, topic),
        "in_rate": sent.rate,
        "in_day": sent.day,
        "in_bytes_rate": size.rate,
        "in_bytes_day": size.day,
        "messages": (messages := sum(one.end - one.begin for one in spans)),
        "approx_bytes": approximate_bytes(messages, sent.day, size.day),
    }


async def _group(state: State, group: str, topic: dict[str, Any]) -> dict[str, Any]:
    """A group with its lag in a topic; None where the user may not know it."""
    try:
        lags = await state.console.describe_group(group)
    except ResponseError:
        return {"name": group, "lag": None, "approx_lag_bytes": None}
    lag = sum(one.lag for one in lags if one.queue.topic == topic["name"])
    size = approximate_bytes(lag, topic["in_day"], topic["in_bytes_day"])
    return {"name": group, "lag": lag, "approx_lag_bytes": size}


def _setup(node: Node, topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "kind": kinds(node)(topic.name).value,
        "brokers": sorted(topic.route),
        "queues": topic.write_queue_nums,
        "read_queues": topic.read_queue_nums,
        "permissions": [word for bit, word in PERMISSIONS if topic.perm & bit],
        "order": topic.order,
        "attributes": topic.attributes,
    }


def find(node: Node, name: str) -> Topic:
    """The topic of a name.

    Raises:
        RefusedError: There is none.
    """
    topic = node.routes.topics.get(name)
    if topic is None:
        raise RefusedError(f"there is no topic {name!r:.150}", 404)
    return topic


async def _topic(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    name = request.match_info["topic"]
    await require(state, *topic_needs(state.app.node, name, (GET,)))
    topic = find(state.app.node, name)
    spans = await state.console.spans(topic.name, topic.route)
    groups = await state.console.groups_of(topic.name, topic.route)
    row = await _row(state, topic, spans)
    return reply(
        {
            **row,
            "offered": await offered(
                state,
                update=topic_needs(state.app.node, name, (CREATE,)),
                delete=topic_needs(state.app.node, name, (DELETE,)),
                send=topic_needs(state.app.node, name, (PUB,)),
            ),
            "spans": [_span(topic, one) for one in spans],
            "groups": await state.console.gather(
                _group(state, one, row) for one in filter(names.is_listed_group, groups)
            ),
        }
    )


def _span(topic: Topic, span: QueueSpan) -> dict[str, Any]:
    broker, queue_id = span.queue.broker_name, span.queue.queue_id
    numbers = topic.route.get(broker, ())
    return {
        "broker": broker,
        "queue_id": queue_id,
        "partition": numbers[queue_id] if queue_id < len(numbers) else None,
        "first": span.begin,
        "end": span.end,
    }


ROUTES = [
    web.get("/api/topics", _topics),
    web.get("/api/topics/{topic}", _topic),
]
