"""Messages with a trace context leave spans at a receiver; others cost and leave none.

The receiver is a server of OpenTelemetry's own stubs, and reads what came over gRPC.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.config import LogConfig, OtlpConfig, TierConfig
from ropeway.gateway.http.exporter import exporting
from ropeway.gateway.processors import traced
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.processors.traced import TracedPeer
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.receipt import BatchAck
from tests.gateway.grpc import thin
from tests.gateway.grpc.test_receipts import ack
from tests.gateway.pop.rig import Consumer
from tests.gateway.processors.test_cold_reads import COUNT, TAIL_BYTES, _leave_to_tier
from tests.gateway.processors.test_throttling import BODY
from tests.gateway.tracing.traces import CONTEXT, PARENT, TRACE, soon, tracing
from tests.remoting import looped, running, two_running, until
from tests.requests import batch_of, pulling, sending, waiting
from tests.system.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = {"traceparent": CONTEXT, "tracestate": "congo=t61rcWkgMzE"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    soon(monkeypatch)


@looped
async def test_a_context_is_kept_and_continued_from_the_send_to_the_pull(tmp_path):
    async with tracing(tmp_path) as (app, client, traces):
        began_ns = time.time_ns()
        for pairs in (PAIRS, {}, {"traceparent": CONTEXT[:-1] + "0"}):
            sent = await client.ask(sending("orders", pairs=pairs), b"coffee")
            assert sent.code == 0
        found = await client.ask(pulling("orders"))
        stored = properties.parse(found.messages()[0].properties)
        assert stored.items() >= PAIRS.items()
        send, receive = await traces.until("send orders", "receive orders")
        for one in (send, receive):
            assert (one.trace, one.parent) == (TRACE, PARENT)
            assert one.state == PAIRS["tracestate"]
            assert one.failure is None
            assert began_ns <= one.began_ns <= one.ended_ns <= time.time_ns()
            assert one.node == app.node_name
            assert (
                one.about.items()
                >= {
                    "messaging.system": "rocketmq",
                    "messaging.destination.name": "orders",
                    "messaging.destination.partition.id": "0",
                    "messaging.message.id": "0" * 32,
                    "messaging.message.body.size": 6,
                    "client.address": client.address,
                }.items()
            )
        assert send.about["messaging.operation.type"] == "send"
        assert receive.about["messaging.consumer.group.name"] == "readers"
        assert receive.about["messaging.rocketmq.message.offset"] == 0


@looped
async def test_a_refused_send_says_why(tmp_path):
    async with tracing(tmp_path) as (_, client, traces):
        refused = await client.ask(sending("orders", pairs=PAIRS), b"")
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        (send,) = await traces.until("send orders")
        assert send.failure == f"13: {refused.remark}"


@looped
async def test_each_context_of_a_batch_leaves_a_span(tmp_path):
    other = CONTEXT.replace("0af7", "1af7")
    body = batch_of(b"1", pairs={"traceparent": CONTEXT})
    body += batch_of(b"2", pairs={"traceparent": other})
    header = sending("orders", batch=True)
    async with tracing(tmp_path) as (_, client, traces):
        assert (await client.ask(header, body)).code == 0
        spans = await traces.until("send orders", "send orders")
        assert {one.trace[:4] for one in spans} == {"0af7", "1af7"}
        await client.ask(pulling("orders"))
        await traces.until(*["send orders"] * 2, *["receive orders"] * 2)


@looped
async def test_a_waiting_pull_is_in_the_trace_from_when_the_message_was_stored(
    tmp_path,
):
    async with tracing(tmp_path) as (app, client, traces):
        assert (await client.ask(sending("orders"), b"first")).code == 0
        before_ns = time.time_ns() // 1_000_000 * 1_000_000
        pulled = asyncio.create_task(client.ask(waiting("orders", 1)))
        await until(lambda: len(app.node.pull_hold) == 1)
        await asyncio.sleep(0.005)
        stored_ns = time.time_ns() // 1_000_000 * 1_000_000
        await client.ask(sending("orders", pairs=PAIRS), b"second")
        assert len((await pulled).messages()) == 1
        _, receive = await traces.until("send orders", "receive orders")
        assert before_ns < stored_ns <= receive.began_ns


@looped
async def test_who_waits_is_forgotten_with_its_connection(tmp_path):
    async with tracing(tmp_path) as (app, client, _):
        assert (await client.ask(sending("orders"), b"first")).code == 0
        asked = asyncio.create_task(client.ask(waiting("orders", 1)))
        await until(lambda: len(app.node.pull_hold) == 1)
        client.writer.transport.abort()
        await until(lambda: not len(app.node.pull_hold))
        await asyncio.gather(asked, return_exceptions=True)


@looped
async def test_a_popped_message_is_in_the_trace_until_it_is_acknowledged(tmp_path):
    async with tracing(tmp_path) as (_, client, traces):
        consumer = Consumer(client)
        for number in range(4):
            await client.ask(sending("orders", pairs=PAIRS), b"%d" % number)
        found = await consumer.take(4)
        assert await consumer.ack(found, 0) == 0
        assert await consumer.ack(found, 0) == ResponseCode.NO_MESSAGE
        reply = found.reply
        start = int(found.receipt(0).split()[0])
        both = BatchAck(
            *("readers", "orders", "0", start, 0, reply.revive_qid),
            *(reply.pop_time, reply.invisible_time, "Bg=="),  # offsets 1 and 2
        )
        assert await consumer.batch(both) == 0
        names = ["send orders", "receive orders"] * 4 + ["ack orders"] * 3
        spans = await traces.until(*names)
        acks = [one for one in spans if one.name == "ack orders"]
        offsets = [one.about["messaging.rocketmq.message.offset"] for one in acks]
        assert sorted(offsets) == [0, 1, 2]
        assert {one.trace for one in acks} == {TRACE}


@looped
async def test_what_stays_in_flight_is_remembered_in_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(traced, "MOST_IN_FLIGHT", 1)
    async with tracing(tmp_path) as (_, client, traces):
        consumer = Consumer(client)
        for number in range(2):
            await client.ask(sending("orders", pairs=PAIRS), b"%d" % number)
        found = await consumer.take(2)
        assert [await consumer.ack(found, one) for one in (0, 1)] == [0, 0]
        *_, ack = await traces.until(
            *["send orders", "receive orders"] * 2, "ack orders"
        )
        assert ack.about["messaging.rocketmq.message.offset"] == 1


@looped
async def test_what_another_node_works_on_is_below_the_span_of_sending_it_on(tmp_path):
    both = _Both()
    async with tracing(tmp_path, both) as (app, client, traces):
        await client.ask(sending("orders"), b"made")
        await until(lambda: "broker-1" in app.node.forwarder.others)
        header = sending("orders", pairs=PAIRS, bname="broker-1")
        assert (await client.ask(header, b"on")).code == 0
        address = app.node.forwarder.others["broker-1"].addresses[0]
        async with exporting(both.second):
            forward, send = await traces.until(f"forward {address}", "send orders")
        assert (forward.trace, forward.parent) == (TRACE, PARENT)
        assert forward.about["server.address"] == address
        assert forward.failure is None
        assert (send.trace, send.parent) == (TRACE, forward.id)
        assert send.state == PAIRS["tracestate"]
        assert (forward.node, send.node) == (app.node_name, both.second.node_name)


class _Both:
    """The first of two nodes, as if it were alone."""

    @asynccontextmanager
    async def __call__(self, data: Path, **changes: object):
        async with two_running(data, **changes) as (first, (self.second, _)):
            yield first


@looped
async def test_what_a_read_waited_for_in_the_tier_stands_below_it(tmp_path):
    small = LogConfig(segment_bytes=1 << 20, tail_cache_bytes=TAIL_BYTES)
    url = f"file://{tmp_path}/tier"
    tier = TierConfig(url=url, commit_ms=1, commit_bytes=2 * len(BODY))
    data = tmp_path / "data"
    async with tracing(data, log=small, tier=tier) as (app, client, traces):
        for _ in range(COUNT):
            assert (await client.ask(sending("orders", pairs=PAIRS), BODY)).code == 0
        await _leave_to_tier(app)
        found = await client.ask(pulling("orders", max_msg_nums=1))
        assert len(found.messages()) == 1
        names = ["send orders"] * COUNT + ["receive orders"] + ["read tier"] * 2
        receive, *reads = (await traces.until(*names))[COUNT:]
        for one in reads:
            assert (one.trace, one.parent) == (TRACE, receive.id)
            assert receive.began_ns <= one.began_ns <= one.ended_ns
        parts = [one.about["ropeway.tier.object"].rpartition(".")[2] for one in reads]
        assert sorted(parts) == ["data", "index"]


@looped
async def test_grpc_clients_messages_are_in_their_trace(tmp_path):
    async with tracing(tmp_path, thin.consuming) as (_, client, traces):
        sent = await client.send("orders", trace_context=CONTEXT)
        assert sent.status.code == thin.protocol.Code.OK
        (found,) = await client.receive("orders")
        assert found.system_properties.trace_context == CONTEXT
        receipt_handle = found.system_properties.receipt_handle
        assert await ack(client, receipt_handle) == [thin.protocol.Code.OK]
        for one in await traces.until("send orders", "receive orders", "ack orders"):
            assert (one.trace, one.parent) == (TRACE, PARENT)
            assert one.failure is None


@looped
async def test_a_node_serves_while_no_receiver_is_there(tmp_path):
    (port,) = free_ports(1)
    otlp = OtlpConfig(f"http://127.0.0.1:{port}", metrics=False, traces=True)
    with capture_logs() as logs:
        async with running(tmp_path, otlp=otlp) as (app, client), exporting(app):
            assert (await client.ask(sending("orders", pairs=PAIRS), b"x")).code == 0
            assert len((await client.ask(pulling("orders"))).messages()) == 1
    assert not [one for one in logs if one["log_level"] == "error"]


@looped
async def test_nothing_is_in_the_way_of_a_node_that_records_none(tmp_path):
    for otlp in (None, OtlpConfig("http://127.0.0.1:1")):
        async with running(tmp_path, otlp=otlp) as (app, _):
            assert app.node.processors is PROCESSORS
            assert app.node.spans is None


def test_an_answer_is_given_once_though_its_span_fails():
    given = []
    peer = SimpleNamespace(take_answer=None, respond=lambda *data: given.append(data))

    def fail(*_):
        raise ValueError("no span")

    with capture_logs() as logs:
        TracedPeer(peer, fail).respond(b"answer")
    assert given == [(b"answer",)]
    assert [one["event"] for one in logs] == ["a span was not recorded"]
