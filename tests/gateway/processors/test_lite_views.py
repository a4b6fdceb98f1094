"""Requests of administrators about lite topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import bodies, lite_bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.lite_views import (
    GetBrokerLiteInfo,
    GetLiteClientInfo,
    GetLiteGroupInfo,
    GetLiteTopicInfo,
    GetParentTopicInfo,
    TriggerLiteDispatch,
)
from ropeway.routing.api import Group, Topic
from tests.gateway.lite.rig import GROUP, PARENT, QUEUES, Rig, rigged
from tests.gateway.pop.rig import Clock
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.wire.header import Header


async def told(rig: Rig, header: Header, kind: type[bodies.B]) -> bodies.B:
    """The body of an answer."""
    answer = await rig.client.ask(header)
    assert answer.code == 0, answer.remark
    return bodies.decode(kind, answer.body)


@looped
async def test_a_broker_counts_what_it_has(tmp_path: Path):
    attributes = {"lite.topic.expiration": "60"}
    async with rigged(tmp_path, attributes=attributes) as rig:
        info = await told(rig, GetBrokerLiteInfo(), lite_bodies.BrokerLiteInfo)
        await rig.send("a", "0")
        await rig.send("b", "0")
        await rig.add("a", "c")
        await rig.add("a", client_id="two")
        assert await rig.ack(await rig.pop()) == 0
        again = await told(rig, GetBrokerLiteInfo(), lite_bodies.BrokerLiteInfo)
        offsets = rig.app.node.offsets
        assert f"lite:{GROUP}" in offsets.groups()
        assert again == lite_bodies.BrokerLiteInfo(
            cq_table_size=info.cq_table_size + 2,
            current_lmq_num=2,
            event_map_size=2,
            group_meta={PARENT: [GROUP]},
            lite_subscription_count=3,
            max_lmq_num=rig.app.node.config.limits.lite_topics,
            offset_table_size=sum(len(offsets.topics(one)) for one in offsets.groups()),
            order_info_count=1,
            store_type="default",
            topic_meta={PARENT: 60},
        )


@looped
async def test_a_parent_tells_its_groups_and_how_many_lite_topics_it_has(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.app.node.groups.put(
            Group(name="also", attributes={"lite.bind.topic": PARENT})
        )
        await rig.send("a", "0")
        header = GetParentTopicInfo(topic=PARENT)
        info = await told(rig, header, lite_bodies.ParentTopicInfo)
        assert info == lite_bodies.ParentTopicInfo(
            groups=["also", GROUP],
            lite_topic_count=1,
            lmq_num=1,
            topic=PARENT,
            ttl=-1,
        )


@looped
async def test_a_lite_topic_tells_its_messages_and_who_subscribes(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.add("a")
        await rig.add("a", client_id="two")
        await rig.send("b", "0")
        await rig.send("a", "0", "1")
        header = GetLiteTopicInfo(parent_topic=PARENT, lite_topic="a")
        info = await told(rig, header, lite_bodies.LiteTopicInfo)
        assert info.sharding_to_broker
        assert [(one.client_id, one.group) for one in info.subscriber] == [
            ("one", GROUP),
            ("two", GROUP),
        ]
        offset = info.topic_offset
        assert (offset.min_offset, offset.max_offset) == (0, 2)
        assert offset.last_update_timestamp == clock.now_ms


@looped
async def test_a_client_tells_what_it_subscribes_to(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.add("a", "b")

        async def of(client_id: str, most: int = 10) -> lite_bodies.LiteClientInfo:
            header = GetLiteClientInfo(
                parent_topic=PARENT,
                group=GROUP,
                client_id=client_id,
                max_count=most,
            )
            return await told(rig, header, lite_bodies.LiteClientInfo)

        info = await of("one")
        assert (info.lite_topic_count, info.last_access_time) == (2, clock.now_ms)
        names = {f"%LMQ%${PARENT}$a", f"%LMQ%${PARENT}$b"}
        assert set(info.lite_topic_set) == names
        assert len((await of("one", 1)).lite_topic_set) == 1
        nobody = await of("nobody")
        assert (nobody.lite_topic_count, nobody.last_access_time) == (-1, -1)
        assert not nobody.lite_topic_set


@looped
async def test_a_group_tells_how_far_behind_it_is(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:

        async def of(lite: str | None = None) -> lite_bodies.LiteGroupInfo:
            header = GetLiteGroupInfo(group=GROUP, lite_topic=lite, top_k=20)
            return await told(rig, header, lite_bodies.LiteGroupInfo)

        empty = await of()
        assert (empty.total_lag_count, empty.earliest_unconsumed_timestamp) == (0, -1)
        assert (empty.lag_count_top_k, empty.lag_timestamp_top_k) == ([], [])
        assert (await of("a")).total_lag_count == -1
        await rig.send("b", "0")
        await rig.send("a", "0", "1", "2")
        # Nobody has been there.
        assert (await of("a")).total_lag_count == 0
        assert not (await of("a")).lite_topic_offset_wrapper
        await rig.add("a", "b")
        found = await rig.pop()
        at = [one.body for one in found.messages].index(b"0", 1)
        name = "a" if at == 1 else "b"
        assert await rig.ack(found, at, name) == 0
        one = await of(name)
        wrapper = one.lite_topic_offset_wrapper
        assert wrapper.consumer_offset == 1
        assert wrapper.last_timestamp == clock.now_ms
        assert one.total_lag_count == wrapper.broker_offset - 1
        every = await of()
        assert every.total_lag_count == 3
        assert every.earliest_unconsumed_timestamp == clock.now_ms
        assert sum(lag.lag_count for lag in every.lag_count_top_k) == 3
        assert sum(lag.lag_count for lag in every.lag_timestamp_top_k) == 3


@looped
async def test_clients_look_again_when_they_are_told_to(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.add("a", client_id="two")
        await rig.send("a", "0")
        one, two = rig.lite.subscribers
        for client_id, wanted in ((None, {one, two}), ("two", {two}), ("", {one, two})):
            for each in (one, two):
                each.ready.clear()
            header = TriggerLiteDispatch(group=GROUP, client_id=client_id)
            assert (await rig.client.ask(header)).code == 0
            assert wanted <= {each for each in (one, two) if "a" in each.ready}
        for each in (one, two):
            each.ready.clear()
        popping = asyncio.ensure_future(rig.pop(poll_time=100_000))
        await until(lambda: rig.lite._waiting.taken == 1)
        header = TriggerLiteDispatch(group=GROUP, client_id="one")
        assert (await rig.client.ask(header)).code == 0
        assert (await popping).bodies == ["0"]


@looped
@pytest.mark.parametrize(
    ("header", "code"),
    [
        (GetParentTopicInfo(topic="absent"), ResponseCode.TOPIC_NOT_EXIST),
        (GetParentTopicInfo(topic="plain"), ResponseCode.INVALID_PARAMETER),
        (
            GetLiteTopicInfo(parent_topic="absent", lite_topic="a"),
            ResponseCode.TOPIC_NOT_EXIST,
        ),
        (
            GetLiteTopicInfo(parent_topic="plain", lite_topic="a"),
            ResponseCode.INVALID_PARAMETER,
        ),
        (GetLiteTopicInfo(), ResponseCode.TOPIC_NOT_EXIST),
        (GetLiteClientInfo(parent_topic="absent"), ResponseCode.TOPIC_NOT_EXIST),
        (
            GetLiteClientInfo(parent_topic=PARENT, group="absent"),
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ),
        (
            GetLiteClientInfo(parent_topic=PARENT, group="others"),
            ResponseCode.INVALID_PARAMETER,
        ),
        (
            GetLiteClientInfo(parent_topic=PARENT, group=GROUP, max_count=0),
            ResponseCode.INVALID_PARAMETER,
        ),
        (
            GetLiteGroupInfo(group="absent"),
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ),
        (GetLiteGroupInfo(group="others"), ResponseCode.INVALID_PARAMETER),
        (GetLiteGroupInfo(group=GROUP), ResponseCode.INVALID_PARAMETER),
        (
            TriggerLiteDispatch(group="absent"),
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ),
        (TriggerLiteDispatch(group="others"), ResponseCode.INVALID_PARAMETER),
    ],
)
async def test_what_cannot_be_told_is_refused_by_its_code(
    tmp_path: Path, header: Header, code: ResponseCode
):
    async with rigged(tmp_path) as rig:
        await rig.app.node.topics.put(
            Topic(name="plain", read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        )
        await rig.app.node.groups.put(Group(name="others"))
        answer = await rig.client.ask(header)
        assert answer.code == code
        assert answer.remark


@looped
async def test_who_wants_all_is_shown_as_a_real_broker_shows_it(tmp_path: Path):
    async with rigged(tmp_path, of_group={"lite.sub.wildcard": "true"}) as rig:
        for client_id in ("one", "two"):
            assert await rig.sync(lite.COMPLETE_ADD, client_id=client_id) == 0
        header = GetLiteClientInfo(PARENT, GROUP, "one")
        client = await told(rig, header, lite_bodies.LiteClientInfo)
        assert client.lite_topic_count == 1
        assert client.lite_topic_set == [f"{PARENT}@{GROUP}"]
        asked = GetLiteTopicInfo(parent_topic=PARENT, lite_topic="a")
        topic = await told(rig, asked, lite_bodies.LiteTopicInfo)
        assert [(one.client_id, one.group) for one in topic.subscriber] == [
            ("*", GROUP)
        ]
        info = await told(rig, GetBrokerLiteInfo(), lite_bodies.BrokerLiteInfo)
        assert info.lite_subscription_count == 2
