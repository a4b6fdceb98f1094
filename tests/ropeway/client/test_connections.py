"""All connections of a client."""

import asyncio

import pytest

from ropeway.client import (
    ClientClosedError,
    ClientConfig,
    ConnectionFailedError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.client.connections import Connections
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import HeartBeat
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENCE, scenario

CONFIG = ClientConfig(**PATIENCE, reconnect_min_s=0.05)


@scenario
async def test_requests_to_one_address_share_a_connection():
    opened: list[str] = []
    connections = Connections(CONFIG, opened.append)
    async with FakeServer() as server:
        await asyncio.gather(
            *(connections.request(server.address, HeartBeat()) for _ in range(20))
        )
        assert opened == [server.address]
        await connections.close()


@scenario
async def test_a_lost_connection_is_opened_anew():
    opened: list[str] = []
    connections = Connections(CONFIG, opened.append)
    async with FakeServer() as server:
        await connections.request(server.address, HeartBeat())
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: None
        with pytest.raises(RequestTimeoutError):
            await connections.request(server.address, HeartBeat(), timeout_s=0.1)
        del server.behaviours[RequestCode.HEART_BEAT]
        request = asyncio.create_task(connections.request(server.address, HeartBeat()))
        server.hang_up()
        with pytest.raises(ConnectionFailedError):
            await request
        await connections.request(server.address, HeartBeat())
        assert opened == [server.address] * 2
        await connections.close()


@scenario
async def test_connecting_backs_off():
    async with FakeServer() as server:
        address = server.address
    connections = Connections(CONFIG, lambda _: None)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(4):
        with pytest.raises(ConnectionFailedError):
            await connections.request(address, HeartBeat())
    assert loop.time() - began >= 0.05 + 0.1 + 0.2
    await connections.close()


@scenario
async def test_who_waits_for_the_same_connection_shares_its_failure():
    async with FakeServer() as server:
        address = server.address
    connections = Connections(CONFIG, lambda _: None)
    loop = asyncio.get_running_loop()
    began = loop.time()
    outcomes = await asyncio.gather(
        *(connections.request(address, HeartBeat()) for _ in range(50)),
        return_exceptions=True,
    )
    assert {type(outcome) for outcome in outcomes} == {ConnectionFailedError}
    # Each on its own would wait for longer than the one before, up to 2 s.
    assert loop.time() - began < 60
    await connections.close()


@scenario
async def test_an_answer_that_is_an_error_says_who_and_what():
    async with FakeServer() as server:
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: Answer(
            ResponseCode.SYSTEM_BUSY, remark="too busy"
        )
        connections = Connections(CONFIG, lambda _: None)
        with pytest.raises(ResponseError, match="SYSTEM_BUSY: too busy") as caught:
            await connections.request(server.address, HeartBeat())
        assert caught.value.address == server.address
        assert caught.value.remark == "too busy"
        await connections.close()


@scenario
async def test_a_closed_client_asks_nobody():
    connections = Connections(CONFIG, lambda _: None)
    await connections.close()
    with pytest.raises(ClientClosedError):
        await connections.request("127.0.0.1:1", HeartBeat())
