"""The name server: routes, lists of names, and small settings."""

import msgspec
import pytest

from ropeway.gateway.config import ListenerConfig, TopicsConfig
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic, DeleteTopic
from ropeway.gateway.wire.commands.namesrv import (
    DeleteKvConfig,
    GetAllTopicList,
    GetBrokerClusterInfo,
    GetKvConfig,
    GetRouteInfo,
    KvValue,
    PutKvConfig,
)
from ropeway.gateway.wire.commands.namesrv_admin import (
    GetKvList,
    GetSystemTopicListFromNamesrv,
    GetTopicsByCluster,
)
from ropeway.routing import embedded
from ropeway.routing.api import Broker, Group
from tests.remoting import Remoting, beat, connect, looped, running, two_running
from tests.requests import sending


@looped
async def test_a_route_names_the_address_that_its_listener_advertises(tmp_path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"one")
        answer = await client.ask(GetRouteInfo(topic="orders"))
        route = bodies.decode(bodies.TopicRoute, answer.body)
        (broker,) = route.broker_datas
        assert broker.broker_addrs == {"0": app.server.listeners[0].advertised}
        (queues,) = route.queue_datas
        assert (queues.broker_name, queues.perm) == ("broker-0", 6)
        info = await client.ask(GetBrokerClusterInfo())
        cluster = bodies.decode(bodies.ClusterInfo, info.body)
        assert cluster.cluster_addr_table == {"DefaultCluster": ["broker-0"]}
        assert cluster.broker_addr_table == {"broker-0": broker}


@looped
async def test_a_topic_that_is_not_there_has_no_route(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(GetRouteInfo(topic="orders"))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert answer.remark.startswith(
            "No topic route info in name server for the topic: orders"
        )


@looped
async def test_a_retry_topic_has_a_route_before_its_group_is_there(tmp_path):
    async with two_running(tmp_path) as nodes:
        (app, client), _ = nodes
        both = {"broker-0": 1, "broker-1": 1}
        assert await found(client, "%RETRY%new") == both
        assert await found(client, "%RETRY%") == {}
        assert await found(client, "%DLQ%new") == {}
        assert "%RETRY%new" not in app.node.routes.topics
        assert app.node.groups.get("new") is None
        await beat(client, "me", "new")
        assert "%RETRY%new" in app.node.routes.topics


@looped
async def test_a_group_that_is_not_made_by_itself_has_no_retry_topic(tmp_path):
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (app, client):
        assert await found(client, "%RETRY%g") == {}
        await app.node.groups.put(Group(name="g", retry_queue_nums=3))
        assert await found(client, "%RETRY%g") == {"broker-0": 3}


@looped
async def test_topics_are_listed_for_the_cluster_that_has_them(tmp_path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"one")

        async def listed(header) -> list[str]:
            body = (await client.ask(header)).body
            return bodies.decode(bodies.TopicList, body).topic_list

        every = sorted(app.node.routes.topics)
        assert "orders" in every
        assert await listed(GetAllTopicList()) == every
        assert await listed(GetTopicsByCluster(cluster="DefaultCluster")) == every
        assert await listed(GetTopicsByCluster(cluster="other")) == []


@looped
async def test_topics_named_like_cluster_and_broker_are_listed_with_an_address(
    tmp_path,
):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(GetSystemTopicListFromNamesrv())
        found = bodies.decode(bodies.TopicList, answer.body)
        assert found.topic_list == ["DefaultCluster", "broker-0"]
        assert found.broker_addr == app.server.listeners[0].advertised


@looped
async def test_settings_are_set_read_listed_and_removed(tmp_path):
    async with running(tmp_path) as (_, client):
        for key, value in (("orders", "broker-0:4"), ("bills", "broker-0:2")):
            setting = PutKvConfig(namespace="ORDER_TOPIC_CONFIG", key=key, value=value)
            assert (await client.ask(setting)).code == 0
        one = GetKvConfig(namespace="ORDER_TOPIC_CONFIG", key="orders")
        assert (await client.ask(one)).read(KvValue).value == "broker-0:4"
        every = await client.ask(GetKvList(namespace="ORDER_TOPIC_CONFIG"))
        assert msgspec.json.decode(every.body) == {
            "table": {"orders": "broker-0:4", "bills": "broker-0:2"}
        }
        gone = DeleteKvConfig(namespace="ORDER_TOPIC_CONFIG", key="orders")
        assert (await client.ask(gone)).code == 0
        assert (await client.ask(one)).code == ResponseCode.QUERY_NOT_FOUND


@looped
async def test_an_ordered_topics_queues_are_in_its_route(tmp_path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"one")
        await client.ask(
            PutKvConfig(
                namespace="ORDER_TOPIC_CONFIG", key="orders", value="broker-0:4"
            )
        )
        answer = await client.ask(GetRouteInfo(topic="orders"))
        route = bodies.decode(bodies.TopicRoute, answer.body)
        assert route.order_topic_conf == "broker-0:4"


@looped
@pytest.mark.parametrize(
    "header",
    [GetKvConfig(namespace="none", key="none"), GetKvList(namespace="none")],
    ids=["one", "all"],
)
async def test_settings_that_are_not_there_are_said_to_be_so(tmp_path, header):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(header)
        assert answer.code == ResponseCode.QUERY_NOT_FOUND
        assert answer.remark.startswith("No config item, Namespace: none")


async def found(client: Remoting, topic: str) -> dict[str, int]:
    """The brokers that a node tells of a topic, and how many queues each has."""
    answer = await client.ask(GetRouteInfo(topic=topic))
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return {}
    queues = bodies.decode(bodies.TopicRoute, answer.body).queue_datas
    return {one.broker_name: one.write_queue_nums for one in queues}


@looped
async def test_what_one_node_changes_all_tell_of_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)
    both = {"broker-0", "broker-1"}
    async with two_running(tmp_path) as nodes:
        clients = [client for _, client in nodes]
        create = CreateTopic(
            topic="orders",
            default_topic="TBW102",
            read_queue_nums=2,
            write_queue_nums=2,
            perm=6,
        )
        setting = PutKvConfig(namespace="n", key="k", value="v")
        for client in clients:
            info = await client.ask(GetBrokerClusterInfo())
            brokers = bodies.decode(bodies.ClusterInfo, info.body).broker_addr_table
            assert brokers.keys() == both
            # Where administrators and producers of new topics ask.
            for template in ("DefaultCluster", "TBW102"):
                assert (await found(client, template)).keys() == both
        expected: dict[str, int] = {}
        for (app, client), other in zip(nodes, reversed(clients), strict=True):
            assert (await client.ask(create)).code == ResponseCode.SUCCESS
            expected[app.node.config.broker] = 2
            assert await found(other, "orders") == expected
        for (app, client), other in zip(nodes, reversed(clients), strict=True):
            await client.ask(DeleteTopic(topic="orders"))
            del expected[app.node.config.broker]
            assert await found(other, "orders") == expected
        await clients[0].ask(setting)
        answer = await clients[1].ask(GetKvConfig(namespace="n", key="k"))
        assert answer.read(KvValue).value == "v"


