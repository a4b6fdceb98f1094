"""Queries that run elsewhere are told of as a consumer."""

from __future__ import annotations

import pytest

from ropeway.client import Admin, MessageQueue, admin_clients
from ropeway.client.query_consumer import QueryConsumer
from ropeway.client.running_queries import Batch, Query
from tests.ropeway.client.scenario import PATIENT, eventually, scenario

FIRST = Batch(1_000, 0, 5, None, 200, 7)
SECOND = Batch(2_000, 1, 7, 4, 300, 0)


@scenario
async def test_brokers_know_the_queries_of_a_group(ropeway_gateway):
    name_server = ropeway_gateway.name_server
    async with (
        Admin(name_server, config=PATIENT) as admin,
        QueryConsumer(name_server, "queries", config=PATIENT) as consumer,
    ):
        await admin.create_topic("queried", queues=1)
        queue = MessageQueue("queried", "broker-0", 0)
        await consumer.tell([Query("counts", [FIRST])], {queue: 5})

        async def connected() -> list[admin_clients.ClientGroup]:
            listed = await admin_clients.connected(admin)
            return [one for one in listed if one.client_id == consumer.client_id]

        await eventually(connected, bool)
        (one,) = await connected()
        assert (one.group, one.role) == ("queries", admin_clients.CONSUMER)
        info = await admin_clients.consumption(admin, one)
        assert info is not None
        assert info.queries == [Query("counts", [FIRST])]
        assert info.rates["queried"].pull_tps == 0
        both = [Query("counts", [FIRST, SECOND]), Query('a "quoted" \\ name', [])]
        await consumer.tell(both, {queue: 12})
        info = await admin_clients.consumption(admin, one)
        assert info is not None
        assert info.queries == both
        assert [(each.queue, each.committed) for each in info.queues] == [(queue, 12)]
        rates = info.rates["queried"]
        assert rates.pull_tps == rates.consume_ok_tps == pytest.approx(7 / 60)
        assert rates.consume_rt == 300
