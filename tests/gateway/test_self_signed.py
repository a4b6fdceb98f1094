"""The certificate that a node makes itself for gRPC's clients."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from ropeway.gateway.app import App
from ropeway.gateway.grpc.protocol import Code, QueryRouteRequest, Resource
from ropeway.gateway.grpc.setup import messaging
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from tests.gateway.grpc.thin import Thin, create
from tests.remoting import config, connect, looped

if TYPE_CHECKING:
    from pathlib import Path

ROUTE = QueryRouteRequest(topic=Resource(name="orders"))


@pytest.mark.parametrize("server", ["ropeway", "grpcio"])
@looped
async def test_a_node_without_a_certificate_makes_itself_one(
    server: str, tmp_path: Path
):
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    shown = []
    # As RocketMQ's clients do unless told otherwise; and it is the same after a start.
    for _ in range(2):
        given = config(tmp_path / "data", grpc=True, grpc_server=server)
        async with App(given) as app, messaging(app):
            await create(app, "orders")
            listener = app.server.listeners[0]
            async with connect(listener, tls=unverified) as remoting:
                assert (await remoting.ask(GetAllTopicList())).code == 0
            file = tmp_path / "data" / "self-signed.pem"
            assert file.stat().st_mode & 0o777 == 0o600
            pem = file.read_text()
            shown.append(pem[pem.index("-----BEGIN CERT") :].encode())
            client = Thin(listener.advertised)
            await client.channel.close()
            client.channel = grpc.aio.secure_channel(
                listener.advertised,
                grpc.ssl_channel_credentials(shown[0]),
                options=[("grpc.ssl_target_name_override", "localhost")],
            )
            assert (await client.call("QueryRoute", ROUTE)).status.code == Code.OK
            await client.close()
    assert shown[0] == shown[1]


@looped
async def test_one_that_cannot_be_used_is_made_again(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir()
    # As a power cut may leave it.
    (data / "self-signed.pem").write_bytes(b"")
    async with App(config(data, grpc=True)) as app, messaging(app):
        assert app.certificates is not None
    assert "BEGIN CERTIFICATE" in (data / "self-signed.pem").read_text()