@looped
async def test_a_producer_that_asks_any_node_gets_no_queue_that_is_not_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)
    async with two_running(tmp_path) as ((_, first), (_, second)):
        await first.ask(sending("orders", default_topic_queue_nums=2), b"one")
        assert await found(second, "orders") == {"broker-0": 2}
        made = await second.ask(sending("orders", default_topic_queue_nums=1), b"two")
        assert made.code == ResponseCode.SUCCESS
        assert await found(first, "orders") == {"broker-0": 2, "broker-1": 2}


@looped
async def test_a_broker_with_fewer_listeners_is_told_by_its_last(tmp_path):
    listeners = (ListenerConfig(port=0), ListenerConfig(port=0))
    async with running(tmp_path, listeners=listeners) as (app, _):
        other = Broker(
            name="broker-9",
            node="n",
            cluster="DefaultCluster",
            addresses=("127.0.0.1:1",),
            pid=1,
        )
        await app.node.routes.put_broker(other)
        async with connect(app.server.listeners[1]) as client:
            info = await client.ask(GetBrokerClusterInfo())
        cluster = bodies.decode(bodies.ClusterInfo, info.body)
        told = {
            name: one.broker_addrs for name, one in cluster.broker_addr_table.items()
        }
        assert told == {
            "broker-0": {"0": app.server.listeners[1].advertised},
            "broker-9": {"0": "127.0.0.1:1"},
        }


@looped
async def test_an_address_that_is_announced_no_more_gets_the_others_first(tmp_path):
    async with running(tmp_path) as (app, client):
        known = app.node.routes.brokers["broker-0"][0]
        other = msgspec.structs.replace(
            known, name="broker-9", addresses=("127.0.0.1:1", "127.0.0.1:2")
        )
        await app.node.routes.put_broker(other)
        await app.node.routes.put_broker(
            msgspec.structs.replace(known, addresses=("127.0.0.1:3", "127.0.0.1:4"))
        )
        info = await client.ask(GetBrokerClusterInfo())
        cluster = bodies.decode(bodies.ClusterInfo, info.body)
        told = {
            name: one.broker_addrs for name, one in cluster.broker_addr_table.items()
        }
        assert told == {
            "broker-0": {"0": app.server.listeners[0].advertised},
            "broker-9": {"0": "127.0.0.1:1"},
        }


@looped
async def test_nobody_moves_the_generation_at_which_topics_begin(tmp_path):
    """Set back, a deleted topic's name in the log would be used again."""
    async with running(tmp_path) as (app, client):
        setting = PutKvConfig(
            namespace="ROPEWAY_DELETIONS", key="generation", value="none"
        )
        answer = await client.ask(setting)
        assert answer.code == ResponseCode.NO_PERMISSION
        assert "ROPEWAY_DELETIONS is for nodes alone" in answer.remark
        # By hand, past the nodes.
        await app.node.routes.put_setting("ROPEWAY_DELETIONS", "generation", "none")
        refused = await client.ask(sending("orders"), b"x")
        assert refused.code != 0
        assert "generation of ROPEWAY_DELETIONS is 'none'; allowed:" in refused.remark
