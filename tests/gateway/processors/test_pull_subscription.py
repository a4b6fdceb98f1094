"""What is looked at before a pull: who may read what, and whose subscription counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.routing.api import PERM_WRITE, Group, Topic
from tests.remoting import beat, looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


def offsets_of(frame) -> list[int]:
    return [one.queue_offset for one in frame.messages()]


@looped
async def test_what_a_pull_may_not_have_is_refused_with_its_code(tmp_path: Path):
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (app, client):
        node = app.node
        await client.ask(sending("orders"), b"x")
        await node.groups.put(Group(name="readers"))
        await node.groups.put(Group(name="off", consume_enable=False))
        closed = Topic(
            name="closed", read_queue_nums=1, write_queue_nums=1, perm=PERM_WRITE
        )
        await node.topics.put(closed)
        narrow = Topic(name="narrow", read_queue_nums=1, write_queue_nums=4)
        await node.topics.put(narrow)
        for header, code in (
            (pulling("orders"), 0),
            (pulling("orders", group="x"), ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
            (pulling("orders", group="off"), ResponseCode.NO_PERMISSION),
            (pulling("nothing"), ResponseCode.TOPIC_NOT_EXIST),
            (pulling("closed"), ResponseCode.NO_PERMISSION),
            (pulling("orders", queue_id=4), ResponseCode.INVALID_PARAMETER),
            (pulling("orders", queue_id=-1), ResponseCode.INVALID_PARAMETER),
            (pulling("narrow", queue_id=1), ResponseCode.INVALID_PARAMETER),
            (
                pulling("orders", subscription="||"),
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            ),
            (
                pulling("orders", subscription="a >", expression_type="SQL92"),
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            ),
            (pulling("orders", sys_flag=0), ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ):
            answer = await client.ask(header)
            assert answer.code == code, (header, answer.remark)


@looped
async def test_a_pull_without_a_subscription_takes_the_groups(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for tag in ("a", "b"):
            await client.ask(sending("orders", pairs={"TAGS": tag}), b"x")
        await beat(client, "me", "readers", expression="b", version=5)
        answer = await client.ask(pulling("orders", sys_flag=0, sub_version=5))
        assert offsets_of(answer) == [1]
        answer = await client.ask(pulling("orders", sys_flag=0, sub_version=6))
        assert answer.code == ResponseCode.SUBSCRIPTION_NOT_LATEST
        await client.ask(sending("other"), b"x")
        answer = await client.ask(pulling("other", sys_flag=0))
        assert answer.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
        await app.node.groups.put(Group(name="readers", consume_broadcast_enable=False))
        await beat(client, "me", "readers", message_model=bodies.BROADCASTING)
        answer = await client.ask(pulling("orders", sys_flag=0))
        assert answer.code == ResponseCode.NO_PERMISSION
