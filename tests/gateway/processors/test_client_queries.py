"""Consumers are asked for administrators, who always get an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import calls
from ropeway.gateway.processors import client_queries
from ropeway.gateway.wire import message
from ropeway.gateway.wire.codes import RESPONSE_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.callbacks import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
)
from ropeway.gateway.wire.commands.forward import Ask
from ropeway.gateway.wire.commands.group_admin import GetConsumerStatus
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from tests.remoting import Frame, Remoting, beat, connect, looped, running
from tests.requests import sending

if TYPE_CHECKING:
    import pytest

    from ropeway.gateway.app import App

INFO = GetConsumerRunningInfo(
    consumer_group="readers", client_id="c1", jstack_enable=True
)
STATUS = GetConsumerStatus(topic="orders", group="readers")
OFFSETS = (
    b'{"consumerTable":{},"messageQueueTable":{'
    b'{"brokerName":"broker-0","queueId":1,"topic":"orders"}:7}}'
)


async def consumer(client: Remoting, client_id: str = "c1") -> None:
    """Connect a consumer."""
    await beat(client, client_id, "readers")
    await client.asked()


async def answer(
    client: Remoting, body: bytes, code: int = 0, remark: str | None = None
) -> Frame:
    """Answer the next request of the node."""
    asked = await client.asked()
    client.writer.write(
        encode_frame(code, asked.opaque, flag=RESPONSE_FLAG, remark=remark, body=body)
    )
    return asked


@looped
async def test_running_info_is_what_the_client_says(tmp_path):
    async with running(tmp_path) as (app, client):
        await consumer(client)
        async with connect(app.server.listeners[0]) as admin:
            found = admin.send(INFO)
            asked = await answer(client, b'{"properties":{}}')
            assert asked.code == RequestCode.GET_CONSUMER_RUNNING_INFO
            assert asked.flag == 0
            assert asked.fields == {
                "consumerGroup": "readers",
                "clientId": "c1",
                "jstackEnable": "true",
            }
            assert (await found).body == b'{"properties":{}}'
            found = admin.send(INFO)
            await answer(client, b"", code=1, remark="no such group here")
            assert (await found).code == 1
            assert (await found).remark == "no such group here"


@looped
async def test_who_is_not_there_is_said_so(tmp_path):
    async with running(tmp_path) as (_, client):
        for known in (False, True):
            if known:
                await consumer(client, "c2")
            found = await client.ask(INFO)
            assert found.code == ResponseCode.SYSTEM_ERROR
            assert found.remark == "The Consumer <readers> <c1> not online"
        found = await client.ask(GetConsumerStatus(topic="orders", group="nobody"))
        assert found.code == ResponseCode.SYSTEM_ERROR
        assert "No Any Consumer online" in found.remark


@looped
async def test_a_client_that_says_nothing_or_goes_leaves_nobody_waiting(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(calls, "ANSWER_S", 0.1)
    async with running(tmp_path) as (app, admin):
        async with connect(app.server.listeners[0]) as client:
            await consumer(client)
            found = await admin.ask(INFO)
            assert found.code == ResponseCode.CONSUME_MSG_TIMEOUT
            assert "did not answer within 0.1 s" in found.remark
            monkeypatch.setattr(calls, "ANSWER_S", 60.0)
            waiting = admin.send(INFO)
            await client.asked()
            await client.asked()
        assert (await waiting).code == ResponseCode.CONSUME_MSG_TIMEOUT
        assert "has gone" in (await waiting).remark


@looped
async def test_a_message_is_given_to_a_client_to_consume(tmp_path):
    async with running(tmp_path) as (app, client):
        sent = (await client.ask(sending("orders"), b"hello")).read(SendReply)
        await consumer(client)
        async with connect(app.server.listeners[0]) as admin:
            header = ConsumeMessageDirectly(
                consumer_group="readers",
                client_id="c1",
                topic="orders",
                msg_id=sent.msg_id,
            )
            found = admin.send(header)
            asked = await answer(client, b'{"consumeResult":"CR_SUCCESS"}')
            assert asked.code == RequestCode.CONSUME_MESSAGE_DIRECTLY
            assert asked.fields["brokerName"] == "broker-0"
            assert asked.fields["topicSysFlag"] == "0"
            assert asked.fields["groupSysFlag"] == "0"
            assert message.decode(asked.body).body == b"hello"
            assert (await found).body == b'{"consumeResult":"CR_SUCCESS"}'
            missing = f"{sent.msg_id[:-1]}9"
            for changes, code, words in (
                ({"client_id": None}, ResponseCode.INVALID_PARAMETER, "clientId"),
                ({"msg_id": None}, ResponseCode.INVALID_PARAMETER, "msgId"),
                ({"msg_id": "xy"}, ResponseCode.MESSAGE_ILLEGAL, "of 2 digits"),
                ({"msg_id": missing}, ResponseCode.SYSTEM_ERROR, "can not find"),
                ({"client_id": "c9"}, ResponseCode.SYSTEM_ERROR, "not online"),
            ):
                wrong = msgspec.structs.replace(header, **changes)
                refused = await admin.ask(wrong)
                assert refused.code == code
                assert words in refused.remark


@looped
async def test_clients_say_where_they_are(tmp_path, monkeypatch):
    async with running(tmp_path) as (app, first):
        listener = app.server.listeners[0]
        async with connect(listener) as second, connect(listener) as admin:
            await consumer(first)
            await consumer(second, "c2")
            # The first hears of the second.
            await first.asked()
            found = admin.send(STATUS)
            asked = await answer(first, OFFSETS)
            assert asked.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
            assert asked.fields == {"topic": "orders", "group": "readers"}
            await answer(second, b"", code=1)
            assert (await found).body == (
                b'{"consumerTable":{"c1":{'
                b'{"brokerName":"broker-0","queueId":1,"topic":"orders"}:7}},'
                b'"messageQueueTable":{}}'
            )
            found = admin.send(msgspec.structs.replace(STATUS, client_addr="c2"))
            await answer(second, OFFSETS)
            assert (await found).body.startswith(b'{"consumerTable":{"c2"')
            monkeypatch.setattr(client_queries, "_STATUS_S", 0.1)
            found = admin.send(STATUS)
            await answer(second, b'{"messageQueueTable":{{"queueId":1}:7}}')
            assert (await found).body == (
                b'{"consumerTable":{},"messageQueueTable":{}}'
            )


def beside(app: App, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a node know another one of its broker."""
    (own,) = app.node.routes.brokers[app.node.config.broker]
    other = msgspec.structs.replace(own, node="other", addresses=(address,))
    brokers = {own.name: (own, other)}
    monkeypatch.setattr(type(app.node.routes), "brokers", brokers)


