"""Where topics live."""

import pytest

from ropeway.client import (
    ClientConfig,
    ConnectionFailedError,
    Message,
    MessageQueue,
    Producer,
    TopicNotFoundError,
)
from ropeway.client.connections import Connections
from ropeway.client.routes import DEFAULT_TOPIC, Route, Routes, make_route
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENCE, PRODUCER, scenario, until


def queue_data(broker: str, perm: int, read: int, write: int) -> bodies.QueueData:
    return bodies.QueueData(
        broker_name=broker, perm=perm, read_queue_nums=read, write_queue_nums=write
    )


def broker_data(name: str, *ids: str) -> bodies.BrokerData:
    addresses = {id_: f"127.0.0.1:{id_}" for id_ in ids}
    return bodies.BrokerData(broker_addrs=addresses, broker_name=name, cluster="c")


def test_a_route_has_what_may_be_read_and_what_may_be_written():
    route = make_route(
        "t",
        bodies.TopicRoute(
            broker_datas=[
                broker_data("b", "0"),
                broker_data("a", "0"),
                broker_data("s", "1"),
            ],
            queue_datas=[
                queue_data("b", 6, 1, 1),
                queue_data("a", 4, 2, 2),
                queue_data("s", 6, 1, 1),
            ],
        ),
    )
    assert [(q.broker_name, q.queue_id) for q in route.read_queues] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("s", 0),
    ]
    # "a" may only be read, and "s" has no master.
    assert route.write_queues == (MessageQueue("t", "b", 0),)
    assert route.masterless == ("s",)
    assert route.writable("t") == route.write_queues


def test_a_route_without_masters_is_an_outage_and_one_without_queues_is_not():
    def route(perm: int, *ids: str) -> Route:
        data = bodies.TopicRoute(
            broker_datas=[broker_data("b", *ids)],
            queue_datas=[queue_data("b", perm, 1, 1)],
        )
        return make_route("t", data)

    with pytest.raises(ConnectionFailedError, match="b: has no master"):
        route(6, "1").writable("t")
    with pytest.raises(TopicNotFoundError, match="topic 't' has no queue to write to"):
        route(4, "0").writable("t")


@scenario
async def test_another_name_server_is_asked_when_one_is_down():
    async with FakeServer() as down:
        address = down.address
    async with FakeServer() as server:
        for _ in range(4):  # name servers are shuffled
            connections = Connections(
                ClientConfig(**PATIENCE, reconnect_min_s=0.001), lambda _: None
            )
            routes = Routes(f"{address}; {server.address}", connections)
            assert len((await routes.get("t")).read_queues) == 4
            await connections.close()


@scenario
async def test_without_any_name_server_the_last_failure_is_raised():
    connections = Connections(ClientConfig(), lambda _: None)
    with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1:[12]"):
        await Routes("127.0.0.1:1;127.0.0.1:2", connections).get("t")
    await connections.close()


def test_a_name_server_must_be_named():
    with pytest.raises(ValueError, match="name_server is empty"):
        Routes(" ; ", Connections(ClientConfig(), lambda _: None))


@scenario
async def test_a_new_topic_borrows_the_default_topics_route_until_it_has_one():
    created = []
    async with FakeServer(queues=8) as server:

        def route(request):
            if request.fields["topic"] == DEFAULT_TOPIC or created:
                return server.route(8)
            return Answer(ResponseCode.TOPIC_NOT_EXIST)

        server.behaviours[RequestCode.GET_ROUTEINFO_BY_TOPIC] = route
        async with Producer(server.address, "g", config=PRODUCER) as sender:
            assert len(await sender.queues("t")) == 4
            await sender.send(Message("t", b"x"))
            (request,) = server.asked(RequestCode.SEND_MESSAGE_V2)
            assert (request.fields["c"], request.fields["d"]) == (DEFAULT_TOPIC, "4")
            created.append("t")
            asked = len(server.asked(RequestCode.GET_ROUTEINFO_BY_TOPIC))
            await until(
                lambda: (
                    len(server.asked(RequestCode.GET_ROUTEINFO_BY_TOPIC)) > asked + 1
                )
            )
            assert len(await sender.queues("t")) == 8


@scenario
async def test_a_topic_that_is_not_created_is_not_found():
    async with FakeServer() as server:
        server.behaviours[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda _: Answer(
            ResponseCode.TOPIC_NOT_EXIST
        )
        async with Producer(server.address, "g", config=PRODUCER) as sender:
            with pytest.raises(TopicNotFoundError, match="topic 't' does not exist"):
                await sender.send(Message("t", b"x"))
