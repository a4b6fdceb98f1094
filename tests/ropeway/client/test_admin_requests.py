"""Asking brokers and name servers on an administrator's behalf."""

import asyncio

import pytest

from ropeway.client import Admin, ClientConfig, ConnectionFailedError
from ropeway.client.errors import BrokerNotFoundError, RequestTimeoutError
from ropeway.gateway.wire.codes import RESPONSE_FLAG, ResponseCode
from ropeway.gateway.wire.commands.admin import (
    CreateGroup,
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
)
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.gateway.wire.header import row_of
from tests.ropeway.client.fake_server import FakeServer
from tests.ropeway.client.scenario import PATIENT, scenario, send_all, until


@scenario
async def test_a_broker_is_asked_by_its_name(ropeway_gateway, topic):
    await send_all(ropeway_gateway.name_server, topic, [b"x"] * 8)
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        ends = [
            (
                await admin.ask_broker(
                    "broker-0", GetMaxOffset(topic=topic, queue_id=queue.queue_id)
                )
            )
            .header(Offset)
            .offset
            for queue in (await admin.route(topic)).read_queues
        ]
        assert sum(ends) == 8
        assert await admin.masters() == [ropeway_gateway.address]
        assert (await admin.ask_name_server(GetAllTopicList())).code == 0


@scenario
async def test_a_broker_that_is_not_there_is_an_error_that_names_those_that_are(
    ropeway_gateway,
):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(
            BrokerNotFoundError, match=r"no broker b9; there are broker-0$"
        ):
            await admin.ask_broker("b9", GetAllTopicList())


@pytest.mark.parametrize(
    "header",
    [
        CreateTopic("t", "TBW102", 1024, 1024, 6),
        DeleteTopic("t"),
        CreateGroup(),
        DeleteGroup("g"),
    ],
    ids=lambda header: type(header).__name__,
)
@scenario
async def test_what_makes_or_deletes_is_waited_for_longer_than_what_asks(header):
    """It was done a moment after the command had said that it failed."""
    config = ClientConfig(connect_timeout_s=60, request_timeout_s=0.1)
    async with FakeServer() as server, Admin(server.address, config=config) as admin:
        silent = {row_of(type(one)).code for one in (header, GetAllTopicList())}
        server.behaviours |= dict.fromkeys(silent, lambda _: None)
        making = asyncio.ensure_future(admin.ask(server.address, header))
        await until(lambda: server.asked(row_of(type(header)).code))
        with pytest.raises(RequestTimeoutError):
            await admin.ask(server.address, GetAllTopicList())
        assert not making.done()
        # To the connection's first request.
        server.push(ResponseCode.SUCCESS, 1, RESPONSE_FLAG)
        assert (await making).code == ResponseCode.SUCCESS


@scenario
async def test_a_server_that_is_not_there_is_another_error(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1:1"):
            await admin.ask("127.0.0.1:1", GetAllTopicList(), timeout_s=5)
