"""Making, changing, deleting topics, and looking at them."""

import msgspec
import pytest
from structlog.testing import capture_logs

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.wire import bodies, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    AllTopicConfigReply,
    CreateTopic,
    CreateTopicList,
    DeleteTopic,
    GetAllTopicConfig,
    GetTopicConfig,
    GetTopicStats,
)
from ropeway.gateway.wire.commands.broker_admin import GetSystemTopicListFromBroker
from ropeway.gateway.wire.commands.namesrv import DeleteTopicInNamesrv, GetRouteInfo
from ropeway.gateway.wire.commands.offsets import (
    GetMaxOffset,
    Offset,
    QueryConsumerOffset,
    UpdateConsumerOffset,
)
from tests.gateway.holding import time_stands
from tests.remoting import looped, running, two_running, until
from tests.requests import pulling, sending, waiting


def creating(topic: str = "orders", **changes: object) -> CreateTopic:
    fields = {
        "topic": topic,
        "default_topic": "TBW102",
        "read_queue_nums": 4,
        "write_queue_nums": 4,
        "perm": 6,
        **changes,
    }
    return CreateTopic(**fields)


@looped
async def test_a_topic_is_made_as_it_was_asked_for(tmp_path):
    async with running(tmp_path) as (_, client):
        wanted = creating(order=True, attributes="+message.type=FIFO", perm=4)
        assert (await client.ask(wanted)).code == 0
        answer = await client.ask(GetTopicConfig(topic="orders"))
        assert bodies.decode(bodies.TopicConfig, answer.body) == bodies.TopicConfig(
            topic_name="orders",
            read_queue_nums=4,
            write_queue_nums=4,
            perm=4,
            order=True,
            attributes={"message.type": "FIFO"},
        )
        route = await client.ask(GetRouteInfo(topic="orders"))
        (queues,) = bodies.decode(bodies.TopicRoute, route.body).queue_datas
        assert (queues.read_queue_nums, queues.perm) == (4, 4)


@looped
@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"topic": "a b"}, "illegal characters"),
        ({"topic": ""}, "blank"),
        ({"topic": "t" * 128}, "max length: 127"),
        ({"topic": "TBW102"}, "conflict with system topic"),
        ({"topic": "broker-0"}, "conflict with system topic"),
        ({"topic": "DefaultCluster"}, "conflict with system topic"),
        ({"read_queue_nums": 1025}, "1025; allowed: 0 to 1024"),
        ({"write_queue_nums": -1}, "-1; allowed: 0 to 1024"),
        ({"read_queue_nums": 0, "write_queue_nums": 0}, "allowed: at least 1"),
        ({"perm": 8}, "perm of topic orders is 8; allowed: 0 to 7"),
        ({"topic_filter_type": "ODD"}, "allowed: SINGLE_TAG, MULTI_TAG"),
        ({"attributes": "+message.type=MIXED"}, "MIXED message type is not supported."),
        ({"attributes": "+entry.format=PULSAR"}, "allowed in the embedded log: packed"),
    ],
)
async def test_what_cannot_be_a_topic_is_refused_in_words(tmp_path, changes, remark):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(creating(**changes))
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert remark in answer.remark


@looped
@pytest.mark.parametrize("queues", [1, 1024])
async def test_a_topic_may_have_1_to_1024_queues(tmp_path, queues):
    async with running(tmp_path) as (app, client):
        wanted = creating(read_queue_nums=queues, write_queue_nums=queues)
        assert (await client.ask(wanted)).code == 0
        assert len(app.node.topics.get("orders").partitions) == queues


@looped
async def test_more_queues_leave_the_messages_of_the_others_where_they_are(tmp_path):
    async with running(tmp_path) as (_, client):
        await client.ask(creating())
        await client.ask(sending("orders", queue_id=3), b"stays")
        changed = creating(read_queue_nums=8, write_queue_nums=8)
        assert (await client.ask(changed)).code == 0
        (found,) = (await client.ask(pulling("orders", queue_id=3))).messages()
        assert found.body == b"stays"


