"""Quotas are set, listed with what brokers say of them, and deleted."""

from __future__ import annotations

from ropeway.client import Admin, admin_quotas
from ropeway.client.admin_quotas import Quota
from tests.ropeway.client.scenario import PATIENT, scenario


@scenario
async def test_quotas_are_set_listed_and_deleted(ropeway_gateway, topic):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        for limits in (Quota(send_bytes_per_s=1), Quota(read_requests_per_s=2)):
            await admin_quotas.set_limits(admin, "topic", topic, limits)
        (found,) = (
            one for one in await admin_quotas.listed(admin) if one.name == topic
        )
        assert found.kind == "topic"
        assert found.quota == Quota(send_bytes_per_s=1, read_requests_per_s=2)
        await admin_quotas.delete(admin, "topic", topic)
        assert not [
            one for one in await admin_quotas.listed(admin) if one.name == topic
        ]
