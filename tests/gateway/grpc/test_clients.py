"""Clients' coming and going: what the node knows of them, and what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from ropeway.gateway.grpc import sessions
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

    import pytest


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
async def test_a_client_may_stop_after_its_stream_has_ended(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        stops = NotifyClientTerminationRequest()
        for _ in range(2):
            stream, _ = await client.telemetry(producer("orders"))
            stream.cancel()
            await until(lambda: not app.node.clients.producer_groups())
        stopped = await client.call("NotifyClientTermination", stops)
        assert stopped.status.code == Code.OK
        again = await client.call("NotifyClientTermination", stops)
        assert again.status.code == Code.UNRECOGNIZED_CLIENT_TYPE


@looped
async def test_only_the_newest_clients_are_kept_that_may_yet_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sessions, "_ENDED", 2)
    async with serving(tmp_path) as (app, _):
        address = app.server.listeners[0].advertised
        codes = []
        clients = [Thin(address, f"client-{number}") for number in range(3)]
        for client in clients:
            stream, _ = await client.telemetry(producer("orders"))
            stream.cancel()
            await until(lambda: not app.node.clients.producer_groups())
        for client in clients:
            stops = NotifyClientTerminationRequest()
            answer = await client.call("NotifyClientTermination", stops)
            codes.append(answer.status.code)
            await client.close()
        assert codes == [Code.UNRECOGNIZED_CLIENT_TYPE, Code.OK, Code.OK]


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
