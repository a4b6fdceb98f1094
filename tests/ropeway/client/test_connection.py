"""One connection: answers, silence, and a server's own requests."""

import asyncio
from collections.abc import Awaitable

import pytest

from ropeway.client import ConnectionFailedError, RequestTimeoutError
from ropeway.client.connection import SILENCE_S, connect
from ropeway.client.connections import Connections
from ropeway.client.routes import Routes
from ropeway.gateway.app import App
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    RequestCode,
    ResponseCode,
)
from ropeway.gateway.wire.commands.clients import GetConsumerListByGroup, HeartBeat
from tests.cycles import none_left
from tests.remoting import config, looped
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENT, scenario, until

CONFIG = PATIENT


@scenario
async def test_answers_find_their_requests():
    async with FakeServer() as server:
        server.behaviours[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = lambda request: (
            Answer(body=request.fields["consumerGroup"].encode())
        )
        connection = await connect(server.address, CONFIG, {})
        answers = await asyncio.gather(
            *(
                connection.request(
                    GetConsumerListByGroup(consumer_group=str(n)), timeout_s=60
                )
                for n in range(50)
            )
        )
        assert [answer.body for answer in answers] == [
            str(n).encode() for n in range(50)
        ]
        await connection.close()


@looped
async def test_it_works_on_uvloop(tmp_path):
    async with App(config(tmp_path)) as app:
        connection = await connect(app.server.listeners[0].advertised, CONFIG, {})
        request = GetConsumerListByGroup(consumer_group="readers")
        answer = await connection.request(request, timeout_s=60)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        await connection.close()


@scenario
async def test_silence_ends_in_a_time_out_that_names_the_request():
    async with FakeServer() as server:
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: None
        connection = await connect(server.address, CONFIG, {})
        with pytest.raises(
            RequestTimeoutError, match=r"no answer to HEART_BEAT within 0\.1 s"
        ):
            await connection.request(HeartBeat(), timeout_s=0.1)
        assert connection.is_open
        await connection.close()


@scenario
async def test_a_peer_that_is_silent_for_long_is_given_up():
    async with FakeServer() as server:
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: None
        connection = await connect(server.address, CONFIG, {})
        with pytest.raises(RequestTimeoutError):
            await connection.request(HeartBeat(), timeout_s=SILENCE_S)
        assert not connection.is_open


@scenario
async def test_a_lost_connection_fails_what_waits():
    async with FakeServer() as server:
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: None
        connection = await connect(server.address, CONFIG, {})
        request = asyncio.create_task(connection.request(HeartBeat(), timeout_s=60))
        await until(lambda: server.asked(RequestCode.HEART_BEAT) != [])
        server.hang_up()
        with pytest.raises(ConnectionFailedError, match="connection lost"):
            await request
        assert not connection.is_open
        with pytest.raises(ConnectionFailedError):
            await connection.request(HeartBeat(), timeout_s=60)


async def _fails(asking: Awaitable[object]) -> bool:
    try:
        await asking
    except ConnectionFailedError:
        return True
    return False


@scenario
async def test_what_failed_leaves_nothing_to_pythons_collector():
    """Clients of a node in other threads have their errors collected there, too."""
    async with FakeServer() as server, none_left():
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: None
        connection = await connect(server.address, CONFIG, {})
        request = asyncio.create_task(
            _fails(connection.request(HeartBeat(), timeout_s=60))
        )
        await until(lambda: server.asked(RequestCode.HEART_BEAT) != [])
        server.hang_up()
        assert await request
        nobody = Routes("127.0.0.1:1;127.0.0.1:2", Connections(CONFIG, lambda _: None))
        assert await _fails(nobody.ask(HeartBeat()))
        # What ended is let go of, as whoever looks for cycles has none of it then.
        del request, connection, nobody


@scenario
async def test_an_unknown_request_of_the_server_is_answered_so():
    async with FakeServer() as server:
        connection = await connect(server.address, CONFIG, {})
        await connection.request(HeartBeat(), timeout_s=60)
        server.push(RequestCode.GET_CONSUMER_RUNNING_INFO, opaque=77)
        await until(lambda: len(server.requests) == 2)
        answer = server.requests[1]
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert answer.flag & RESPONSE_FLAG
        await connection.close()


@scenario
async def test_a_handler_gets_a_servers_request():
    called = asyncio.Event()
    handlers = {RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: lambda *_: called.set()}
    async with FakeServer() as server:
        connection = await connect(server.address, CONFIG, handlers)
        await connection.request(HeartBeat(), timeout_s=60)
        server.push(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 1, ONE_WAY_FLAG)
        await called.wait()
        await connection.close()


@scenario
async def test_a_stream_that_is_no_protocol_closes_the_connection(caplog):
    async with FakeServer() as server:
        server.behaviours[RequestCode.HEART_BEAT] = lambda _: server.transports[
            0
        ].write(b"\xff" * 9)
        connection = await connect(server.address, CONFIG, {})
        with pytest.raises(ConnectionFailedError, match="the stream cannot be read"):
            await connection.request(HeartBeat(), timeout_s=60)
    # Who asked has the error; it is not said twice.
    assert caplog.text == ""


@scenario
async def test_nobody_listening_is_said_with_the_address():
    async with FakeServer() as server:
        address = server.address
    with pytest.raises(ConnectionFailedError, match=address):
        await connect(address, CONFIG, {})
