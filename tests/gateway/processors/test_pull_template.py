"""Answers with messages and without have the same fields."""

from __future__ import annotations

import json
from types import SimpleNamespace

from ropeway.gateway.processors import pull
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.frame import JSON, FrameReader
from ropeway.gateway.wire.header import to_fields
from tests.remoting import looped, running
from tests.requests import pulling, sending


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


def test_a_template_says_what_the_answer_does():
    topic = SimpleNamespace(setup=SimpleNamespace(topic_sys_flag=1))
    group = SimpleNamespace(broker_id=2, group_sys_flag=3)
    partition = SimpleNamespace(first=4, end=9)
    data = [memoryview(b"one"), b"two"]
    one = pull._Pull(None, None, topic, group, partition, None, 8)
    answer = one._answer(ResponseCode.SUCCESS, "FOUND", 8, data)
    made = b"".join((answer.template(answer, 42), *answer.records))
    ((kind, header, body),) = FrameReader(1 << 20).feed(made)
    ((_, other, other_body),) = FrameReader(1 << 20).feed(answer.frame(42))
    assert body == other_body == b"onetwo"
    assert json.loads(header) == json.loads(other)
    assert kind == JSON
