"""The name server: routes, lists of names, and small settings."""

import msgspec
import pytest

from gateway.wire import bodies
from gateway.wire.codes import ResponseCode
from gateway.wire.commands.namesrv import (
    DeleteKvConfig,
    GetAllTopicList,
    GetBrokerClusterInfo,
    GetKvConfig,
    GetRouteInfo,
    KvValue,
    PutKvConfig,
)
from gateway.wire.commands.namesrv_admin import (
    GetKvList,
    GetSystemTopicListFromNamesrv,
    GetTopicsByCluster,
)
from tests.remoting import looped, running, sending


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
