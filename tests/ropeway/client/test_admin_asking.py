"""Asking brokers and name servers on an administrator's behalf."""

import pytest

from gateway.wire.commands.namesrv import GetAllTopicList
from gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.client import Admin, ConnectionFailedError
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import PATIENT, scenario, send_all


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
        with pytest.raises(AdminError, match=r"no broker b9; there are broker-0$"):
            await admin.ask_broker("b9", GetAllTopicList())


@scenario
async def test_a_server_that_is_not_there_is_another_error(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1:1"):
            await admin.ask("127.0.0.1:1", GetAllTopicList(), timeout_s=5)
