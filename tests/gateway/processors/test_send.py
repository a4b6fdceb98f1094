"""Producing: what is stored, what is answered, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import LimitsConfig, TopicsConfig
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.send import SendBatchMessage, SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from ropeway.routing.api import PERM_INHERIT, PERM_READ, Topic
from tests.remoting import looped, running
from tests.requests import batch_of, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


def batch_header(topic: str, **changes):
    made = sending(topic, **changes)
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return SendBatchMessage(**{**fields, "batch": True})


async def stored(client, topic: str, **changes) -> list[message.Message]:
    answer = await client.ask(pulling(topic, **changes))
    return answer.messages()


@looped
@pytest.mark.parametrize("v2", [False, True])
async def test_a_sent_message_is_stored_as_it_was_sent(tmp_path: Path, v2: bool):
    async with running(tmp_path) as (app, client):
        pairs = {"TAGS": "t", "KEYS": "a b", "user": "ü"}
        asked = sending("orders", v2=v2, queue_id=2, flag=7, sys_flag=1, pairs=pairs)
        answer = await client.ask(asked, b"body")
        reply = answer.read(SendReply)
        assert (reply.queue_id, reply.queue_offset) == (2, 0)
        assert (reply.msg_region, reply.trace_on) == ("DefaultRegion", True)
        assert reply.transaction_id == "0" * 32
        (found,) = await stored(client, "orders", queue_id=2)
        assert (found.topic, found.queue_id, found.body) == ("orders", 2, b"body")
        assert (found.flag, found.sys_flag, found.reconsume_times) == (7, 1, 0)
        assert found.born_ms == asked.born_timestamp
        assert f"{found.born_host[0]}:{found.born_host[1]}" == client.address
        assert found.store_host == ("127.0.0.1", app.server.listeners[0].port)
        assert properties.parse(found.properties) == {
            "UNIQ_KEY": "0" * 32,
            **pairs,
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
            "CLUSTER": "DefaultCluster",
        }
        assert parse_offset_msg_id(reply.msg_id) == (
            *found.store_host,
            found.message_id,
        )


@looped
@pytest.mark.parametrize("key", ["plain", 'q"uo\\te', "ünï💥", "\x07\x1f\x7f", "a/b"])
async def test_the_answer_is_byte_for_byte_an_encoded_frame(tmp_path: Path, key: str):
    async with running(tmp_path) as (_, client):
        asked = sending("orders", pairs={"UNIQ_KEY": key})
        answer = await client.ask(asked, b"x")
        reply = answer.read(SendReply)
        assert reply.transaction_id == key
        fields = {
            name: answer.fields[name]
            for name in (
                "queueId",
                "transactionId",
                "msgId",
                "TRACE_ON",
                "MSG_REGION",
                "queueOffset",
            )
        }
        expected = encode_frame(0, answer.opaque, flag=1, fields=fields)
        assert answer.raw == expected


@looped
async def test_offsets_count_each_queue_from_0(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        seen = []
        for queue_id in (0, 1, 0, 3, 1, 0):
            answer = await client.ask(sending("orders", queue_id=queue_id), b"x")
            reply = answer.read(SendReply)
            seen.append((reply.queue_id, reply.queue_offset))
        assert seen == [(0, 0), (1, 0), (0, 1), (3, 0), (1, 1), (0, 2)]


@looped
async def test_below_0_any_queue_is_taken_and_above_the_last_none(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        chosen = set()
        for _ in range(40):
            answer = await client.ask(sending("orders", queue_id=-1), b"x")
            chosen.add(answer.read(SendReply).queue_id)
        assert len(chosen) > 1
        assert chosen <= {0, 1, 2, 3}
        answer = await client.ask(sending("orders", queue_id=4), b"x")
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert "queueId[4]" in answer.remark
        assert "0 to 3" in answer.remark


@looped
@pytest.mark.parametrize(("asked", "made"), [(4, 4), (100, 8), (0, 1), (-5, 1)])
async def test_an_automatic_topic_has_no_more_queues_than_its_template(
    tmp_path: Path, asked: int, made: int
):
    async with running(tmp_path) as (app, client):
        header = sending("orders", default_topic_queue_nums=asked)
        assert (await client.ask(header, b"x")).code == 0
        setup = app.node.topics.get("orders").setup
        assert setup.read_queue_nums == setup.write_queue_nums == made
        assert not setup.perm & PERM_INHERIT


@looped
@pytest.mark.parametrize("times", [None, 0, 3])
async def test_a_message_keeps_how_often_it_was_consumed_before(
    tmp_path: Path, times: int | None
):
    async with running(tmp_path) as (_, client):
        for v2 in (False, True):
            asked = sending("orders", v2=v2, reconsume_times=times)
            assert (await client.ask(asked, b"x")).code == 0
        found = await stored(client, "orders")
        assert [one.reconsume_times for one in found] == [times or 0] * 2


@looped
async def test_without_automatic_creation_consumers_can_still_send_back(tmp_path: Path):
    switch = TopicsConfig(auto_create=False)
    async with running(tmp_path, topics=switch) as (app, client):
        assert (await client.ask(sending("%RETRY%g"), b"x")).code == 0
        (found,) = await stored(client, "%RETRY%g")
        assert found.body == b"x"
        assert app.node.topics.get("%RETRY%g").setup.write_queue_nums == 1


@looped
async def test_without_automatic_creation_unknown_topics_are_refused(tmp_path: Path):
    switch = TopicsConfig(auto_create=False)
    async with running(tmp_path, topics=switch) as (app, client):
        answer = await client.ask(sending("orders"), b"x")
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert app.node.topics.get("orders") is None
    async with running(tmp_path) as (_, client):
        answer = await client.ask(sending("orders", default_topic="nothing"), b"x")
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST


@looped
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ResponseCode.INVALID_PARAMETER),
        ("a b", ResponseCode.INVALID_PARAMETER),
        ("a/b", ResponseCode.INVALID_PARAMETER),
        ("a\n", ResponseCode.INVALID_PARAMETER),
        ("ü", ResponseCode.INVALID_PARAMETER),
        ("x" * 128, ResponseCode.INVALID_PARAMETER),
        ("x" * 127, 0),
        ("A_b-9|%", 0),
        ("SCHEDULE_TOPIC_XXXX", ResponseCode.NO_PERMISSION),
        ("RMQ_SYS_TRANS_HALF_TOPIC", ResponseCode.NO_PERMISSION),
        ("TBW102", 0),
    ],
)
async def test_topic_names_are_checked_before_anything_is_made(
    tmp_path: Path, name: str, code: int
):
    async with running(tmp_path) as (app, client):
        before = set(app.node.routes.topics)
        assert (await client.ask(sending(name), b"x")).code == code
        assert set(app.node.routes.topics) - before == (
            set() if code or name in before else {name}
        )


@looped
async def test_bodies_are_from_1_byte_to_4_mebibytes(tmp_path: Path):
    limit = 4 * 1024 * 1024
    async with running(tmp_path) as (_, client):
        assert (await client.ask(sending("orders"), b"x" * limit)).code == 0
        for body in (b"", b"x" * (limit + 1)):
            answer = await client.ask(sending("orders"), body)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert f"{len(body)} bytes" in answer.remark
            assert f"1 to {limit}" in answer.remark
        (found,) = await stored(client, "orders")
        assert len(found.body) == limit


@looped
async def test_properties_are_limited_with_what_the_broker_adds(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        own = len(app.node.property_suffix) + len(f"UNIQ_KEY\x01{'0' * 32}\x02")
        room = message.MAX_PROPERTIES_BYTES - own - len("k\x01\x02")
        fits = sending("orders", pairs={"k": "v" * room})
        assert (await client.ask(fits, b"x")).code == 0
        longer = sending("orders", pairs={"k": "v" * (room + 1)})
        answer = await client.ask(longer, b"x")
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert str(message.MAX_PROPERTIES_BYTES) in answer.remark
        assert len(await stored(client, "orders")) == 1


@looped
async def test_duplicate_unique_keys_are_kept_and_missing_ones_made(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for _ in range(2):
            await client.ask(sending("orders"), b"x")
        keys = set()
        for text in ("", "a\x01b", "UNIQ_KEY\x01\x02"):
            answer = await client.ask(sending("orders", properties=text), b"x")
            keys.add(answer.read(SendReply).transaction_id)
        assert len(keys) == 3
        found = await stored(client, "orders")
        known = [properties.parse(one.properties)["UNIQ_KEY"] for one in found]
        assert known[:2] == ["0" * 32] * 2
        assert set(known[2:]) == keys
        assert properties.parse(found[3].properties)["a"] == "b"


@looped
async def test_the_last_property_needs_no_end(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for v2 in (True, False):
            # A delay of none is looked at in the general way.
            text = "UNIQ_KEY\x01u\x02DELAY\x010\x02TAGS\x01t"
            await client.ask(sending("orders", v2=v2, properties=text), b"x")
        for found in await stored(client, "orders"):
            sent = properties.parse(text)
            assert sent.items() <= properties.parse(found.properties).items()


@looped
async def test_a_receipt_of_pop_is_not_stored(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders", pairs={"POP_CK": "0 1 2", "a": "b"}), b"x")
        (found,) = await stored(client, "orders")
        pairs = properties.parse(found.properties)
        assert "POP_CK" not in pairs
        assert pairs["a"] == "b"


@looped
async def test_a_batch_becomes_single_messages_with_an_id_each(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"before")
        body = batch_of(b"a", b"b", b"c", pairs={"TAGS": "t"})
        answer = await client.ask(batch_header("orders"), body)
        reply = answer.read(SendReply)
        assert (reply.queue_offset, reply.queue_id) == (1, 0)
        found = await stored(client, "orders")
        assert [one.body for one in found] == [b"before", b"a", b"b", b"c"]
        ids = [parse_offset_msg_id(one).message_id for one in reply.msg_id.split(",")]
        assert ids == [one.message_id for one in found[1:]]
        assert all(properties.parse(one.properties)["TAGS"] == "t" for one in found[1:])


@looped
async def test_a_batch_with_one_malformed_entry_stores_none(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        whole = batch_of(b"a", b"b")
        for body in (whole[:-1], whole + b"\0", whole + b"\0\0\0\x16" + b"\xff" * 18):
            answer = await client.ask(batch_header("orders"), body)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        delayed = batch_of(b"a", pairs={"DELAY": "3"})
        answer = await client.ask(batch_header("orders"), whole + delayed)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        huge = batch_of(b"a", pairs={"k": "v" * 32_750})
        answer = await client.ask(batch_header("orders"), whole + huge)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert app.node.topics.get("orders").partitions[0].next_offset == 0


@looped
async def test_compressed_bodies_and_their_flags_pass_through(tmp_path: Path):
    several_tags = 0x2
    flags = message.COMPRESSED_FLAG | 0x100 | several_tags
    async with running(tmp_path) as (_, client):
        hosts = message.BORN_HOST_V6_FLAG | message.STORE_HOST_V6_FLAG
        await client.ask(sending("orders", sys_flag=flags | hosts), b"\x28\xb5\x2f")
        (found,) = await stored(client, "orders")
        # Only the broker knows how long its hosts are.
        assert (found.sys_flag, found.body) == (flags, b"\x28\xb5\x2f")


@looped
async def test_topics_that_may_not_be_written_refuse(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        closed = Topic(
            name="closed", read_queue_nums=1, write_queue_nums=1, perm=PERM_READ
        )
        await app.node.topics.put(closed)
        for header, body in (
            (sending("closed"), b"x"),
            (batch_header("closed"), batch_of(b"x")),
        ):
            answer = await client.ask(header, body)
            assert answer.code == ResponseCode.NO_PERMISSION
            assert answer.remark == "the topic[closed] sending message is forbidden"
        assert app.node.topics.get("closed").partitions[0].next_offset == 0


@looped
@pytest.mark.parametrize("kind", [None, "FIFO", "DELAY", "UNSPECIFIED", "MIXED"])
@pytest.mark.parametrize("v2", [False, True])
async def test_where_types_are_checked_a_topic_takes_its_own_only(tmp_path, kind, v2):
    signs = {
        "NORMAL": {},
        "FIFO": {"__SHARDINGKEY": "k"},
        "DELAY": {"DELAY": "1"},
    }
    switch = TopicsConfig(check_message_types=True)
    async with running(tmp_path, topics=switch) as (app, client):
        attributes = {"message.type": kind} if kind else {}
        await app.node.topics.put(
            Topic(
                name="orders",
                read_queue_nums=1,
                write_queue_nums=1,
                attributes=attributes,
            )
        )
        for actual, pairs in signs.items():
            answer = await client.ask(sending("orders", v2=v2, pairs=pairs), b"x")
            if actual == (kind or "NORMAL") or kind == "MIXED":
                assert answer.code == 0
            else:
                assert answer.code == ResponseCode.MESSAGE_ILLEGAL
                assert f"but actual type is {actual}" in answer.remark
        # Retries are of any type.
        again = sending("%RETRY%g", v2=v2, pairs=signs["FIFO"])
        assert (await client.ask(again, b"x")).code == 0


@looped
async def test_types_are_not_checked_by_default_as_by_a_real_broker(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await app.node.topics.put(
            Topic(
                name="orders",
                read_queue_nums=1,
                write_queue_nums=1,
                attributes={"message.type": "FIFO"},
            )
        )
        assert (await client.ask(sending("orders"), b"x")).code == 0


@looped
async def test_missing_and_wrong_fields_are_named(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        fields = to_fields(sending("orders"))
        del fields["e"]
        answer = await client.ask(310, b"x", fields=fields)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "queueId" in answer.remark
        answer = await client.ask(310, b"x", fields={**fields, "e": "many"})
        assert "many" in answer.remark
        assert (await client.ask(GetAllTopicList())).code == 0


@looped
async def test_small_limits_are_kept(tmp_path: Path):
    limits = LimitsConfig(message_bytes=10)
    async with running(tmp_path, limits=limits) as (_, client):
        assert (await client.ask(sending("orders"), b"x" * 10)).code == 0
        answer = await client.ask(sending("orders"), b"x" * 11)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
