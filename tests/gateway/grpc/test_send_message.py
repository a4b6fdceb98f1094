"""Sending: every type, together, and what a topic does not take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ropeway.gateway.config import LimitsConfig, TopicsConfig
from ropeway.gateway.grpc.protocol import (
    Code,
    MessageType,
    RecallMessageRequest,
    Resource,
    SendMessageRequest,
    Timestamp,
)
from ropeway.gateway.node import fair_queueing
from ropeway.gateway.wire import properties
from tests.busy import busy
from tests.gateway.grpc.thin import create, message, sends, serving
from tests.remoting import connect, looped
from tests.requests import pulling

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_what_is_sent_by_grpc_is_pulled_by_remoting(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders")
        answer = await client.send(
            "orders",
            b"body",
            tag="T",
            keys=["k1", "k2"],
            trace_context="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            born_timestamp=Timestamp(seconds=1_700_000_000),
            pairs={"color": "blau", "größe": "漢"},
        )
        (entry,) = answer.entries
        assert (answer.status.code, entry.offset) == (Code.OK, 0)
        async with connect(app.server.listeners[0]) as remoting:
            (found,) = (await remoting.ask(pulling("orders"))).messages()
        pairs = properties.parse(found.properties)
        assert (found.body, found.born_ms) == (b"body", 1_700_000_000_000)
        assert pairs["TAGS"] == "T"
        assert pairs["KEYS"] == "k1 k2"
        assert pairs["UNIQ_KEY"] == entry.message_id
        assert pairs["TRACE_CONTEXT"].startswith("00-4bf9")
        assert (pairs["color"], pairs["größe"]) == ("blau", "漢")


@looped
async def test_messages_sent_together_lie_together(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", queues=4)
        batch = sends(*(message("orders", b"%d" % number) for number in range(3)))
        answer = await client.call("SendMessage", batch)
        assert [one.offset for one in answer.entries] == [0, 1, 2]
        ids = [one.system_properties.message_id for one in batch.messages]
        assert [one.message_id for one in answer.entries] == ids
        mixed = sends(message("orders"), message("others"))
        assert (await client.call("SendMessage", mixed)).status.code == (
            Code.MESSAGE_CORRUPTED
        )
        nothing = await client.call("SendMessage", SendMessageRequest())
        assert nothing.status.code == Code.MESSAGE_CORRUPTED


@looped
async def test_messages_of_one_group_lie_in_one_queue(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", "FIFO", queues=8)
        fifo = {"message_type": MessageType.FIFO, "message_group": "Lüneburg"}
        for number in range(5):
            answer = await client.send("orders", queue_id=number, **fifo)
            assert answer.entries[0].offset == number


@looped
async def test_a_delayed_message_is_recalled(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", "DELAY")
        due = Timestamp(seconds=int(time.time()) + 600)
        later = {"message_type": MessageType.DELAY, "delivery_timestamp": due}
        (entry,) = (await client.send("orders", **later)).entries
        recall = RecallMessageRequest(
            topic=Resource(name="orders"), recall_handle=entry.recall_handle
        )
        answer = await client.call("RecallMessage", recall)
        assert answer.status.code == Code.OK
        assert answer.message_id == entry.message_id
        recall.recall_handle = "forged"
        refused = await client.call("RecallMessage", recall)
        assert refused.status.code == Code.BAD_REQUEST


@looped
async def test_a_topic_takes_messages_of_its_type_alone(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "plain")
        await create(app, "ordered", "FIFO")
        wrong = Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        fifo = {"message_type": MessageType.FIFO, "message_group": "g"}
        assert (await client.send("plain", **fifo)).status.code == wrong
        assert (await client.send("ordered")).status.code == wrong
        assert (await client.send("ordered", **fifo)).status.code == Code.OK


@looped
async def test_a_topic_that_is_not_there_is_not_found(tmp_path: Path):
    topics = TopicsConfig(auto_create=False)
    async with serving(tmp_path, topics=topics) as (_, client):
        assert (await client.send("nowhere")).status.code == Code.TOPIC_NOT_FOUND


@looped
async def test_long_sends_that_waited_for_too_long_are_refused(tmp_path: Path):
    limits = LimitsConfig(send_wait_ms=1)
    async with serving(tmp_path, limits=limits) as (app, client):
        await create(app, "orders")
        with busy(app.node.fair_queue):
            late = await client.send("orders", bytes(20_000))
        assert late.status.code == Code.TOO_MANY_REQUESTS
        assert "broker busy" in late.status.message


@looped
async def test_others_have_turns_between_messages_sent_together(tmp_path, monkeypatch):
    monkeypatch.setattr(fair_queueing, "_TURN_S", 0)
    async with serving(tmp_path) as (app, client):
        await create(app, "orders")
        batch = sends(*(message("orders", b"x") for _ in range(100)))
        assert len(batch.SerializeToString()) < 16 * 1024
        with busy(app.node.fair_queue) as other:
            answer = await client.call("SendMessage", batch)
        assert len(answer.entries) == 100
        assert other.turns >= 99
