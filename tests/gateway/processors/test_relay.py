"""A client is asked by way of the node that it is connected to."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.processors import relay
from ropeway.gateway.wire.codes import RESPONSE_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.forward import Relay
from ropeway.gateway.wire.frame import decode_envelope, encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.forwards import signed
from tests.gateway.processors.test_reply import answer, replying
from tests.remoting import beat, connect, looped, running, two_running, until

if TYPE_CHECKING:
    from pathlib import Path


@asynccontextmanager
async def two(data: Path):
    """Two nodes; an asker on the second one, and a client on the first."""
    async with two_running(data) as ((near, client), (far, asker)):
        for one in (near, far):
            await until(lambda one=one: len(one.node.routes.brokers) == 2)
        await beat(asker, "asker", producers=("askers",))
        yield near, far, client, asker


def close_all(app) -> None:
    for listener in app.server.listeners:
        for connection in list(listener.connections):
            connection.abort()


@looped
async def test_a_reply_finds_its_asker_on_another_node_and_remembers_it(tmp_path):
    async with two(tmp_path) as (near, far, client, asker):
        for body in (b"first", b"again"):
            sent = client.send(replying(), body)
            asked = await asker.asked()
            assert (asked.code, asked.body) == (
                RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
                body,
            )
            answer(asker, asked)
            assert (await sent).code == 0
        known = near.node.clients.find_elsewhere("asker")
        assert known == far.server.listeners[0].advertised
        sent = client.send(replying(), b"refused")
        answer(asker, await asker.asked(), 1, "too late")
        assert "to asker fail: too late" in (await sent).remark


@looped
async def test_a_client_that_has_moved_is_looked_for_again(tmp_path: Path):
    async with two(tmp_path) as (near, far, client, asker):
        near.node.clients.found_elsewhere("asker", "127.0.0.1:1")
        sent = client.send(replying(), b"from a node that is gone")
        answer(asker, await asker.asked())
        assert (await sent).code == 0
        # Both know it by now, and it leaves.
        await asker.close()
        await until(lambda: far.node.clients.find_producer("asker") is None)
        gone = await client.ask(replying(), b"42")
        assert "channel of <asker> not found" in gone.remark
        assert near.node.clients.find_elsewhere("asker") is None


@looped
async def test_a_client_that_goes_while_it_is_asked_is_an_error(tmp_path: Path):
    async with two(tmp_path) as (_, far, client, asker):
        sent = client.send(replying(), b"42")
        await asker.asked()
        close_all(far)
        answered = await sent
        assert answered.code == ResponseCode.SYSTEM_ERROR


@looped
async def test_a_client_that_goes_once_it_is_found_is_not_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with two(tmp_path) as (near, far, client, _):

        async def was_there(*_: object) -> str:
            return far.server.listeners[0].advertised

        monkeypatch.setattr(relay, "_locate", was_there)
        gone = await client.ask(replying("nobody"), b"42")
        assert "channel of <nobody> not found" in gone.remark
        assert near.node.clients.find_elsewhere("nobody") is None


@looped
@pytest.mark.parametrize("at_a_time", [1, 32])
async def test_nodes_that_do_not_answer_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_a_time: int
):
    monkeypatch.setattr(relay, "_ASKED_AT_A_TIME", at_a_time)
    async with two(tmp_path) as (near, _, client, asker):
        dead = msgspec.structs.replace(
            near.node.routes.brokers["broker-0"][0],
            name="broker-00",
            node="dead",
            addresses=("127.0.0.1:1",),
        )
        await near.node.routes.put_broker(dead)
        sent = client.send(replying(), b"42")
        answer(asker, await asker.asked())
        assert (await sent).code == 0
        gone = await client.ask(replying("nobody"), b"42")
        assert "channel of <nobody> not found" in gone.remark


@looped
async def test_only_nodes_have_requests_handed_on(tmp_path: Path):
    async with running(tmp_path) as (app, asker):
        await beat(asker, "asker", producers=("askers",))
        alone = await asker.ask(Relay(client_id="asker"), b"")
        assert alone.code == ResponseCode.NO_PERMISSION
        async with connect(app.server.listeners[0]) as node:

            async def by_node(client_id: str, body: bytes):
                question = encode_frame(
                    RequestCode.ROPEWAY_RELAY,
                    7,
                    fields=to_fields(Relay(client_id=client_id)),
                    body=body,
                )
                here = app.server.listeners[0].advertised
                said = signed(app.node, here, "127.0.0.1:1", question)
                whole = await node.ask(said, question)
                size = int.from_bytes(whole.body[4:8])
                return decode_envelope(0, whole.body[8 : 8 + size])

            assert (await by_node("asker", b"")).code == 0
            assert (await by_node("none", b"")).code == ResponseCode.QUERY_NOT_FOUND
            wrong = await by_node("asker", b"nonsense")
            assert wrong.code == ResponseCode.INVALID_PARAMETER
            assert "allowed: one whole request" in wrong.remark
            assert isinstance(wrong.ext_fields, msgspec.Raw)
            assert not wrong.flag & ~RESPONSE_FLAG
