"""Compacted topics over the wire: keys that are asked for, and what is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.compaction import (
    CompactTopic,
    GetLatest,
    TopicCompaction,
)
from tests.remoting import Remoting, looped, running
from tests.requests import batch_of, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.wire.message import Message

TOPIC = "prices"


async def compacted(client: Remoting, attributes: str = "+cleanup.policy=COMPACTION"):
    made = CreateTopic(
        topic=TOPIC,
        default_topic="TBW102",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        attributes=attributes,
    )
    reply = await client.ask(made)
    assert reply.code == 0, reply.remark


async def send(client: Remoting, key: str, body: bytes) -> None:
    reply = await client.ask(sending(TOPIC, pairs={"KEYS": key}), body)
    assert reply.code == 0, reply.remark


async def compact(client: Remoting) -> TopicCompaction:
    reply = await client.ask(CompactTopic(topic=TOPIC, force=True))
    assert reply.code == 0, reply.remark
    return msgspec.json.decode(reply.body, type=TopicCompaction)


async def left(client: Remoting) -> list[tuple[int, str, bytes]]:
    """What a consumer finds that begins at offset 0."""
    found: list[Message] = []
    offset = 0
    while True:
        reply = await client.ask(pulling(TOPIC, offset=offset, max_msg_nums=2))
        next_offset = int(reply.fields["nextBeginOffset"])
        if reply.code == 0:
            found += reply.messages()
        elif next_offset == offset:
            break
        offset = next_offset
    return [
        (one.queue_offset, properties.parse(one.properties)["KEYS"], one.body)
        for one in found
    ]


@looped
@pytest.mark.parametrize("keys", [{}, {"KEYS": ""}, {"KEYS": " \t"}])
async def test_a_message_without_a_key_is_refused_in_rocketmqs_words(
    tmp_path: Path, keys: dict[str, str]
):
    async with running(tmp_path) as (_, client):
        await compacted(client)
        for asked in (
            sending(TOPIC, pairs=keys),
            sending(TOPIC, pairs=keys, v2=False),
            sending(TOPIC, pairs={**keys, "DELAY": "1"}),
            sending(TOPIC, pairs={**keys, "TRAN_MSG": "true"}, sys_flag=4),
        ):
            reply = await client.ask(asked, b"body")
            assert reply.code == ResponseCode.MESSAGE_ILLEGAL
            assert reply.remark == "Required message key is missing"
        batch = batch_of(b"one", pairs={"KEYS": "a"}) + batch_of(b"two", pairs=keys)
        reply = await client.ask(sending(TOPIC, batch=True), batch)
        assert reply.code == ResponseCode.MESSAGE_ILLEGAL
        assert await left(client) == []


@looped
async def test_the_last_message_of_each_key_is_left_with_its_offset(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await compacted(client)
        for number in range(6):
            await send(client, f"key {number % 2}", b"%d" % number)
        batch = batch_of(b"one", b"two", pairs={"KEYS": "a"})
        assert (await client.ask(sending(TOPIC, batch=True), batch)).code == 0
        assert len(await left(client)) == 8
        (queue,) = (await compact(client)).queues
        assert (queue.clean_end, queue.end, queue.messages) == (8, 8, 3)
        wanted = [(4, "key 0", b"4"), (5, "key 1", b"5"), (7, "a", b"two")]
        assert await left(client) == wanted
        first = await client.ask(
            RequestCode.GET_MIN_OFFSET, fields={"topic": TOPIC, "queueId": "0"}
        )
        assert first.fields["offset"] == "4"
    async with running(tmp_path) as (_, client):
        assert await left(client) == wanted


@looped
async def test_a_message_without_a_body_deletes_its_key(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await compacted(client)
        await send(client, "a", b"1")
        await send(client, "a", b"")
        await compact(client)
        assert await left(client) == [(1, "a", b"")]
        reply = await client.ask(sending("orders", pairs={"KEYS": "a"}), b"")
        assert reply.code == ResponseCode.MESSAGE_ILLEGAL


@looped
async def test_the_newest_message_of_a_key_is_told(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await compacted(client)
        for _ in range(2):
            for body in (b"1", b"2"):
                await send(client, "a b", body)
            reply = await client.ask(GetLatest(topic=TOPIC, key="a b"))
            assert [one.body for one in reply.messages()] == [b"2"]
            reply = await client.ask(GetLatest(topic=TOPIC, key="a"))
            assert reply.code == ResponseCode.QUERY_NOT_FOUND
            await compact(client)
        await client.ask(sending("orders"), b"makes the topic")
        for asked in (
            GetLatest(topic="orders", key="a"),
            CompactTopic(topic="orders"),
        ):
            reply = await client.ask(asked)
            assert reply.code == ResponseCode.INVALID_PARAMETER
            assert "cleanup.policy=COMPACTION" in str(reply.remark)


@looped
async def test_a_topic_becomes_compacted_and_plain_again_by_an_update(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await compacted(client, "")
        assert app.node.topics.get(TOPIC).plain
        assert (await client.ask(sending(TOPIC), b"keyless")).code == 0
        for body in (b"1", b"2"):
            await send(client, "a", body)
        await compacted(client)
        assert (await client.ask(sending(TOPIC), b"keyless")).code != 0
        assert (await compact(client)).queues[0].messages == 2
        await compacted(client, "+cleanup.policy=DELETE")
        assert (await client.ask(sending(TOPIC), b"keyless")).code == 0
        assert app.node.topics.get(TOPIC).plain


@looped
async def test_a_message_is_found_by_its_id_also_when_others_are_gone(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await compacted(client)
        ids = []
        for number in range(3):
            await send(client, "ab"[number % 2], b"%d" % number)
        found = await client.ask(pulling(TOPIC, offset=0))
        ids = [one.message_id for one in found.messages()]
        await compact(client)
        for number, identity in enumerate(ids):
            reply = await client.ask(
                RequestCode.VIEW_MESSAGE_BY_ID,
                fields={"offset": str(identity), "topic": TOPIC},
            )
            assert (reply.code == 0) is (number > 0)


def damage(data: Path) -> None:
    (path,) = data.glob("**/compaction/prices/*/manifest")
    path.write_bytes(path.read_bytes()[:-2])


@looped
async def test_a_damaged_compacted_topic_is_not_served_and_others_are(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await compacted(client)
        await send(client, "a", b"1")
        await client.ask(sending("orders"), b"makes the topic")
        await compact(client)
    damage(tmp_path)
    async with running(tmp_path) as (_, client):
        assert (await client.ask(pulling(TOPIC))).code == ResponseCode.TOPIC_NOT_EXIST
        assert (await client.ask(pulling("orders"))).code == 0


@looped
async def test_a_new_topic_is_kept_as_compacting_needs_it_and_an_old_one_stays(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("old"), b"x")
        # As on Pulsar. This log has no such format, and says what it was asked for.
        app.node.compaction.entry_format = "pulsar"
        for topic, code, remark in (
            ("new", ResponseCode.INVALID_PARAMETER, "entry format pulsar of topic new"),
            ("old", ResponseCode.SYSTEM_ERROR, "allowed: entry.format=PULSAR, from"),
        ):
            made = CreateTopic(
                topic=topic,
                default_topic="TBW102",
                read_queue_nums=1,
                write_queue_nums=1,
                perm=6,
                attributes="+cleanup.policy=COMPACTION",
            )
            reply = await client.ask(made)
            assert reply.code == code
            assert remark in reply.remark
