"""The tests' own client tells what became of a request, also where the node is gone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.remoting import LIMIT_S, connect, limit_s, looped
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


def test_the_loop_of_a_test_has_half_of_what_its_file_has_for_it():
    names = {"pytestmark": [pytest.mark.slow, pytest.mark.timeout(1200)]}
    exec("async def test(): pass", names)
    assert limit_s(names["test"]) == 600
    assert limit_s(test_the_loop_of_a_test_has_half_of_what_its_file_has_for_it) == (
        LIMIT_S
    )
