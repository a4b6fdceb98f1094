"""What a group's line says."""

import asyncio

from ropeway.client import Admin
from ropeway.gateway.cli.group_sizes import sized


def test_a_group_without_offsets_has_no_lag(run, ropeway_gateway, ropeway_topic):
    name = f"new-{ropeway_topic}"
    run("group", "create", name)

    async def look():
        async with Admin(ropeway_gateway.name_server) as admin:
            return await sized(admin, name, sizes=True)

    row = asyncio.run(look())
    assert row.approx_lag_bytes == 0
    assert (row.lag, row.queues, row.topics, row.members) == (0, 0, 0, 0)
    assert (row.out_per_s, row.out_last_hour, row.done_until) == (0, 0, "")
