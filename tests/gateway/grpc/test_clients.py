"""Clients' coming and going: what the node knows of them, and what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from ropeway.gateway.grpc.protocol import (
    ClientType,
    Code,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
)
from ropeway.gateway.wire.commands.admin import GetConsumerConnectionList
from tests.gateway.grpc.thin import Thin, consumer, create, producer, serving
from tests.remoting import connect, looped, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_consumer_is_known_until_it_says_goodbye(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders")
        clients = app.node.clients
        stream, answer = await client.telemetry(consumer("orders"))
        assert answer.status.code == Code.OK
        group = clients.consumer_group("readers")
        (member,) = group.members.values()
        assert (member.client_id, member.language) == ("thin", "PYTHON")
        assert group.subscriptions.keys() == {"orders"}
        async with connect(app.server.listeners[0]) as remoting:
            asked = GetConsumerConnectionList(consumer_group="readers")
            seen = await remoting.ask(asked)
            assert b'"clientId":"thin"' in seen.body
        beat = await client.call("Heartbeat", HeartbeatRequest())
        assert beat.status.code == Code.OK
        bye = await client.call(
            "NotifyClientTermination", NotifyClientTerminationRequest()
        )
        assert bye.status.code == Code.OK
        await until(lambda: clients.consumer_group("readers") is None)
        await stream.done_writing()
        assert await stream.code() == grpc.StatusCode.OK


@looped
async def test_a_client_whose_stream_ends_is_gone(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        stream, _ = await client.telemetry(producer("orders", "others"))
        assert app.node.clients.producer_groups() == ["orders", "others"]
        stream.cancel()
        await until(lambda: not app.node.clients.producer_groups())


@looped
async def test_settings_of_no_client_end_the_stream(tmp_path: Path):
    async with serving(tmp_path) as (_, client):
        odd = producer("orders")
        odd.client_type = ClientType.PUSH_CONSUMER
        bad_topic = producer("a b")
        bad_group = consumer("orders", "a/b")
        for wanted, name in [
            (odd, "UNRECOGNIZED_CLIENT_TYPE"),
            (bad_topic, "ILLEGAL_TOPIC"),
            (bad_group, "ILLEGAL_CONSUMER_GROUP"),
        ]:
            code, said = await client.refused(wanted)
            assert code == grpc.StatusCode.INVALID_ARGUMENT
            assert said.startswith(name)


@looped
async def test_clients_with_one_id_do_not_take_each_others_place(tmp_path: Path):
    async with serving(tmp_path) as (app, first):
        await create(app, "orders")
        await create(app, "others")
        second = Thin(app.server.listeners[0].advertised)
        one, _ = await first.telemetry(consumer("orders", "readers"))
        two, _ = await second.telemetry(consumer("others", "writers"))
        two.cancel()
        await until(lambda: app.node.clients.consumer_group("writers") is None)
        assert app.node.clients.consumer_group("readers") is not None
        beat = await first.call("Heartbeat", HeartbeatRequest())
        assert beat.status.code == Code.OK
        one.cancel()
        await second.close()
