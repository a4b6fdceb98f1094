"""System topics hold what other topics do; whoever may use all others sees none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.node import names
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    DeleteGroup,
    GetAllTopicConfig,
    GetConsumeStats,
    GetTopicConfig,
    GetTopicStats,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.broker_admin import QueryConsumeQueue
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.group_admin import QueryTopicsByConsumer
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList, GetRouteInfo
from ropeway.gateway.wire.commands.offsets import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    SearchOffset,
    UpdateConsumerOffset,
)
from ropeway.gateway.wire.commands.pop import Notification, PeekMessage, PopMessage
from ropeway.gateway.wire.commands.query import QueryMessage, ViewMessage
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.guarded import ALICE, ROOT, allow, ask, guarded
from tests.remoting import looped
from tests.requests import heartbeat, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Remoting

DENIED = ResponseCode.NO_PERMISSION
REPLY_TOPIC = names.reply_topic("DefaultCluster")
ALL_KINDS = (
    names.SCHEDULE_TOPIC,
    names.TIMER_TOPIC,
    names.GIVEN_UP_TOPIC,
    names.HALF_TOPIC,
    names.HALF_ENDS_TOPIC,
    names.POP_TOPIC,
    names.STAGED_TOPIC,
    names.BATCHES_TOPIC,
    names.TRACE_TOPIC,
    "rmq_sys_REVIVE_LOG_DefaultCluster",
    "OFFSET_MOVED_EVENT",
    REPLY_TOPIC,
)
ALMIGHTY = (allow("Topic:*"), allow("Group:*"), allow("Cluster:*"))


def looks(topic: str):
    """Every request that shows what a topic holds, or where it begins and ends."""
    popped = {"consumer_group": "mine", "topic": topic, "queue_id": -1}
    return {
        "pull": pulling(topic, group="mine"),
        "pop": PopMessage(
            **popped,
            max_msg_nums=1,
            invisible_time=10_000,
            poll_time=0,
            born_time=0,
            init_mode=1,
        ),
        "peek": PeekMessage(**popped, max_msg_nums=1),
        "notification": Notification(**popped, poll_time=0, born_time=0),
        "query": QueryMessage(
            topic=topic, key="k", max_num=9, begin_timestamp=0, end_timestamp=2**60
        ),
        "end": GetMaxOffset(topic, 0),
        "first": GetMinOffset(topic, 0),
        "search": SearchOffset(topic=topic, queue_id=0, timestamp=0),
        "earliest": GetEarliestMsgStoreTime(topic, 0),
        "entries": QueryConsumeQueue(topic=topic, queue_id=0, index=0, count=9),
        "ends": GetTopicStats(topic=topic),
        "config": GetTopicConfig(topic=topic),
        "progress": GetConsumeStats(consumer_group="mine", topic=topic),
        "offset": QueryConsumerOffset("mine", topic, 0),
        "commit": UpdateConsumerOffset("mine", topic, 0, 0),
    }


async def _fill(client: Remoting) -> SendReply:
    """Have a message wait in the schedule, and one that is traced."""
    delayed = sending("bank", pairs={properties.DELAY: "18"})
    await ask(client, ROOT, delayed, b"secret")
    traced = await ask(client, ROOT, sending(names.TRACE_TOPIC), b"secret")
    return traced.read(SendReply)


@looped
async def test_who_may_use_all_topics_reads_no_system_topic(tmp_path: Path):
    async with guarded(tmp_path, *ALMIGHTY) as (_, client):
        await _fill(client)
        for topic in ALL_KINDS:
            for name, header in looks(topic).items():
                answer = await ask(client, ALICE, header)
                assert (topic, name, answer.code) == (topic, name, DENIED)
                assert answer.body == b""
            beat = heartbeat("c", "mine", topic=topic)
            assert (await ask(client, ALICE, HeartBeat(), beat)).code == DENIED


@looped
async def test_a_superuser_reads_what_waits_and_what_is_traced(tmp_path: Path):
    async with guarded(tmp_path) as (_, client):
        await _fill(client)
        pulled = await ask(client, ROOT, pulling(names.TRACE_TOPIC))
        assert [one.body for one in pulled.messages()] == [b"secret"]
        stats = await ask(client, ROOT, GetTopicStats(topic=names.SCHEDULE_TOPIC))
        assert stats.code == 0


@looped
async def test_a_rule_for_a_system_topic_lets_nobody_read_it(tmp_path: Path):
    rule = allow(f"Topic:{names.TRACE_TOPIC}"), allow("Group:mine")
    async with guarded(tmp_path, *rule) as (_, client):
        traced = await _fill(client)
        assert (await ask(client, ALICE, pulling(names.TRACE_TOPIC))).code == DENIED
        place = parse_offset_msg_id(traced.msg_id)
        for claimed in (None, names.TRACE_TOPIC, "mine"):
            look = ViewMessage(offset=place.message_id, topic=claimed)
            assert (await ask(client, ALICE, look)).code != 0


@looped
@pytest.mark.parametrize("topic", [names.TRACE_TOPIC, REPLY_TOPIC])
async def test_producers_send_their_traces_and_replies_by_rules(tmp_path, topic):
    rule = allow(f"Topic:{topic}", "Pub")
    async with guarded(tmp_path, rule) as (app, client):
        await ask(client, ROOT, sending(topic), b"makes it")
        sent = await ask(client, ALICE, sending(topic), b"trace")
        assert sent.code == 0
        assert (await ask(client, ALICE, GetRouteInfo(topic=topic))).code == 0
        assert (await ask(client, "nobody", sending(topic), b"x")).code == DENIED
        assert app.node.topics.get(topic).partitions[0].end == 2


@looped
async def test_lists_show_no_system_topic_but_to_a_superuser(tmp_path: Path):
    async with guarded(tmp_path, *ALMIGHTY) as (_, client):
        await _fill(client)
        for header in (GetAllTopicList(), GetAllTopicConfig()):
            seen = await ask(client, ALICE, header)
            assert b"bank" in seen.body
            assert b"SCHEDULE" not in seen.body
            assert b"TRACE" not in seen.body
            all_ = await ask(client, ROOT, header)
            assert b"SCHEDULE" in all_.body
            assert b"TRACE" in all_.body
            assert msgspec.json.decode(all_.body)


@looped
async def test_system_groups_are_for_superusers(tmp_path: Path):
    async with guarded(tmp_path, *ALMIGHTY) as (_, client):
        header = GetConsumeStats(consumer_group=names.SCHEDULE_GROUP)
        assert (await ask(client, ALICE, header)).code == DENIED
        assert (await ask(client, ROOT, header)).code == 0


LITE = "%LMQ%$rooms$a"
INNER = ("lite:readers", "reset:readers", "moved:readers", "moved:")
INNER_TOPICS = (LITE, "order:orders", "moved:1:orders")


def progress_of(group: str, topic: str):
    """Every request that shows or changes what is kept under names of progress."""
    return (
        QueryConsumerOffset(group, topic, 0),
        UpdateConsumerOffset(group, topic, 0, 7),
        GetConsumeStats(consumer_group=group, topic=topic),
        GetConsumeStats(consumer_group=group),
        QueryTopicsByConsumer(group=group),
        QueryTopicConsumeByWho(topic=topic),
        DeleteGroup(group_name=group, clean_offset=True),
        pulling(names.retry_topic(group), group="mine"),
    )


@looped
async def test_no_rule_opens_the_names_that_only_progress_has(tmp_path: Path):
    """Before, `Group:l*` let read and delete where each group was in lite topics."""
    rules = (allow("Topic:*"), allow("Group:*"), allow("Group:l*"), allow("Group:r*"))
    async with guarded(tmp_path, *rules) as (app, client):
        await ask(client, ROOT, sending("orders"), b"x")
        offsets = app.node.offsets
        for group in INNER:
            offsets.commit(group, "orders", 0, 5)
            offsets.commit(group, LITE, 0, 5)
            for name in (group, names.retry_topic(group)):
                for header in progress_of(name, LITE):
                    if isinstance(header, QueryTopicConsumeByWho):
                        continue
                    answer = await ask(client, ALICE, header)
                    assert (header, answer.code) == (header, DENIED)
            assert offsets.topics(group)
        for topic in INNER_TOPICS:
            offsets.commit("mine", topic, 0, 5)
            for header in progress_of("mine", topic):
                if getattr(header, "topic", None) != topic:
                    continue
                answer = await ask(client, ALICE, header)
                assert (header, answer.code) == (header, DENIED)
            assert offsets.get("mine", topic, 0) == 5
        own = QueryConsumerOffset("mine", "orders", 0, set_zero_if_not_found=True)
        assert (await ask(client, ALICE, own)).code == 0
