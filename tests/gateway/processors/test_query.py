"""Looking messages up by id and by key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.wire import message_id
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.query import QueryMessage, QueryReply
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

FOREVER = 2**62


def query(key: str, topic: str = "orders", **changes) -> QueryMessage:
    fields = {"max_num": 32, "begin_timestamp": 0, "end_timestamp": FOREVER}
    return QueryMessage(topic=topic, key=key, **{**fields, **changes})


async def send(client, topic: str, body: bytes, **changes) -> int:
    answer = await client.ask(sending(topic, **changes), body)
    reply = answer.read(SendReply)
    return message_id.parse_offset_msg_id(reply.msg_id).message_id


@looped
async def test_messages_are_found_by_key_and_unique_key_in_a_time_range(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(
            sending("orders", pairs={"KEYS": "a b", "UNIQ_KEY": "U1"}), b"1"
        )
        await client.ask(
            sending("orders", pairs={"KEYS": "b U1", "UNIQ_KEY": "U2"}), b"2"
        )
        stored = (await client.ask(pulling("orders"))).messages()

        async def bodies_of(header: QueryMessage) -> list[bytes]:
            answer = await client.ask(header)
            if answer.code == ResponseCode.QUERY_NOT_FOUND:
                return []
            assert answer.read(QueryReply).index_last_update_timestamp > 0
            return [one.body for one in answer.messages()]

        assert await bodies_of(query("a")) == [b"1"]
        assert await bodies_of(query("b")) == [b"1", b"2"]
        assert await bodies_of(query("U1")) == [b"1", b"2"]
        assert await bodies_of(query("U1", unique_key_query=True)) == [b"1"]
        assert await bodies_of(query("b", max_num=1)) == [b"2"]
        assert await bodies_of(query("nothing")) == []
        assert await bodies_of(query("a", topic="none")) == []
        late = stored[-1].store_ms + 1
        assert await bodies_of(query("b", begin_timestamp=late)) == []
        assert await bodies_of(query("b", end_timestamp=stored[0].store_ms - 1)) == []


@looped
async def test_look_ups_by_key_wait_for_each_other_and_count_meanwhile(tmp_path: Path):
    """Before, 65,000 of one client waited, with 300 MiB that nobody counted."""
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders", pairs={"KEYS": "a"}), b"1")
        fair_queue = app.node.fair_queue
        one = fair_queue.slices("127.0.0.1")
        await one.begin_large()
        answers = asyncio.gather(*(client.send(query("a")) for _ in range(3)))
        await until(lambda: fair_queue.waiting_bytes >= 3 * 4096)
        assert not answers.done()
        one.end_large()
        found = await asyncio.wait_for(answers, 60)
        assert [answer.code for answer in found] == [0, 0, 0]
        assert fair_queue.waiting_bytes == 0
