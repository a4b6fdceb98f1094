"""What counts as a broker's queues, and where each goes when it is drained."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from ropeway.gateway.node import names
from ropeway.gateway.node.broker_context import BrokerContext
from ropeway.gateway.node.drains import Drains, Waiting, queues_of
from ropeway.routing.api import Broker, Topic


def topic(name: str, **route: list[int]) -> Topic:
    most = max(map(len, route.values()))
    return Topic(name=name, read_queue_nums=most, write_queue_nums=most, route=route)


def drains(*topics: Topic, settings: dict | None = None) -> Drains:
    """Broker a of three in a cluster, and one of another."""
    clusters = {"a": "c", "b": "c", "d": "c", "z": "other"}
    brokers = {
        name: (Broker(name=name, node="n", cluster=cluster, addresses=("h:1",), pid=1),)
        for name, cluster in clusters.items()
    }
    routes = SimpleNamespace(
        topics={one.name: one for one in topics},
        brokers=brokers,
        settings=settings or {},
    )
    broker = BrokerContext("a", "c", routes, None, None, None, bytes, int)  # type: ignore[arg-type]
    return Drains(broker, Waiting(*[None] * 4), is_shared=True)  # type: ignore[arg-type]


def test_what_a_broker_has_for_itself_is_not_moved() -> None:
    own = [
        *(names.SCHEDULE_TOPIC, names.TIMER_TOPIC, names.POP_TOPIC, names.HALF_TOPIC),
        *(names.HALF_ENDS_TOPIC, names.STAGED_TOPIC, names.BATCHES_TOPIC, "c", "a"),
        *(names.AUTO_CREATE_TOPIC, names.reply_topic("c")),
    ]
    others = ["orders", "%RETRY%g", "%DLQ%g", names.TRACE_TOPIC, names.GIVEN_UP_TOPIC]
    found = drains(*(topic(name, a=[0]) for name in [*own, *others]))
    assert set(queues_of(found._routes, "c", "a")) == set(others)
    assert queues_of(found._routes, "c", "b") == {}


def test_a_queue_that_came_a_moment_ago_is_seen() -> None:
    found = drains(topic("orders", a=[0]))
    routes = found._routes

    async def refresh() -> None:
        routes.topics["late"] = topic("late", a=[0, 1])  # type: ignore[index]

    async def nothing() -> int:
        return 0

    routes.refresh = refresh  # type: ignore[method-assign]
    idle = SimpleNamespace(is_busy=False, count_waiting=nothing)
    found._waiting = Waiting(*[idle] * 4)  # type: ignore[arg-type]
    state = asyncio.run(found.look())
    assert state.queues == {"late": 2, "orders": 1}
    assert {one.topic for one in state.moves} == {"late", "orders"}


def test_a_queue_goes_where_its_topic_has_fewest() -> None:
    orders = topic("orders", a=[0, 1], b=[2, 3], d=[4])
    (move,), stuck = drains(orders)._plan()
    assert (move.partition, move.to_broker, stuck) == (1, "d", {})
    for gone in ("d", "b"):
        drained = {(names.DRAINS, gone): "draining"}
        (move,), _ = drains(orders, settings=drained)._plan()
        assert move.to_broker == ({"b", "d"} - {gone}).pop()


@pytest.mark.parametrize("sign", ["_", "+"])
def test_retries_of_popped_messages_go_to_where_their_topic_is(sign: str) -> None:
    orders = topic("orders", d=[0])
    retries = topic(f"%RETRY%g{sign}orders", a=[0], d=[1, 2])
    (move,), _ = drains(orders, retries)._plan()
    assert move.to_broker == "d"
    (move,), _ = drains(retries)._plan()
    assert move.to_broker == "b"


def test_a_broker_whose_queues_are_of_another_generation_is_passed_over() -> None:
    route = {"a": [0], "b": [5]}
    older = replace(topic("orders", **route), generation=1, generations={"b": 1})
    (move,), _ = drains(older)._plan()
    assert move.to_broker == "d"
    alone = {(names.DRAINS, "d"): "draining"}
    moves, stuck = drains(older, settings=alone)._plan()
    assert moves == []
    assert "were not made together" in stuck["orders"]
