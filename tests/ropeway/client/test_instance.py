"""What every client stands on: heartbeats, and its farewell."""

import asyncio

import msgspec
import pytest

from ropeway.client import (
    ClientClosedError,
    Message,
    Producer,
    ProducerConfig,
    PushConsumer,
)
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENCE,
    PRODUCER,
    SENDING,
    Inbox,
    scenario,
    until,
)


@scenario
async def test_a_producer_is_announced_and_unregistered():
    async with FakeServer() as server:
        async with Producer(server.address, "shop", config=PRODUCER) as producer:
            await producer.send(Message("t", b"x"))
            await until(lambda: len(server.asked(RequestCode.HEART_BEAT)) > 1)
        beat = server.asked(RequestCode.HEART_BEAT)[0]
        data = bodies.decode(bodies.HeartbeatData, beat.body)
        assert data.client_id == producer.client_id
        assert [p.group_name for p in data.producer_data_set] == ["shop"]
        (farewell,) = server.asked(RequestCode.UNREGISTER_CLIENT)
        assert farewell.fields == {"clientID": data.client_id, "producerGroup": "shop"}


@scenario
async def test_a_consumer_is_announced_with_its_subscriptions():
    async with FakeServer() as server:
        consumer = PushConsumer(server.address, "g", config=CONSUMER)
        consumer.subscribe("t", "A || B", Inbox())
        async with consumer:
            await until(lambda: server.asked(RequestCode.HEART_BEAT) != [])
        beat = server.asked(RequestCode.HEART_BEAT)[0]
        (data,) = bodies.decode(bodies.HeartbeatData, beat.body).consumer_data_set
        assert data.is_push
        assert not data.is_broadcasting
        subscriptions = {s.topic: s.tags_set for s in data.subscription_data_set}
        assert subscriptions == {"t": ("A", "B"), "%RETRY%g": ()}


@scenario
async def test_a_broker_that_was_restarted_hears_from_us_at_once():
    config = ProducerConfig(**SENDING, heartbeat_interval_s=1000)
    async with (
        FakeServer() as server,
        Producer(server.address, "g", config=config) as sender,
    ):
        for round_ in range(1, 4):
            await sender.send(Message("t", b"x"))
            await until(lambda n=round_: len(server.asked(RequestCode.HEART_BEAT)) >= n)
            server.hang_up()
            peer = sender._instance.connections._peers[server.address]
            await until(lambda one=peer.connection: not one.is_open)


@scenario
async def test_farewell_to_a_silent_broker_takes_no_longer_than_allowed():
    config = msgspec.structs.replace(PRODUCER, close_timeout_s=0.1)
    async with FakeServer() as server:
        server.behaviours[RequestCode.UNREGISTER_CLIENT] = lambda _: None
        sender = Producer(server.address, "g", config=config)
        await sender.start()
        await sender.send(Message("t", b"x"))
        async with asyncio.timeout(PATIENCE["request_timeout_s"] / 2):
            await sender.close()


@scenario
async def test_a_client_starts_once():
    sender = Producer("127.0.0.1:1", "g")
    async with sender:
        with pytest.raises(ClientClosedError, match="starts once"):
            await sender.start()


@scenario
async def test_a_broken_route_is_an_error_of_the_server():
    from ropeway.client import BadResponseError

    async with FakeServer() as server, Producer(server.address, "g") as sender:
        server.behaviours[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda _: Answer(
            body=b"{"
        )
        with pytest.raises(BadResponseError, match="TopicRoute"):
            await sender.send(Message("t", b"x"))
