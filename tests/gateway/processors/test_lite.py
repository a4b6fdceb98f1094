"""Requests of lite topics: what is refused, and what waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.lite import LiteSubscriptionCtl, OffsetOption
from ropeway.routing.api import Group, Topic
from tests.gateway.lite.rig import PARENT, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "absent"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"topic": "plain"}, ResponseCode.INVALID_PARAMETER),
        ({"group": "absent"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"group": "others"}, ResponseCode.INVALID_PARAMETER),
        ({"group": "shut"}, ResponseCode.NO_PERMISSION),
        ({"client_id": " "}, ResponseCode.INVALID_PARAMETER),
        ({"action": "DANCE"}, ResponseCode.INVALID_PARAMETER),
        ({"lite_topic_set": ["a b"]}, ResponseCode.INVALID_PARAMETER),
        ({"option": OffsetOption("POLICY", 3)}, ResponseCode.INVALID_PARAMETER),
        ({"option": OffsetOption("OFFSET", -1)}, ResponseCode.INVALID_PARAMETER),
        ({"option": OffsetOption("OFFSET", 1 << 63)}, ResponseCode.INVALID_PARAMETER),
        ({"option": OffsetOption("MOON", 1)}, ResponseCode.INVALID_PARAMETER),
        (
            {"lite_topic_set": [str(one) for one in range(2001)]},
            ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
        ),
    ],
)
async def test_what_cannot_be_subscribed_to_is_refused_by_its_code(
    tmp_path: Path, changes, code
):
    async with rigged(tmp_path) as rig:
        node = rig.app.node
        await node.topics.put(
            Topic(name="plain", read_queue_nums=1, write_queue_nums=1)
        )
        await node.groups.put(Group(name="others"))
        bound = {"lite.bind.topic": PARENT}
        await node.groups.put(
            Group(name="shut", consume_enable=False, attributes=bound)
        )
        action = changes.pop("action", lite.PARTIAL_ADD)
        assert await rig.sync(action, "a", **changes) == code
        assert not any(one.lites for one in rig.lite.subscribers)


@looped
@pytest.mark.parametrize("body", [b"", b"{}", b'{"subscriptionSet":[]}', b"\0"])
async def test_a_change_of_nothing_is_refused(tmp_path: Path, body: bytes):
    async with rigged(tmp_path) as rig:
        answer = await rig.client.ask(LiteSubscriptionCtl(), body)
        assert answer.code != 0
        assert answer.remark


@looped
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "absent"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"consumer_group": "absent"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"max_msg_num": 33}, ResponseCode.INVALID_PARAMETER),
        ({"max_msg_num": 0}, ResponseCode.INVALID_PARAMETER),
        ({"invisible_time": 0}, ResponseCode.INVALID_PARAMETER),
    ],
)
async def test_what_cannot_be_popped_is_refused_by_its_code(
    tmp_path: Path, changes, code
):
    async with rigged(tmp_path) as rig:
        assert (await rig.client.ask(rig.header(**changes))).code == code


@looped
async def test_a_pop_waits_for_a_message_and_a_late_one_for_a_subscription(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        popping = asyncio.ensure_future(rig.pop(poll_time=100_000))
        await until(lambda: rig.lite._waiting.taken == 1)
        await rig.send("b", "other")
        assert not popping.done()
        assert await rig.sync(lite.PARTIAL_ADD, "b") == 0
        assert (await popping).bodies == ["other"]
        assert rig.lite._waiting.taken == 0


@looped
async def test_a_pop_ends_when_its_client_ends_or_its_group_is_changed(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        changed = Group(
            name="readers", attributes={"lite.bind.topic": PARENT}, retry_max_times=3
        )
        for name, end in (
            ("a", lambda: rig.sync(lite.COMPLETE_REMOVE)),
            ("b", lambda: rig.app.node.groups.put(changed)),
        ):
            await rig.add(name)
            popping = asyncio.ensure_future(rig.pop(poll_time=100_000))
            await until(lambda: rig.lite._waiting.taken == 1)
            await end()
            await rig.send(name, "0")
            found = await popping
            assert found.bodies == []
            assert await rig.sync(lite.COMPLETE_REMOVE) == 0


@looped
async def test_a_receipt_of_a_lite_topic_counts_there_alone(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a", "b")
        await rig.send("a", "0")
        await rig.send("b", "1")
        found = await rig.pop()
        assert await rig.ack(found, 0, "b") == ResponseCode.NO_MESSAGE
        assert await rig.ack(found, 0, "") != 0
        assert await rig.ack(found, 0, "a") == 0
        assert await rig.ack(found, 0, "a") == ResponseCode.NO_MESSAGE


@looped
@pytest.mark.parametrize("kind", ["OFFSET", "TAIL_N", "TIMESTAMP"])
async def test_a_subscription_may_begin_at_nothing(tmp_path: Path, kind: str):
    async with rigged(tmp_path) as rig:
        option = OffsetOption(kind, 0)
        assert await rig.sync(lite.PARTIAL_ADD, "a", option=option) == 0
