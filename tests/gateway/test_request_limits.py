"""A request that asks for too much work is refused, and its connection goes on."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.node.sql import NotCompiledError, compile_quickly
from ropeway.gateway.request_limits import RequestsConfig
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.batches import Stage
from ropeway.gateway.wire.commands.pop import PopMessage
from tests.remoting import beat, config, connect, looped, running, until
from tests.requests import batch_of, heartbeat, pulling, sending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FEW = RequestsConfig(
    body_bytes=5000,
    batch_messages=3,
    heartbeat_groups=2,
    heartbeat_subscriptions=4,
    queues=3,
    expression_characters=200,
    expression_terms=3,
)
LONG = " OR ".join(f"price = {number}" for number in range(500))


def said(groups: int, topics: int, producers: int = 0) -> bytes:
    wanted = [bodies.SubscriptionData(f"t{one}", "*") for one in range(topics)]
    return bodies.encode(
        bodies.HeartbeatData(
            client_id="me",
            producer_data_set=[bodies.ProducerData(f"p{n}") for n in range(producers)],
            consumer_data_set=[
                bodies.ConsumerData(f"g{one}", subscription_data_set=wanted)
                for one in range(groups)
            ],
        )
    )


def named(queues: int) -> bytes:
    return bodies.encode(
        bodies.LockBatchBody(
            "g", "me", [bodies.MessageQueue("broker-0", n, "t") for n in range(queues)]
        )
    )


def checked(expression: str, kind: str = "SQL92") -> bytes:
    wanted = bodies.SubscriptionData("t", expression, expression_type=kind)
    return bodies.encode(bodies.CheckClientBody("me", "g", subscription_data=wanted))


def sql(terms: int) -> str:
    return " OR ".join(["a = 1"] * terms)


@looped
@pytest.mark.parametrize(
    ("code", "body", "most", "more"),
    [
        ("HEART_BEAT", lambda n: said(n, 1), 2, "3 producers and consumers"),
        ("HEART_BEAT", lambda n: said(0, 0, n), 2, "3 producers and consumers"),
        ("HEART_BEAT", lambda n: said(1, n), 4, "5 subscriptions"),
        ("LOCK_BATCH_MQ", named, 3, "4 queues"),
        ("UNLOCK_BATCH_MQ", named, 3, "4 queues"),
        ("CHECK_CLIENT_CONFIG", lambda n: checked(sql(n)), 3, "4 properties"),
        ("CHECK_CLIENT_CONFIG", lambda n: checked("a=1".ljust(n)), 200, "201 char"),
        ("CHECK_CLIENT_CONFIG", lambda n: checked("a" * n, "TAG"), 200, "201 char"),
        (
            "CHECK_CLIENT_CONFIG",
            lambda n: checked("||".join(map(str, range(n))), "TAG"),
            3,
            "4 tags",
        ),
        ("HEART_BEAT", lambda n: said(0, 0).ljust(n), 5000, "body of 5001 bytes"),
    ],
)
async def test_so_much_is_done_and_more_is_refused(
    tmp_path: Path, code: str, body: Callable[[int], bytes], most: int, more: str
):
    async with running(tmp_path, requests=FEW) as (_, client):

        async def ask(count: int) -> Any:
            return await client.ask(RequestCode[code], body(count), fields={})

        assert (await ask(most)).code == 0
        refused = await ask(most + 1)
        assert refused.code in {
            ResponseCode.INVALID_PARAMETER,
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        }
        assert more in refused.remark
        assert f"allowed: {most}" in refused.remark
        assert (await ask(most)).code == 0


@looped
async def test_a_message_may_be_longer_than_a_request_without_one(tmp_path: Path):
    async with running(tmp_path, requests=FEW) as (_, client):
        assert (await client.ask(sending("t"), bytes(5001))).code == 0


@looped
async def test_a_batch_has_so_many_messages_and_no_more(tmp_path: Path):
    async with running(tmp_path, requests=FEW) as (_, client):
        asked = sending("t", batch=True)
        assert (await client.ask(asked, batch_of(*[b"x"] * 3))).code == 0
        refused = await client.ask(asked, batch_of(*[b"x"] * 4))
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        assert refused.remark == "more than 3 messages in a batch; allowed: 3"
        assert len((await client.ask(pulling("t"))).messages()) == 3
        staged = Stage(producer_id="me", topic="t", queue_id=0)
        assert (await client.ask(staged, batch_of(*[b"x"] * 3))).code == 0
        assert (
            await client.ask(staged, batch_of(*[b"x"] * 4))
        ).remark == refused.remark


@looped
async def test_a_long_expression_does_its_work_wherever_it_is_given(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for price in (7, 1000, 400):
            sent = sending("orders", pairs={"price": str(price)})
            assert (await client.ask(sent, b"x")).code == 0
        by_itself = pulling("orders", subscription=LONG, expression_type="SQL92")
        assert [one.queue_offset for one in await got(client, by_itself)] == [0, 2]
        spaced = {"expression": f"{LONG} ", "expression_type": "SQL92"}
        assert (await beat(client, "me", "readers", **spaced)).code == 0
        # Nobody keeps it ready for each group that gives it.
        by_group = pulling("orders", sys_flag=0)
        for _ in range(2):
            assert [one.queue_offset for one in await got(client, by_group)] == [0, 2]
        group = app.node.clients.consumer_group("readers")
        assert not group.subscriptions["orders"].is_read
        asked = PopMessage(
            consumer_group="poppers",
            topic="orders",
            queue_id=0,
            max_msg_nums=32,
            invisible_time=60_000,
            poll_time=0,
            born_time=0,
            init_mode=0,
            exp=f" {LONG}",
            exp_type="SQL92",
        )
        popped = await client.ask(asked)
        assert [one.queue_offset for one in popped.messages()] == [0, 2]


@looped
async def test_expressions_of_a_client_that_has_gone_are_not_compiled(tmp_path: Path):
    """They were, for nine seconds after their clients had gone."""
    texts = [f"{LONG} OR gone{number} = 1" for number in range(3)]
    async with running(tmp_path) as (app, _):
        slices = app.server.fair_queue.slices("127.0.0.1")
        await slices.begin_large()
        listener = app.server.listeners[0]
        async with connect(listener) as gone:
            code = RequestCode.CHECK_CLIENT_CONFIG
            answers = [gone.send(code, checked(one), fields={}) for one in texts]
            asking: list[Any] = []

            def has_come() -> bool:
                asking[:] = [one for one in listener.connections if one.in_flight == 3]
                return bool(asking)

            await until(has_come)
        await until(lambda: asking[0].closed)
        slices.end_large()
        await until(lambda: asking[0].in_flight == 0)
        await asyncio.gather(*answers, return_exceptions=True)
    for text in texts:
        with pytest.raises(NotCompiledError):
            compile_quickly(text)


async def got(client: Any, asked: Any) -> Any:
    answer = await client.ask(asked)
    assert answer.code == 0, answer.remark
    return answer.messages()


@looped
async def test_a_pull_by_a_long_expression_of_its_group_waits_for_what_it_wants(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        wanted = {"expression": f"  {LONG}", "expression_type": "SQL92"}
        assert (await beat(client, "me", "readers", **wanted)).code == 0
        asked = pulling("orders", 1, sys_flag=2, suspend_timeout_millis=60_000)
        answer = client.send(asked)
        await until(lambda: len(app.node.pull_hold) == 1)
        # Other texts, so that the first is no longer kept; its pull goes on.
        for price in ("none", "9"):
            sent = sending("orders", pairs={"price": price})
            assert (await client.ask(sent, b"x")).code == 0
        found = await asyncio.wait_for(answer, 60)
        assert [one.queue_offset for one in found.messages()] == [2]


@looped
async def test_expressions_of_one_heartbeat_keep_nobody_waiting(tmp_path: Path):
    """Before, all of them were compiled while everybody waited: a minute and more."""
    texts = [f"{LONG} OR new{number} = 1" for number in range(100)]
    given = bodies.encode(
        bodies.HeartbeatData(
            client_id="me",
            producer_data_set=[],
            consumer_data_set=[
                bodies.ConsumerData(
                    "g",
                    subscription_data_set=[
                        bodies.SubscriptionData(f"t{n}", text, expression_type="SQL92")
                        for n, text in enumerate(texts)
                    ],
                )
            ],
        )
    )
    async with running(config(tmp_path)) as (app, client):
        begun = time.thread_time()
        assert (await client.ask(RequestCode.HEART_BEAT, given, fields={})).code == 0
        assert time.thread_time() - begun < 1
        async with connect(app.server.listeners[0]) as other:
            pulls = [
                client.send(
                    pulling("orders", subscription=text, expression_type="SQL92")
                )
                for text in texts[:5]
            ]
            begun = time.thread_time()
            assert (await other.ask(sending("orders"), b"x")).code == 0
            assert time.thread_time() - begun < 0.5
            assert (
                await other.ask(RequestCode.HEART_BEAT, heartbeat("you"), fields={})
            ).code == 0
            await asyncio.gather(*pulls)
