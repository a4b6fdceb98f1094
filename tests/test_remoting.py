"""The tests' own client tells what became of a request, also where the node is gone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.remoting import connect, looped
from tests.requests import sending


@looped
async def test_a_request_behind_the_end_of_a_connection_fails_at_once():
    server = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0
    )
    host, port = server.sockets[0].getsockname()
    async with server, connect(SimpleNamespace(host=host, port=port)) as client:
        await client.closed()
        with pytest.raises(ConnectionResetError, match="the node closed"):
            await client.ask(sending("orders"), b"hello")