@looped
async def test_a_client_of_another_node_is_asked_there(tmp_path, monkeypatch):
    async with (
        running(tmp_path / "a") as (near, admin),
        running(tmp_path / "b") as (far, client),
    ):
        beside(near, far.server.listeners[0].advertised, monkeypatch)
        # They share no routes, so no secret either.
        near.node.forwarder.node_auth = far.node.forwarder.node_auth
        refused = await admin.ask(INFO)
        assert refused.remark == "The Consumer <readers> <c1> not online"
        await consumer(client)
        found = admin.send(INFO)
        asked = await answer(client, b"fine", remark="so it is")
        assert asked.fields["clientId"] == "c1"
        assert asked.code == RequestCode.GET_CONSUMER_RUNNING_INFO
        assert (await found).body == b"fine"
        assert (await found).remark == "so it is"


@looped
async def test_a_node_that_has_ended_keeps_nobody_waiting(tmp_path, monkeypatch):
    async with running(tmp_path) as (app, admin):
        beside(app, "127.0.0.1:1", monkeypatch)
        refused = await admin.ask(INFO)
        assert refused.remark == "The Consumer <readers> <c1> not online"


@looped
async def test_only_nodes_may_have_a_node_ask(tmp_path):
    async with running(tmp_path) as (_, client):
        await consumer(client)
        asking_itself = Ask(consumer_group="readers", client_id="c1")
        found = await client.ask(asking_itself, encode_frame(307, 1))
        assert found.code == ResponseCode.NO_PERMISSION
