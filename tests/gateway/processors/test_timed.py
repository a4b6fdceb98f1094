"""Sends with a delivery time, recalls, and what waits, over the wire."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.config import TimerConfig
from ropeway.gateway.wire import properties, recall
from ropeway.gateway.wire.commands.send import RecallMessage, RecallReply, SendReply
from ropeway.gateway.wire.commands.timers import ListTimers, TimerPage
from ropeway.gateway.wire.recall import RecallHandle
from tests.remoting import Remoting, looped, running, until
from tests.requests import batch_of, pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App

HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ends(app: App) -> tuple[int, int]:
    """How much is in the queue, and how much waits or has waited."""
    orders = app.node.topics.get("orders").partitions[0]
    return orders.next_offset, app.node.timer.topic.partitions[0].next_offset


@looped
@pytest.mark.parametrize("v2", [True, False])
@pytest.mark.parametrize(
    "pairs",
    [
        {"TIMER_DELAY_MS": "300"},
        {"TIMER_DELIVER_MS": "at"},
        {"__STARTDELIVERTIME": "at"},
        {"TIMER_DELAY_MS": "300", "REAL_TOPIC": "before", "REAL_QID": "7"},
        {"TIMER_DELAY_MS": "300", "TIMER_ENQUEUE_MS": "1", "TIMER_DEQUEUE_MS": "2"},
        {"TIMER_DELAY_MS": "300", "DELAY": "0"},
    ],
)
async def test_a_message_comes_at_its_time_with_all_that_it_had(
    tmp_path: Path, pairs: dict[str, str], v2: bool
):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders", queue_id=1), b"makes the topic")
        # What says when has to arrive before, also where a machine stands still.
        delay_ms = 1500 if "at" in pairs.values() else 300
        at_ms = now_ms() + delay_ms
        pairs = {name: value.replace("at", f"{at_ms}") for name, value in pairs.items()}
        more = {"TAGS": "t", "KEYS": "a b", "user": "x"}
        asked = sending("orders", pairs={**pairs, **more}, v2=v2, flag=9)
        reply = (await client.ask(asked, b"later")).read(SendReply)
        assert (reply.queue_id, reply.transaction_id) == (0, "0" * 32)
        handle = recall.parse(reply.recall_handle)
        assert (handle.topic, handle.broker) == ("orders", "broker-0")
        assert handle.deliver_ms >= at_ms
        (found,) = (await client.ask(waiting("orders", subscription="t"))).messages()
        assert found.store_ms >= handle.deliver_ms
        assert (found.body, found.flag) == (b"later", 9)
        kept = properties.parse(found.properties)
        assert more.items() <= kept.items()
        assert kept["TIMER_OUT_MS"] == str(handle.deliver_ms)
        assert (kept["REAL_TOPIC"], kept["REAL_QID"]) == ("orders", "0")
        assert at_ms - delay_ms <= int(kept["TIMER_ENQUEUE_MS"]) <= handle.deliver_ms
        assert kept["TIMER_DEQUEUE_MS"] == str(found.store_ms)
        assert len(await app.node.log.query("orders", "b", 0, 1 << 60, 9)) == 1


@looped
@pytest.mark.parametrize(
    "pairs",
    [
        {"TIMER_DELIVER_MS": "1000"},
        {"TIMER_DELAY_SEC": "-5"},
        {"TIMER_DELAY_MS": "0"},
        {"TIMER_DELAY_SEC": "5", "TIMER_OUT_MS": "1"},
    ],
)
async def test_what_was_due_before_or_has_waited_already_is_stored_at_once(
    tmp_path: Path, pairs: dict[str, str]
):
    async with running(tmp_path) as (app, client):
        reply = (await client.ask(sending("orders", pairs=pairs), b"x")).read(SendReply)
        assert reply.recall_handle is None
        assert ends(app) == (1, 0)


@looped
@pytest.mark.parametrize(
    ("pairs", "remark"),
    [
        ({"TIMER_DELAY_SEC": "3601"}, "not be bigger than the max delay 3600000ms"),
        ({"TIMER_DELAY_SEC": "9" * 14}, "not be bigger than the max delay"),
        ({"TIMER_DELIVER_MS": "soon"}, "TIMER_DELIVER_MS is 'soon'; allowed"),
    ],
)
async def test_a_time_that_cannot_be_is_refused(
    tmp_path: Path, pairs: dict[str, str], remark: str
):
    limit = TimerConfig(max_delay_hours=1)
    async with running(tmp_path, timer=limit) as (app, client):
        answer = await client.ask(sending("orders", pairs=pairs), b"x")
        assert answer.code == 13
        assert remark in answer.remark
        assert ends(app) == (0, 0)
        asked = sending("orders", batch=True)
        body = batch_of(b"x", pairs={"UNIQ_KEY": "K", **pairs})
        assert (await client.ask(asked, body)).code == 13


@looped
async def test_a_level_comes_before_a_time(tmp_path: Path):
    async with running(tmp_path, delay_levels="1h") as (_, client):
        pairs = {"DELAY": "1", "TIMER_DELAY_MS": "1"}
        reply = (await client.ask(sending("orders", pairs=pairs), b"x")).read(SendReply)
        assert reply.recall_handle is None
        (found,) = (await client.ask(pulling("SCHEDULE_TOPIC_XXXX"))).messages()
        assert "TIMER_DELAY_MS" not in properties.parse(found.properties)


@looped
async def test_nobody_but_the_broker_writes_to_the_system_topic(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(sending("rmq_sys_wheel_timer"), b"x")
        assert answer.code == 16


async def wait_for(client: Remoting, count: int, topic: str = "orders") -> list[str]:
    """Have so many messages wait for an hour; their handles."""
    handles = []
    for number in range(count):
        pairs = {"TIMER_DELAY_MS": f"{HOUR_MS}", "UNIQ_KEY": f"{topic}-{number}"}
        answer = await client.ask(sending(topic, pairs=pairs), b"x")
        handles.append(answer.read(SendReply).recall_handle)
    return handles


async def listed(client: Remoting, **asked: object) -> TimerPage:
    answer = await client.ask(ListTimers(**{"max_nums": 100, **asked}))
    assert answer.code == 0, answer.remark
    return msgspec.json.decode(answer.body, type=TimerPage)


@looped
async def test_what_waits_is_told_page_by_page_and_recalled_by_what_that_tells(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        handles = await wait_for(client, 5)
        await wait_for(client, 2, "others")
        rounds = app.node.timer.idle_rounds
        await until(lambda: app.node.timer.idle_rounds > rounds + 1)
        first = await listed(client, max_nums=3, topic="orders")
        rest = await listed(client, max_nums=3, topic="orders", after=first.next)
        messages = first.messages + rest.messages
        assert rest.next is None
        assert [one.recall_handle for one in messages] == handles
        assert [one.msg_id for one in messages] == [f"orders-{one}" for one in range(5)]
        assert len((await listed(client)).messages) == 7
        for _ in range(2):
            asked = RecallMessage(topic="orders", recall_handle=handles[1])
            reply = (await client.ask(asked)).read(RecallReply)
            assert reply.msg_id == "orders-1"
        rounds = app.node.timer.idle_rounds
        await until(lambda: app.node.timer.idle_rounds > rounds + 1)
        left = (await listed(client, topic="orders")).messages
        assert [one.recall_handle for one in left] == [handles[0], *handles[2:]]


@looped
@pytest.mark.parametrize(
    ("handle", "remark"),
    [
        ("nonsense", "recall handle is invalid"),
        (RecallHandle("others", "broker-0", 2, "K"), "topic not match"),
        (RecallHandle("orders", "broker-9", 2, "K"), "handle is of broker broker-9"),
        (RecallHandle("orders", "broker-0", 2, "K"), "timestamp invalid: the message"),
        (RecallHandle("orders", "broker-0", 10**17, "K"), "no message can wait for"),
    ],
)
async def test_a_recall_that_cannot_be_is_refused(
    tmp_path: Path, handle: str | RecallHandle, remark: str
):
    async with running(tmp_path) as (_, client):
        text = handle if isinstance(handle, str) else recall.dump(handle).decode()
        asked = RecallMessage(topic="orders", recall_handle=text)
        assert (await client.ask(asked)).code == 17
        await client.ask(sending("orders"), b"makes the topic")
        answer = await client.ask(asked)
        assert answer.code == 604
        assert remark in answer.remark


@looped
@pytest.mark.parametrize(
    "asked", [{"max_nums": 0}, {"max_nums": 1001}, {"after": "xyz"}]
)
async def test_a_page_that_cannot_be_is_refused(tmp_path: Path, asked: dict):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(ListTimers(**{"max_nums": 1, **asked}))
        assert answer.code == 29
        assert "allowed" in answer.remark
