"""Request and reply: who asked gets the answer, and who answers hears of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import RESPONSE_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import UnregisterClient
from ropeway.gateway.wire.commands.reply import (
    PushReplyMessage,
    SendReplyMessage,
    SendReplyMessageV2,
)
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.remoting import Frame, Remoting, beat, connect, looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"


def replying(to: str | None = "asker", *, v2: bool = True, **changes):
    """The header of a reply, as a client makes it of the request."""
    pairs = {"CORRELATION_ID": "c1", "MSG_TYPE": "reply", "TTL": "3000"}
    if to is not None:
        pairs[properties.REPLY_TO_CLIENT] = to
    made = sending(REPLY_TOPIC, pairs=pairs, **changes)
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return (SendReplyMessageV2 if v2 else SendReplyMessage)(**fields)


def answer(client: Remoting, asked: Frame, code: int = 0, remark: str | None = None):
    """Answer a request of the node."""
    client.writer.write(
        encode_frame(code, asked.opaque, flag=RESPONSE_FLAG, remark=remark)
    )


async def kept(client: Remoting) -> list[message.Message]:
    return (await client.ask(pulling(REPLY_TOPIC))).messages()


@looped
@pytest.mark.parametrize("v2", [True, False])
async def test_a_reply_reaches_who_asked_and_is_kept(tmp_path: Path, v2: bool):
    async with (
        running(tmp_path) as (app, asker),
        connect(app.server.listeners[0]) as client,
    ):
        await beat(asker, "asker", producers=("askers",))
        sent = client.send(replying(v2=v2, sys_flag=1, flag=7), b"42")
        asked = await asker.asked()
        assert asked.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        assert asked.body == b"42"
        push = asked.read(PushReplyMessage)
        assert (push.topic, push.flag, push.sys_flag) == (REPLY_TOPIC, 7, 1)
        assert (push.born_host, push.store_host) == (
            client.address,
            app.server.listeners[0].advertised,
        )
        pairs = properties.parse(push.properties)
        assert pairs["CORRELATION_ID"] == "c1"
        # A RocketMQ broker adds its cluster to other messages, and not to replies.
        assert pairs[properties.MSG_REGION] == app.node.config.region
        assert properties.CLUSTER not in pairs
        assert int(pairs[properties.PUSH_REPLY_TIME]) == push.store_timestamp
        assert not sent.done()
        answer(asker, asked)
        reply = (await sent).read(SendReply)
        assert (reply.msg_region, reply.trace_on) == ("DefaultRegion", True)
        (found,) = await kept(client)
        assert (found.body, found.flag, found.sys_flag) == (b"42", 7, 1)
        assert parse_offset_msg_id(reply.msg_id).message_id == found.message_id
        assert reply.queue_offset == found.queue_offset == 0


@looped
async def test_properties_without_an_end_stay_apart_from_the_brokers_own(tmp_path):
    # Java 4.9.8 sends them so (MessageDecoder.messageProperties2String).
    async with running(tmp_path) as (_, asker):
        await beat(asker, "asker", producers=("askers",))
        text = properties.dump({"REPLY_TO_CLIENT": "asker", "CORRELATION_ID": "c1"})
        header = replying()
        fields = {name: getattr(header, name) for name in header.__struct_fields__}
        fields["properties"] = text.removesuffix(properties.VALUE_END)
        sent = asker.send(SendReplyMessageV2(**fields), b"42")
        asked = await asker.asked()
        pairs = properties.parse(asked.read(PushReplyMessage).properties)
        assert pairs["CORRELATION_ID"] == "c1"
        answer(asker, asked)
        assert (await sent).code == 0


@looped
@pytest.mark.parametrize("body", [b"42", b""])
async def test_a_reply_that_is_empty_or_not_to_be_kept_is_only_pushed(tmp_path, body):
    async with running(tmp_path, store_replies=not body) as (_, asker):
        await beat(asker, "asker", producers=("askers",))
        sent = asker.send(replying(), body)
        answer(asker, await asker.asked())
        reply = (await sent).read(SendReply)
        assert (reply.msg_id, reply.queue_offset) == ("0", 0)
        assert await kept(asker) == []


@looped
async def test_who_has_gone_or_refuses_or_is_not_named_is_an_error(tmp_path: Path):
    async with (
        running(tmp_path) as (app, client),
        connect(app.server.listeners[0]) as asker,
    ):
        gone = await client.ask(replying(), b"1")
        assert gone.code == ResponseCode.SYSTEM_ERROR
        assert gone.remark == "push reply message fail, channel of <asker> not found."
        nameless = await client.ask(replying(None), b"2")
        assert nameless.code == ResponseCode.SYSTEM_ERROR
        assert "properties[REPLY_TO_CLIENT] is null" in nameless.remark
        await beat(asker, "asker", producers=("askers",))
        sent = client.send(replying(), b"3")
        answer(asker, await asker.asked(), 1, "too late")
        refused = await sent
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "to asker fail: too late" in refused.remark
        sent = client.send(replying(), b"4")
        await asker.asked()
        await asker.close()
        silent = await sent
        assert silent.code == ResponseCode.SYSTEM_ERROR
        assert "has gone without an answer" in silent.remark
        # All are kept, as a real broker keeps them.
        assert [one.body for one in await kept(client)] == [b"1", b"2", b"3", b"4"]


@looped
async def test_a_request_makes_its_sender_known_before_a_heartbeat_does(tmp_path):
    async with running(tmp_path) as (app, asker):
        request = {properties.REPLY_TO_CLIENT: "asker", "CORRELATION_ID": "c1"}
        await asker.ask(sending("orders", pairs=request), b"?")
        sent = asker.send(replying(), b"42")
        answer(asker, await asker.asked())
        assert (await sent).code == 0
        async with connect(app.server.listeners[0]) as consumer:
            # What a consumer sends back is not its own request.
            again = sending("%RETRY%readers", pairs=request)
            assert (await consumer.ask(again, b"?")).code == 0
            sent = consumer.send(replying(), b"42")
            answer(asker, await asker.asked())
            assert (await sent).code == 0
        await asker.ask(UnregisterClient(client_id="asker", producer_group="producers"))
        assert (await asker.ask(replying(), b"42")).code == ResponseCode.SYSTEM_ERROR


@looped
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "a b"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION),
        ({"default_topic": "none", "topic": "none"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queue_id": 8}, ResponseCode.INVALID_PARAMETER),
    ],
)
async def test_a_reply_to_no_place_is_refused_before_it_is_pushed(
    tmp_path, changes, code
):
    async with running(tmp_path) as (_, asker):
        await beat(asker, "asker", producers=("askers",))
        header = replying()
        fields = {name: getattr(header, name) for name in header.__struct_fields__}
        refused = await asker.ask(SendReplyMessageV2(**{**fields, **changes}), b"42")
        assert refused.code == code
        assert asker.requests.empty()


@looped
async def test_a_reply_is_delivered_although_it_cannot_be_kept(tmp_path: Path):
    async with running(tmp_path) as (app, asker):
        await beat(asker, "asker", producers=("askers",))
        long = {"long": "x" * 40_000}
        text = properties.dump({"REPLY_TO_CLIENT": "asker", **long})
        header = replying()
        fields = {name: getattr(header, name) for name in header.__struct_fields__}
        sent = asker.send(SendReplyMessageV2(**{**fields, "properties": text}), b"42")
        answer(asker, await asker.asked())
        assert (await sent).read(SendReply).msg_id == "0"
        assert app.node.topics.get(REPLY_TOPIC).partitions[0].end == 0


@looped
async def test_many_replies_at_once_each_find_their_asker(tmp_path: Path):
    async with (
        running(tmp_path) as (app, client),
        connect(app.server.listeners[0]) as first,
        connect(app.server.listeners[0]) as second,
    ):
        await beat(first, "first", producers=("askers",))
        await beat(second, "second", producers=("askers",))
        sent = [
            client.send(replying(to, born_timestamp=number), to.encode())
            for number in range(50)
            for to in ("first", "second")
        ]
        for asker, name in ((first, b"first"), (second, b"second")):
            await until(lambda asker=asker: asker.requests.qsize() == 50)
            while not asker.requests.empty():
                asked = asker.requests.get_nowait()
                assert asked.body == name
                answer(asker, asked)
        assert {one.code for one in await asyncio.gather(*sent)} == {0}
