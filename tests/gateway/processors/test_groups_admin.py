"""Making, changing, deleting and listing consumer groups."""

import msgspec
import pytest

from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    AllGroupConfigReply,
    CreateGroup,
    DeleteGroup,
    GetAllGroupConfig,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.group_admin import (
    CreateGroupList,
    GetGroupConfig,
    QueryTopicsByConsumer,
)
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.routing.api import Group
from tests.remoting import beat, looped, running, two_running
from tests.requests import pulling, sending


def group(name: str = "readers", **changes: object) -> bytes:
    return bodies.encode(bodies.GroupConfig(group_name=name, **changes))


async def commit(client, topic: str = "orders", *, by: str = "readers") -> None:
    await client.ask(sending(topic), b"one")
    await client.ask(pulling(topic, group=by))
    await client.ask(
        UpdateConsumerOffset(
            consumer_group=by, topic=topic, queue_id=0, commit_offset=1
        )
    )


@looped
async def test_a_group_is_made_as_it_was_asked_for(tmp_path):
    async with running(tmp_path) as (_, client):
        wanted = group(consume_message_orderly=True, retry_max_times=3)
        assert (await client.ask(CreateGroup(), wanted)).code == 0
        answer = await client.ask(GetGroupConfig(group="readers"))
        assert answer.body == wanted


@looped
async def test_what_cannot_be_a_group_is_refused_in_words(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(CreateGroup(), group("a b"))
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert "illegal characters" in answer.remark
        assert (await client.ask(GetGroupConfig(group="a b"))).code == (
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        )


@looped
async def test_of_several_groups_all_are_made_or_none(tmp_path):
    async with running(tmp_path) as (app, client):
        good = bodies.GroupConfig(group_name="one")
        for other, expected in (("a b", []), ("two", ["one", "two"])):
            wanted = bodies.GroupConfigList(
                [good, bodies.GroupConfig(group_name=other)]
            )
            await client.ask(CreateGroupList(), bodies.encode(wanted))
            made = [name for name in ("one", "two") if app.node.groups.get(name)]
            assert made == expected


@looped
async def test_attributes_of_a_group_are_added_and_taken_away(tmp_path):
    async with running(tmp_path) as (app, client):
        factor = "priority.factor"
        await client.ask(CreateGroup(), group(attributes={f"+{factor}": "50"}))
        await client.ask(CreateGroup(), group())
        assert app.node.groups.get("readers").attributes == {factor: "50"}
        await client.ask(CreateGroup(), group(attributes={f"-{factor}": ""}))
        assert app.node.groups.get("readers").attributes == {}
        answer = await client.ask(CreateGroup(), group(attributes={"+c": "3"}))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "unsupported key: c" in answer.remark


@looped
async def test_all_groups_are_listed_at_once_or_in_pages(tmp_path):
    async with running(tmp_path) as (_, client):
        names = ["a", "b", "c"]
        for name in names:
            await client.ask(CreateGroup(), group(name))

        async def listed(**page: int) -> list[str]:
            answer = await client.ask(GetAllGroupConfig(**page))
            assert answer.read(AllGroupConfigReply).total_group_num == len(names)
            return list(msgspec.json.decode(answer.body)["subscriptionGroupTable"])

        assert await listed() == names
        assert await listed(group_seq=1, max_group_num=1) == ["b"]


@looped
@pytest.mark.parametrize("clean", [True, False])
async def test_a_deleted_group_keeps_its_offsets_unless_told_otherwise(tmp_path, clean):
    async with running(tmp_path) as (app, client):
        await client.ask(CreateGroup(), group())
        await commit(client)
        header = DeleteGroup(group_name="readers", clean_offset=clean)
        assert (await client.ask(header)).code == 0
        assert app.node.groups.get("readers") is None
        kept = app.node.offsets.get("readers", "orders", 0)
        assert kept == (None if clean else 1)


@looped
async def test_groups_that_consume_a_topic_are_those_connected_and_those_with_offsets(
    tmp_path,
):
    async with running(tmp_path) as (_, client):
        await commit(client, by="past")
        await beat(client, "c1", "present")
        answer = await client.ask(QueryTopicConsumeByWho(topic="orders"))
        found = bodies.decode(admin_bodies.GroupList, answer.body).group_list
        assert found == ["past", "present"]


@looped
async def test_topics_of_a_group_are_those_it_has_offsets_in(tmp_path):
    async with running(tmp_path) as (_, client):
        await commit(client, "b")
        await commit(client, "a")
        answer = await client.ask(QueryTopicsByConsumer(group="readers"))
        found = bodies.decode(bodies.TopicList, answer.body)
        assert found.topic_list == ["a", "b"]


@looped
@pytest.mark.parametrize("other", [False, True], ids=["as usual", "otherwise"])
async def test_every_setting_of_a_group_is_kept_and_shown(tmp_path, other):
    changes = {
        "broker_id": 1,
        "consume_broadcast_enable": False,
        "consume_enable": False,
        "consume_from_min_enable": False,
        "consume_message_orderly": True,
        "consume_timeout_minute": 7,
        "group_sys_flag": 4,
        "notify_consumer_ids_changed_enable": False,
        "retry_max_times": 5,
        "retry_queue_nums": 3,
        "which_broker_when_consume_slowly": 2,
    }
    async with running(tmp_path) as (_, client):
        wanted = group(**changes) if other else group()
        assert (await client.ask(CreateGroup(), wanted)).code == 0
        assert (await client.ask(GetGroupConfig(group="readers"))).body == wanted


@looped
async def test_groups_that_were_made_through_another_node_are_listed(tmp_path):
    async with two_running(tmp_path) as ((_, client), (_, other)):
        for number in range(5):
            assert (await other.ask(CreateGroup(), group(f"g{number}"))).code == 0
            answer = await client.ask(GetAllGroupConfig())
            listed = msgspec.json.decode(answer.body)["subscriptionGroupTable"]
            assert len(listed) == number + 1


@looped
async def test_no_group_has_more_retry_queues_than_there_can_be(tmp_path):
    """Before, a look at the route of their topic made a list of two billion."""
    async with running(tmp_path) as (app, client):
        for queues, code in ((1024, 0), (1025, ResponseCode.INVALID_PARAMETER)):
            body = group(f"g{queues}", retry_queue_nums=queues)
            assert (await client.ask(CreateGroup(), body)).code == code
        # One that an older version took.
        await app.node.groups.put(Group(name="old", retry_queue_nums=2**31 - 1))
        found = await client.ask(GetRouteInfo(topic="%RETRY%old"))
        (queues,) = msgspec.json.decode(found.body)["queueDatas"]
        assert queues["readQueueNums"] == 1024
