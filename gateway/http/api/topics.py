"""Topics: the list with rates, and one with its queues and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.gateway.http.api import paging
from ropeway.gateway.http.api.kinds import ALL, CHOICES, Kind, kinds
from ropeway.gateway.http.login import require
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import shows, state_of
from ropeway.gateway.node.traffic import TOPIC_PUT_NUMS
from ropeway.gateway.processors.needs import ALL as EVERY
from ropeway.gateway.processors.needs import GET, LIST, topic_need, topic_needs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.client.lags import QueueSpan
    from ropeway.gateway.http.state import State
    from ropeway.gateway.node.node import Node
    from ropeway.routing.api import Topic

PERMISSIONS = ((4, "read"), (2, "write"))


async def _topics(request: web.Request) -> web.Response:
    params = Params(request.query, *paging.NAMES, "kind")
    kind = params.choice("kind", CHOICES)
    state = state_of(request)
    await require(state, topic_need(EVERY, (GET, LIST)))
    node = state.app.node
    found: Iterable[str] = [one for one in node.routes.topics if shows(state, one)]
    if kind != ALL:
        wanted, kind_of = Kind(kind), kinds(node)
        found = [name for name in found if kind_of(name) is wanted]
    page = paging.page(params, found)
    rows = await state.console.gather(
        _row(state, topic)
        for name in page.names
        if (topic := node.routes.topics.get(name)) is not None
    )
    return reply({"total": page.total, "offset": page.offset, "topics": rows})


async def _row(state: State, topic: Topic) -> dict[str, Any]:
    return {
        **_setup(state.app.node, topic),
        "in_rate": await state.console.rate(TOPIC_PUT_NUMS, topic.name, topic.route),
    }


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
    return reply(
        {
            **await _row(state, topic),
            "spans": [_span(topic, one) for one in spans],
            "groups": await state.console.groups_of(topic.name, topic.route),
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
