"""gRPC is served where that is wanted, and nowhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import grpc
import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import ConfigError
from ropeway.gateway.grpc.protocol import QueryRouteRequest
from ropeway.gateway.grpc.setup import messaging
from tests.gateway.grpc.thin import Thin
from tests.remoting import config, looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_node_that_is_not_told_to_serves_no_grpc(tmp_path: Path):
    async with App(config(tmp_path)) as app, messaging(app):
        client = Thin(app.server.listeners[0].advertised)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.call("QueryRoute", QueryRouteRequest())
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        await client.close()


@looped
async def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ropeway.gateway.grpc.messaging_service", None)
    async with App(config(tmp_path, grpc=True)) as app:
        with pytest.raises(ConfigError, match=r"ropeway\[grpc\]"):
            async with messaging(app):
                pass