@looped
@pytest.mark.parametrize(
    ("attributes", "remark"),
    [
        ("+colour=red", "unsupported key: colour; allowed: message.type"),
        ("+message.type=ODD", "value is not in set"),
        ("-message.type", "only add attribute is supported while creating topic."),
        ("message.type=FIFO", "add/alter attribute format is wrong: message.type"),
    ],
)
async def test_wrong_attributes_are_refused_as_by_a_real_broker(
    tmp_path, attributes, remark
):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(creating(attributes=attributes))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert remark in answer.remark
        assert app.node.topics.get("orders") is None


@looped
async def test_what_is_set_at_creation_cannot_be_changed(tmp_path):
    async with running(tmp_path) as (_, client):
        made = creating(attributes="+queue.type=SimpleCQ")
        assert (await client.ask(made)).code == 0
        for change in ("+queue.type=SimpleCQ", "-queue.type"):
            answer = await client.ask(creating(attributes=change))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "attempt to update an unchangeable attribute" in answer.remark
        answer = await client.ask(creating(attributes="-reserve.time"))
        assert "attempt to delete a nonexistent key" in answer.remark


@looped
async def test_topics_of_any_type_are_made_where_that_is_set(tmp_path):
    switch = TopicsConfig(mixed_message_type=True)
    async with running(tmp_path, topics=switch) as (app, client):
        assert (await client.ask(creating(attributes="+message.type=MIXED"))).code == 0
        setup = app.node.topics.get("orders").setup
        assert setup.attributes == {"message.type": "MIXED"}


@looped
async def test_attributes_that_are_not_named_stay(tmp_path):
    async with running(tmp_path) as (app, client):
        await client.ask(creating(attributes="+message.type=FIFO,+reserve.time=5"))
        await client.ask(creating(attributes="-reserve.time"))
        await client.ask(creating())
        setup = app.node.topics.get("orders").setup
        assert setup.attributes == {"message.type": "FIFO"}


@looped
async def test_a_topic_keeps_its_attributes_when_another_broker_gets_it_too(tmp_path):
    async with two_running(tmp_path) as ((_, first), (app, second)):
        await first.ask(creating(attributes="+message.type=FIFO"))
        await app.node.routes.catch_up()
        await second.ask(creating())
        setup = app.node.topics.get("orders").setup
        assert setup.attributes == {"message.type": "FIFO"}


@looped
async def test_of_several_topics_all_are_made_or_none(tmp_path):
    async with running(tmp_path) as (app, client):
        good = bodies.TopicConfig(topic_name="one")
        for other, expected in (("a b", []), ("two", ["one", "two"])):
            wanted = bodies.TopicConfigList(
                [good, bodies.TopicConfig(topic_name=other)]
            )
            await client.ask(CreateTopicList(), bodies.encode(wanted))
            made = [name for name in ("one", "two") if app.node.topics.get(name)]
            assert made == expected


@looped
async def test_all_topics_are_listed_at_once_or_in_pages(tmp_path):
    async with running(tmp_path) as (app, client):
        for number in range(3):
            await client.ask(creating(f"t{number}"))
        names = sorted(app.node.routes.topics)

        async def listed(**page: int) -> list[str]:
            answer = await client.ask(GetAllTopicConfig(**page))
            total = answer.read(AllTopicConfigReply).total_topic_num
            assert total == len(names)
            return list(msgspec.json.decode(answer.body)["topicConfigTable"])

        assert await listed() == names
        assert await listed(topic_seq=0, max_topic_num=2) == names[:2]
        assert await listed(topic_seq=2, max_topic_num=2000) == names[2:]


