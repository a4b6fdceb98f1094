"""Finding one stored message by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors import lookup
from ropeway.gateway.wire import message, message_id
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.query import ViewMessage
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.routing.api import Topic
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def send(client, topic: str, body: bytes, **changes) -> int:
    answer = await client.ask(sending(topic, **changes), body)
    reply = answer.read(SendReply)
    return message_id.parse_offset_msg_id(reply.msg_id).message_id


@looped
async def test_a_message_is_found_by_its_id_with_and_without_its_topic(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        ids = [await send(client, "orders", b"%d" % one) for one in range(3)]
        for number, identity in enumerate(ids):
            for topic in ("orders", None):
                answer = await client.ask(ViewMessage(offset=identity, topic=topic))
                found = message.decode(answer.body)
                assert (found.body, found.message_id) == (b"%d" % number, identity)


@looped
async def test_an_id_that_two_topics_have_needs_the_topic(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for name in ("one", "two"):
            setup = Topic(
                name=name,
                read_queue_nums=1,
                write_queue_nums=1,
                route={"broker-0": [900]},
            )
            await app.node.routes.change_topic(name, lambda _, setup=setup: setup)
        ids = {await send(client, name, name.encode()) for name in ("one", "two")}
        (identity,) = ids
        answer = await client.ask(ViewMessage(offset=identity))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "one and two" in answer.remark
        answer = await client.ask(ViewMessage(offset=identity, topic="two"))
        assert message.decode(answer.body).body == b"two"


@looped
async def test_without_a_topic_nothing_is_asked_of_queues_that_end_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On Pulsar it opened the partition of that number of every topic there is."""
    async with running(tmp_path) as (app, client):
        for name in ("one", "two", "three"):
            setup = Topic(
                name=name,
                read_queue_nums=1,
                write_queue_nums=1,
                route={"broker-0": [900]},
            )
            await app.node.routes.change_topic(name, lambda _, setup=setup: setup)
        await send(client, "one", b"0")
        identity = await send(client, "one", b"1")
        await send(client, "two", b"0")
        read = []

        async def noting(topic, number, offset):
            read.append(topic.name)
            return await plain(topic, number, offset)

        plain = lookup._read
        monkeypatch.setattr(lookup, "_read", noting)
        answer = await client.ask(ViewMessage(offset=identity))
        assert message.decode(answer.body).body == b"1"
        assert read == ["one"]


@looped
async def test_ids_of_nothing_are_refused(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        identity = await send(client, "orders", b"x")
        for offset, topic, code in (
            (identity + 1, "orders", ResponseCode.SYSTEM_ERROR),
            (identity + 1, None, ResponseCode.SYSTEM_ERROR),
            (identity, "none", ResponseCode.SYSTEM_ERROR),
            (message_id.pack(1023, 0), None, ResponseCode.SYSTEM_ERROR),
            (-1, None, ResponseCode.MESSAGE_ILLEGAL),
            (2**63 - 1, None, ResponseCode.SYSTEM_ERROR),
        ):
            answer = await client.ask(ViewMessage(offset=offset, topic=topic))
            assert answer.code == code


@looped
async def test_a_retried_message_is_found_under_the_topic_it_was_sent_to(
    tmp_path: Path,
):
    async with running(tmp_path) as (_, client):
        await send(client, "orders", b"first")
        identity = await send(client, "%RETRY%g", b"again")
        assert message_id.unpack(identity).retry
        for topic in ("orders", "%RETRY%g", None):
            answer = await client.ask(ViewMessage(offset=identity, topic=topic))
            assert message.decode(answer.body).body == b"again"
