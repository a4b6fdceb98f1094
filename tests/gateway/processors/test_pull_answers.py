"""Answers with messages and without have the same fields."""

from __future__ import annotations

from gateway.wire.codes import ResponseCode
from gateway.wire.commands.pull import PullReply
from gateway.wire.header import to_fields
from tests.remoting import looped, pulling, running, sending


@looped
async def test_a_pull_is_answered_with_where_to_go_on(tmp_path):
    async with running(tmp_path) as (_, client):
        for _ in range(2):
            await client.ask(sending("orders"), b"x")
        reply = PullReply(
            suggest_which_broker_id=0,
            next_begin_offset=2,
            min_offset=0,
            max_offset=2,
            topic_sys_flag=0,
            group_sys_flag=0,
        )
        found = await client.ask(pulling("orders"))
        assert (found.code, found.remark) == (0, "FOUND")
        assert found.fields == to_fields(reply)
        assert [one.body for one in found.messages()] == [b"x", b"x"]
        empty = await client.ask(pulling("orders", 2))
        assert empty.code == ResponseCode.PULL_NOT_FOUND
        assert empty.fields == to_fields(reply)
        moved = await client.ask(pulling("orders", 7))
        assert moved.code == ResponseCode.PULL_OFFSET_MOVED
        assert moved.fields == to_fields(reply)