@looped
async def test_statistics_give_the_bounds_of_every_queue(tmp_path):
    async with running(tmp_path) as (_, client):
        await client.ask(creating(read_queue_nums=2, write_queue_nums=2))
        await client.ask(sending("orders", queue_id=1), b"one")
        answer = await client.ask(GetTopicStats(topic="orders"))
        (found,) = (await client.ask(pulling("orders", queue_id=1))).messages()
        assert answer.body == (
            b'{"offsetTable":{{"brokerName":"broker-0","queueId":0,"topic":"orders"}:'
            b'{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0},'
            b'{"brokerName":"broker-0","queueId":1,"topic":"orders"}:'
            b'{"lastUpdateTimestamp":%d,"maxOffset":1,"minOffset":0}},'
            b'"topicPutTps":0.0}' % found.store_ms
        )


@looped
@pytest.mark.parametrize("header", [GetTopicStats, GetTopicConfig])
async def test_a_topic_that_is_not_there_is_said_to_be_so(tmp_path, header):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(header(topic="orders"))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_a_deleted_topic_starts_anew_at_offset_0_and_is_forgotten(tmp_path):
    async with running(tmp_path) as (_, client):
        await client.ask(creating())
        await client.ask(sending("orders"), b"old")
        commit = UpdateConsumerOffset(
            consumer_group="readers", topic="orders", queue_id=0, commit_offset=1
        )
        await client.ask(commit)
        assert (await client.ask(DeleteTopic(topic="orders"))).code == 0
        assert (await client.ask(GetRouteInfo(topic="orders"))).code == (
            ResponseCode.TOPIC_NOT_EXIST
        )
        await client.ask(creating())
        end = await client.ask(GetMaxOffset(topic="orders", queue_id=0))
        assert end.read(Offset).offset == 0
        committed = await client.ask(
            QueryConsumerOffset(
                consumer_group="readers",
                topic="orders",
                queue_id=0,
                set_zero_if_not_found=False,
            )
        )
        assert committed.code == ResponseCode.QUERY_NOT_FOUND


@looped
async def test_a_waiting_pull_is_answered_when_its_topic_is_deleted(tmp_path):
    async with running(tmp_path) as (app, client):
        await client.ask(creating())
        held = client.send(waiting("orders"))
        await until(lambda: len(app.node.pull_hold) == 1)
        await client.ask(DeleteTopic(topic="orders"))
        assert (await held).code == ResponseCode.PULL_NOT_FOUND
        again = await client.ask(waiting("orders"))
        assert again.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_delayed_messages_of_a_deleted_topic_are_dropped_with_a_word(
    tmp_path, monkeypatch
):
    async with running(tmp_path, delay_levels="1s") as (_, client):
        await client.ask(creating())
        delayed = sending("orders", pairs={properties.DELAY: "1"})
        with capture_logs() as logged:
            with time_stands(monkeypatch):
                assert (await client.ask(delayed, b"late")).code == 0
                await client.ask(DeleteTopic(topic="orders"))
            await until(lambda: any("dropped" in line["event"] for line in logged))
        (dropped,) = (line for line in logged if "dropped" in line["event"])
        assert dropped["topic"] == "orders"


@looped
async def test_deleting_what_is_not_there_is_no_error(tmp_path):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(DeleteTopic(topic="orders"))).code == 0


@looped
@pytest.mark.parametrize("name", ["SCHEDULE_TOPIC_XXXX", "broker-0", " "])
async def test_topics_of_the_system_are_not_deleted(tmp_path, name):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(DeleteTopic(topic=name))
        assert answer.code == ResponseCode.INVALID_PARAMETER


@looped
async def test_forgetting_a_route_alone_deletes_no_message(tmp_path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"stays")
        assert (await client.ask(DeleteTopicInNamesrv(topic="orders"))).code == 0
        assert len((await client.ask(pulling("orders"))).messages()) == 1


@looped
async def test_topics_of_the_system_are_listed(tmp_path):
    async with running(tmp_path) as (_, client):
        await client.ask(creating())
        answer = await client.ask(GetSystemTopicListFromBroker())
        listed = bodies.decode(bodies.TopicList, answer.body).topic_list
        assert {"TBW102", "broker-0", "DefaultCluster"} <= set(listed)
        assert "orders" not in listed
