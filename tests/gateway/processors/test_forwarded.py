"""Requests for another node reach it, with their client, and are answered always."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ropeway.gateway.wire import message
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.forward import Forward
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from ropeway.routing.api import Broker
from tests.forwards import signed
from tests.gateway.pop.rig import Consumer, popped
from tests.remoting import connect, looped, running, two_running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


@asynccontextmanager
async def two(data: Path):
    """Two nodes that know each other, with a topic on the second one's broker."""
    async with two_running(data) as ((near, client), (far, other)):
        for one in (near, far):
            await until(lambda one=one: one.node.forwarder.others)
        await other.ask(sending("orders"), b"made")
        yield near, far, client


def to_second(header: msgspec.Struct) -> msgspec.Struct:
    return msgspec.structs.replace(header, bname="broker-1")


@looped
@pytest.mark.parametrize("v2", [True, False])
async def test_a_send_for_another_broker_is_stored_there_as_its_clients(tmp_path, v2):
    async with two(tmp_path) as (near, far, client):
        answer = await client.ask(to_second(sending("orders", v2=v2)), b"hello")
        sent = answer.read(SendReply)
        assert (answer.code, sent.queue_offset) == (0, 1)
        pulled = await client.ask(to_second(pulling("orders")))
        messages = pulled.messages()
        assert [one.body for one in messages] == [b"made", b"hello"]
        assert message.pack_host(*messages[1].born_host) == message.pack_host(
            *_split(client.address)
        )
        assert near.node.topics.get("orders") is None
        assert far.node.topics.get("orders").partitions[0].end == 2


def _split(address: str) -> tuple[str, int]:
    host, port = address.split(":")
    return host, int(port)


@looped
async def test_a_request_that_names_its_own_broker_or_an_unknown_one_stays(tmp_path):
    async with two(tmp_path) as (_, __, client):
        for name in (None, "broker-0", "broker-9"):
            header = GetMaxOffset(topic="orders", queue_id=0, bname=name)
            answer = await client.ask(header)
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        answer = await client.ask(
            GetMaxOffset(topic="orders", queue_id=0, bname="broker-1")
        )
        assert answer.read(Offset) == Offset(offset=1)


@looped
async def test_a_pull_may_wait_on_another_node(tmp_path: Path):
    async with two(tmp_path) as (_, far, client):
        pull = client.send(to_second(waiting("orders", 1)))
        await until(lambda: len(far.node.pull_hold))
        await client.ask(to_second(sending("orders")), b"hello")
        assert [one.body for one in (await pull).messages()] == [b"hello"]
        # Each request counts once, however long it waited.
        await until(lambda: client_in_flight(far) == 0)


@looped
async def test_one_way_requests_are_sent_on_too(tmp_path: Path):
    async with two(tmp_path) as (near, far, client):
        answers: list[bytes] = []
        forward = near.node.forwarder.forward

        async def noted(*asked: Any, **how: Any) -> bytes:
            answers.append(await forward(*asked, **how))
            return answers[-1]

        near.node.forwarder.forward = noted
        client.send(to_second(sending("orders")), b"hello", one_way=True)
        partition = far.node.topics.get("orders").partitions[0]
        await until(lambda: partition.end == 2)
        await until(lambda: not client_in_flight(far))
        # It is one-way there, too.
        await until(lambda: answers)
        assert answers == [b""]


def client_in_flight(app) -> int:
    return sum(
        one.in_flight
        for listener in app.server.listeners
        for one in listener.connections
    )


@looped
async def test_a_node_that_is_gone_is_an_answer(tmp_path: Path):
    async with two(tmp_path) as (near, _, client):
        near.node.forwarder.others["broker-9"] = Broker(
            name="broker-9", node="n", cluster="c", addresses=("127.0.0.1:1",), pid=1
        )
        answer = await client.ask(
            msgspec.structs.replace(sending("orders"), bname="broker-9"), b"hello"
        )
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "127.0.0.1:1 did not answer" in answer.remark


@looped
async def test_a_node_that_goes_while_it_works_is_an_answer(tmp_path: Path):
    async with two(tmp_path) as (_, far, client):
        pull = client.send(to_second(waiting("orders", 1)))
        await until(lambda: len(far.node.pull_hold))
        for listener in far.server.listeners:
            for connection in list(listener.connections):
                connection.abort()
        assert (await pull).code == ResponseCode.SYSTEM_ERROR
        # The next one comes on a new connection.
        answer = await client.ask(to_second(sending("orders")), b"hello")
        assert answer.code == 0


