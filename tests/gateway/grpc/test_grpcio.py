"""grpcio's server, where it is wanted: behind a pipe, and with the same limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.pipes import Pipes
from tests.gateway.grpc.thin import consumer, consuming, serving
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_messages_go_both_ways_through_the_pipe(tmp_path: Path):
    async with consuming(tmp_path, grpc_server="grpcio") as (app, client):
        assert isinstance(app.server.http2, Pipes)
        assert (await client.send("orders")).status.code == Code.OK
        (found,) = await client.receive("orders")
        assert found.body == b"hello"


@looped
async def test_a_stream_that_is_refused_says_why(tmp_path: Path):
    async with serving(tmp_path, grpc_server="grpcio") as (_, client):
        code, details = await client.refused(consumer("not a name"))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert "ILLEGAL_TOPIC" in details


@looped
async def test_longer_requests_than_allowed_are_refused(tmp_path: Path):
    async with serving(tmp_path, grpc_server="grpcio") as (_, client):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.send("orders", bytes(17 << 20))
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
