"""How queues are shared out, and how groups come to pop."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.processors.assignments import AssignmentQuery, RequestMode
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.routing.api import Group
from tests.remoting import beat, connect, looped, running, two_running, until

if TYPE_CHECKING:
    from pathlib import Path

# As Java's client 5.5.0 asked, and a broker 5.5.0 answered.
QUERY = (
    b'{"clientId":"c1","consumerGroup":"readers","messageModel":"CLUSTERING",'
    b'"strategyName":"AVG","topic":"%RETRY%readers"}'
)
ANSWER = (
    b'{"messageQueueAssignments":[{"messageQueue":{"brokerName":"broker-0",'
    b'"queueId":0,"topic":"%RETRY%readers"},"mode":"PULL"}]}'
)
SET = b'{"consumerGroup":"readers","mode":"POP","popShareQueueNum":8,"topic":"orders"}'


def queried(client_id: str, **changes) -> bytes:
    fields = {
        "topic": "orders",
        "consumer_group": "readers",
        "client_id": client_id,
        "strategy_name": "AVG",
        **changes,
    }
    return bodies.encode(AssignmentQuery(**fields))


async def assigned(client, client_id: str, **changes):
    """Queue ids and modes, or None where the client keeps what it has."""
    answer = await client.ask(
        RequestCode.QUERY_ASSIGNMENT, queried(client_id, **changes)
    )
    assert answer.code == 0
    found = msgspec.json.decode(answer.body).get("messageQueueAssignments")
    if found is None:
        return None
    return [(one["messageQueue"]["queueId"], one["mode"]) for one in found]


async def set_mode(app, client, topic="orders", **changes) -> int:
    await app.node.groups.put(Group(name="readers"))
    mode = RequestMode(topic=topic, consumer_group="readers", **changes)
    body = bodies.encode(mode)
    return (await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body)).code


@looped
async def test_a_client_is_answered_as_by_a_real_broker(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await beat(client, "c1", "readers")
        await app.node.topics.ensure_derived("%RETRY%readers", 1)
        answer = await client.ask(RequestCode.QUERY_ASSIGNMENT, QUERY)
        assert (answer.code, answer.remark, answer.body) == (0, None, ANSWER)
        await app.node.topics.ensure_derived("orders", 4)
        answer = await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, SET)
        assert (answer.code, answer.fields, answer.body) == (0, {}, b"")
        assert await assigned(client, "c1") == [(-1, "POP")]


@looped
@pytest.mark.parametrize(
    ("strategy", "parts"),
    [
        ("AVG", [[0, 1, 2], [3, 4], [5, 6]]),
        ("AVG_BY_CIRCLE", [[0, 3, 6], [1, 4], [2, 5]]),
    ],
)
async def test_who_pulls_has_queues_of_its_own(tmp_path: Path, strategy, parts):
    async with running(tmp_path) as (app, client), AsyncExitStack() as stack:
        await app.node.topics.ensure_derived("orders", 7)
        listener = app.server.listeners[0]
        for name in ("c1", "c2", "c3"):
            other = await stack.enter_async_context(connect(listener))
            await beat(other, name, "readers")
        for name, part in zip(("c1", "c2", "c3"), parts, strict=True):
            found = await assigned(client, name, strategy_name=strategy)
            assert found == [(queue_id, "PULL") for queue_id in part]
        assert await assigned(client, "stranger", strategy_name=strategy) == []


@looped
async def test_who_pops_shares_queues_with_as_many_as_was_said(tmp_path: Path):
    async with running(tmp_path) as (app, client), AsyncExitStack() as stack:
        await app.node.topics.ensure_derived("orders", 4)
        listener = app.server.listeners[0]
        for number in range(4):
            other = await stack.enter_async_context(connect(listener))
            await beat(other, f"c{number}", "readers")
        assert await set_mode(app, client, mode="POP", pop_share_queue_num=1) == 0
        shared = [await assigned(client, f"c{number}") for number in range(4)]
        assert [[queue for queue, _ in one] for one in shared] == [
            [0, 1],
            [1, 2],
            [2, 3],
            [3, 0],
        ]
        for more in (0, -1, 3, 100):
            await set_mode(app, client, mode="POP", pop_share_queue_num=more)
            assert await assigned(client, "c2") == [(-1, "POP")]
        # More clients than queues: each has one.
        await set_mode(app, client, mode="POP", pop_share_queue_num=1)
        for number in range(4, 6):
            other = await stack.enter_async_context(connect(listener))
            await beat(other, f"c{number}", "readers")
        shared = [await assigned(client, f"c{number}") for number in range(6)]
        assert shared == [[(number % 4, "POP")] for number in range(6)]
        assert await assigned(client, "stranger") == []


@looped
async def test_where_nobody_can_say_clients_keep_what_they_have(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await app.node.topics.ensure_derived("orders", 2)
        # Nobody is connected; no such topic; no such strategy.
        assert await assigned(client, "c1") is None
        await beat(client, "c1", "readers")
        assert await assigned(client, "c1", topic="absent") is None
        assert await assigned(client, "c1", strategy_name="MINE") is None
        everything = [(0, "PULL"), (1, "PULL")]
        found = await assigned(client, "c9", message_model="BROADCASTING")
        assert found == everything


@looped
async def test_modes_are_refused_where_they_cannot_be(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        retry = await set_mode(app, client, "%RETRY%readers", mode="POP")
        assert retry == ResponseCode.NO_PERMISSION
        assert await set_mode(app, client) == ResponseCode.TOPIC_NOT_EXIST
        await app.node.topics.ensure_derived("orders", 1)
        illegal = bodies.encode(RequestMode(topic="orders", consumer_group="not legal"))
        answer = await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, illegal)
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        for body in (b"", b"{}", SET.replace(b'"POP"', b'"PUSH"')):
            answer = await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body)
            assert answer.code == ResponseCode.SYSTEM_ERROR
        assert (await client.ask(RequestCode.QUERY_ASSIGNMENT, b"[]")).code == 1


@looped
async def test_a_mode_makes_a_group_that_is_missing(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await app.node.topics.ensure_derived("orders", 1)
        mode = RequestMode(topic="orders", consumer_group="new", mode="POP")
        body = bodies.encode(mode)
        answer = await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body)
        assert answer.code == ResponseCode.SUCCESS
        assert app.node.groups.get("new")
        await beat(client, "c1", "new")
        found = await assigned(client, "c1", consumer_group="new")
        assert found == [(-1, "POP")]


@looped
async def test_a_mode_outlives_a_restart_and_all_brokers_know_it(tmp_path: Path):
    async with running(tmp_path / "one") as (app, client):
        await app.node.topics.ensure_derived("orders", 1)
        assert await set_mode(app, client, mode="POP") == 0
    async with running(tmp_path / "one") as (_, client):
        await beat(client, "c1", "readers")
        assert await assigned(client, "c1") == [(-1, "POP")]
        answer = await client.ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, fields={})
        assert msgspec.json.decode(answer.body) == {
            "messageRequestModeMap": {
                "orders": {
                    "readers": {
                        "consumerGroup": "readers",
                        "mode": "POP",
                        "popShareQueueNum": 0,
                        "topic": "orders",
                    }
                }
            }
        }
    async with two_running(tmp_path / "two") as [(one, first), (two, second)]:
        for app in (one, two):
            await app.node.topics.ensure_derived("orders", 2)
        assert await set_mode(one, first, mode="POP") == 0
        await beat(second, "c1", "readers")
        await until(lambda: two.node.routes.settings)
        answer = await second.ask(RequestCode.QUERY_ASSIGNMENT, queried("c1"))
        found = msgspec.json.decode(answer.body)["messageQueueAssignments"]
        brokers = [one["messageQueue"]["brokerName"] for one in found]
        assert sorted(brokers) == sorted(
            {one.node.config.broker, two.node.config.broker}
        )