@looped
async def test_a_node_that_ends_waits_for_no_messages_of_another(tmp_path: Path):
    """It was not closed for 10 s, and what else its clients asked had no answer."""
    async with two(tmp_path) as (near, far, client):
        pull = client.send(to_second(waiting("orders", 1)))
        await until(lambda: len(far.node.pull_hold))
        async with asyncio.timeout(60):
            await near.server.close(3600)
        assert (await pull).code == ResponseCode.SYSTEM_ERROR


@looped
async def test_a_message_is_not_given_to_a_node_that_is_gone(tmp_path: Path):
    """It was in nobody's hands then until its invisible time was over."""
    async with two(tmp_path) as (near, far, client):
        listener = far.server.listeners[0]
        async with connect(listener) as other:
            polling, consumer = far.node.pop.polling, Consumer(other, topic="orders")
            assert (await consumer.pop(queue_id=-1)).bodies == [b"made"]
            poll = consumer.header(
                queue_id=-1, poll_time=600_000, born_time=int(time.time() * 1000)
            )
            client.send(to_second(poll))
            await until(lambda: len(polling) == 1)
            pop = other.send(poll)
            await until(lambda: len(polling) == 2)
            connected = len(listener.connections)
            await near.node.forwarder.close()
            await until(lambda: len(listener.connections) < connected)
            await other.ask(sending("orders"), b"hello")
            assert popped(await pop).bodies == [b"hello"]


@pytest.mark.rule("node.md", "It travels once")
@looped
async def test_what_was_sent_on_once_is_not_sent_on_again(tmp_path: Path):
    async with two(tmp_path) as (near, far, client):
        far.node.forwarder.others["broker-1"] = near.node.routes.brokers["broker-0"][0]
        answer = await client.ask(to_second(sending("orders")), b"hello")
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "has just moved" in answer.remark


@looped
@pytest.mark.parametrize(
    ("client_address", "body", "remark"),
    [
        ("nonsense", b"", "allowed: an address as host:port"),
        ("nobody:1", b"", "allowed: an address as host:port"),
        ("127.0.0.1:1", b"", "body of 0 bytes; allowed: one whole request"),
        ("127.0.0.1:1", b"\0\0\0\4\0\0\0\1", "allowed: one whole request"),
        ("127.0.0.1:1", b"\0\0\0\6\0\0\0\2{}", "allowed: one whole request"),
    ],
)
async def test_what_is_no_request_is_refused(tmp_path, client_address, body, remark):
    async with running(tmp_path) as (app, client):
        here = app.server.listeners[0].advertised
        request = signed(app.node, here, client_address, body)
        answer = await client.ask(request, body)
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert remark in answer.remark


@looped
@pytest.mark.parametrize(
    "changes",
    [
        {"signature": ""},
        {"signature": "0" * 64},
        {"to": "127.0.0.1:1"},
        {"signed_ms": 0},
        {"principal": "{"},
        {"principal": '{"name":7}'},
        {"channel": "http"},
        {"channel": "http", "channel_signature": "0" * 64},
    ],
)
async def test_nobody_but_a_node_may_speak_for_a_client(tmp_path: Path, changes):
    async with running(tmp_path) as (app, client):
        here = app.server.listeners[0].advertised
        request = signed(app.node, here, "127.0.0.1:1", b"", **changes)
        answer = await client.ask(request, b"")
        assert answer.code == ResponseCode.NO_PERMISSION
        assert "is not known as a node of this cluster" in answer.remark
        bare = await client.ask(Forward(client="127.0.0.1:1"), b"")
        assert bare.code == ResponseCode.NO_PERMISSION


@looped
async def test_a_request_that_was_sent_on_is_not_taken_again(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        listener = app.server.listeners[0]
        frame = encode_frame(RequestCode.GET_BROKER_CLUSTER_INFO, 1)
        request = signed(app.node, listener.advertised, "127.0.0.1:1", frame)
        assert (await client.ask(request, frame)).code == 0
        async with connect(listener) as other:
            for one in (client, other):
                again = await one.ask(request, frame)
                assert again.code == ResponseCode.NO_PERMISSION


def test_nodes_of_before_and_after_a_rename_read_each_others_fields() -> None:
    fields = to_fields(Forward(client="192.0.2.1:5", signed_ms=7, signature="f00d"))
    assert {"sealedMs": "7", "seal": "f00d"}.items() <= fields.items()
