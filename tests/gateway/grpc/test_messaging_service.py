"""The server: TLS and plain text on one port, errors without text, and its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import LimitsConfig, ListenerConfig, TlsConfig
from ropeway.gateway.grpc import methods
from ropeway.gateway.grpc.messages import CALL_BYTES
from ropeway.gateway.grpc.protocol import Code, QueryRouteRequest, Resource
from ropeway.gateway.grpc.setup import messaging
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from tests.gateway.grpc.thin import (
    Thin,
    consumer,
    consuming,
    create,
    producer,
    serving,
    sign,
)
from tests.gateway.test_tls import issue
from tests.guarded import ALICE, ROOT, acl_of, allow, populate
from tests.remoting import config, connect, looped, until

if TYPE_CHECKING:
    from pathlib import Path

BOTH = pytest.mark.parametrize("server", ["ropeway", "grpcio"])
"""What takes the calls."""
ROUTE = QueryRouteRequest(topic=Resource(name="orders"))


@BOTH
@looped
async def test_all_protocols_share_a_port_with_tls_and_without(
    server: str, tmp_path: Path
):
    pair = issue(tmp_path, "localhost")
    tls = TlsConfig(certificate=pair.certificate, key=pair.key)
    given = config(tmp_path / "data", grpc=True, grpc_server=server, tls=tls)
    async with App(given) as app, messaging(app):
        await create(app, "orders")
        listener = app.server.listeners[0]
        plain = Thin(listener.advertised)
        safe = Thin(listener.advertised)
        await safe.channel.close()
        credentials = grpc.ssl_channel_credentials(pair.certificate.read_bytes())
        options = [("grpc.ssl_target_name_override", "localhost")]
        safe.channel = grpc.aio.secure_channel(
            listener.advertised, credentials, options=options
        )
        for client in (plain, safe):
            assert (await client.call("QueryRoute", ROUTE)).status.code == Code.OK
            await client.close()
        async with connect(listener) as remoting:
            assert (await remoting.ask(GetAllTopicList())).code == 0
        await until(lambda: not app.server.http2.open)


@looped
async def test_where_tls_is_required_plain_text_is_refused(tmp_path: Path):
    pair = issue(tmp_path, "localhost")
    tls = TlsConfig(certificate=pair.certificate, key=pair.key, required=True)
    async with serving(tmp_path / "data", tls=tls) as (_, client):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.call("QueryRoute", ROUTE)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


@BOTH
@looped
async def test_a_fault_of_ours_is_told_without_its_text(
    server: str, tmp_path: Path, monkeypatch
):
    async def fail(*_):
        raise RuntimeError("secret")

    async with serving(tmp_path, grpc_server=server) as (_, client):
        monkeypatch.setitem(methods.METHODS, "QueryRoute", fail)
        answer = await client.call("QueryRoute", ROUTE)
        assert answer.status.code == Code.INTERNAL_SERVER_ERROR
        assert "secret" not in answer.status.message


@BOTH
@looped
async def test_metadata_that_are_too_long_are_refused(server: str, tmp_path: Path):
    async with serving(tmp_path, grpc_server=server) as (_, client):
        client.metadata.append(("x-mq-namespace", "x" * 100_000))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.call("QueryRoute", ROUTE)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@BOTH
@looped
async def test_clients_are_told_to_connect_again_when_a_node_ends(
    server: str, tmp_path: Path
):
    given = config(tmp_path, grpc=True, grpc_server=server)
    async with App(given) as app:
        async with messaging(app):
            client = Thin(app.server.listeners[0].advertised)
            stream, _ = await client.telemetry(producer("orders"))
        told = await stream.read()
        assert told.HasField("reconnect_endpoints_command")
        assert await stream.code() == grpc.StatusCode.OK
        await client.close()


@BOTH
@looped
async def test_strangers_bytes_end_their_connection_alone(server: str, tmp_path: Path):
    async with serving(tmp_path, grpc_server=server) as (app, client):
        stream, _ = await client.telemetry(consumer("orders"))
        host, _, port = app.server.listeners[0].advertised.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + b"\0" * 1000)
        # It may end with a reset, too.
        await asyncio.gather(reader.read(), return_exceptions=True)
        writer.close()
        answer = await client.call("QueryRoute", ROUTE)
        assert answer.status.code == Code.TOPIC_NOT_FOUND
        stream.cancel()


@looped
async def test_each_listener_serves(tmp_path: Path):
    listeners = (ListenerConfig(port=0), ListenerConfig(port=0))
    async with serving(tmp_path, listeners=listeners) as (app, _):
        for listener in app.server.listeners:
            thin = Thin(listener.advertised)
            answer = await thin.call("QueryRoute", ROUTE)
            assert answer.status.code == Code.TOPIC_NOT_FOUND
            await thin.close()


@BOTH
@looped
async def test_one_connection_has_so_many_calls_at_a_time(server: str, tmp_path: Path):
    limits = LimitsConfig(requests_in_flight=3)
    async with consuming(tmp_path, limits=limits, grpc_server=server) as (app, client):
        waiting = [
            asyncio.create_task(client.receive("orders", wait_s=20)) for _ in range(2)
        ]
        await until(lambda: app.node.pop.polling.count(("readers", "orders"), -1) == 2)
        # With its stream that makes three.
        late = asyncio.create_task(client.call("QueryRoute", ROUTE))
        other = Thin(app.server.listeners[0].advertised, "other")
        assert (await other.call("QueryRoute", ROUTE)).status.code == Code.OK
        assert not late.done()
        # One message for each: who is first takes all that there is.
        await other.send("orders")
        assert (await late).status.code == Code.OK
        await until(lambda: any(one.done() for one in waiting))
        await other.send("orders")
        await asyncio.gather(*waiting)
        await other.close()


@BOTH
@looped
async def test_so_many_calls_of_a_client_wait_and_no_more(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each took memory, and there was no limit to them."""
    goes_on = asyncio.Event()
    limits = LimitsConfig(waiting_bytes=64 * 1024)
    acl = acl_of(tmp_path)
    given = {"acl": acl, "limits": limits, "grpc_server": server}
    async with serving(tmp_path, **given) as (app, _):
        route = methods.METHODS["QueryRoute"]

        async def later(request: Any, call: Any) -> Any:
            await goes_on.wait()
            return await route(request, call)

        monkeypatch.setitem(methods.METHODS, "QueryRoute", later)
        most = limits.waiting_bytes // (CALL_BYTES + ROUTE.ByteSize()) + 1
        await populate(app, allow("Topic:orders", "Pub"))
        await create(app, "orders")
        address = app.server.listeners[0].advertised
        alice, again, root = (
            sign(Thin(address, name), user)
            for name, user in (("alice", ALICE), ("again", ALICE), ("root", ROOT))
        )
        waits = [
            asyncio.create_task(alice.call("QueryRoute", ROUTE)) for _ in range(40)
        ]
        await until(lambda: sum(one.done() for one in waits) == 40 - most)
        over = [asyncio.create_task(again.call("QueryRoute", ROUTE)) for _ in range(2)]
        await until(lambda: all(one.done() for one in over) or goes_on.is_set())
        for one in [*over, *(one for one in waits if one.done())]:
            refused = (await one).status
            assert refused.code == Code.TOO_MANY_REQUESTS
            assert "bytes of requests wait; allowed: 65536" in refused.message
        # Who has little waiting is not kept out.
        other = asyncio.create_task(root.call("QueryRoute", ROUTE))
        await until(lambda: app.node.fair_queue._keeping == 2)
        goes_on.set()
        assert (await other).status.code == Code.OK
        assert [(await one).status.code for one in waits].count(Code.OK) == most
        assert app.node.fair_queue.waiting_bytes == 0
        for one in (alice, again, root):
            await one.close()
