"""`ropeway transaction`."""

import asyncio
import json

from ropeway.client import Admin
from tests.requests import sending


async def _begin(gateway, topic: str, *keys: str) -> None:
    """Send half messages, which nobody commits."""
    async with Admin(gateway.name_server) as admin:
        for key in keys:
            pairs = {"TRAN_MSG": "true", "PGROUP": "payers", "UNIQ_KEY": key}
            half = sending(topic, pairs=pairs, sys_flag=4)
            await admin.ask(gateway.address, half, b"x")


def test_open_transactions_are_listed(run, ropeway_gateway, ropeway_topic):
    run("topic", "create", ropeway_topic)
    keys = [f"{number:032X}" for number in (1, 2, 3)]
    asyncio.run(_begin(ropeway_gateway, ropeway_topic, *keys))
    asked = ["transaction", "list", "--topic", ropeway_topic]
    rows = json.loads(run(*asked, "--json").stdout)
    assert [row["msg_id"] for row in rows] == keys
    assert {(row["topic"], row["producer_group"]) for row in rows} == {
        (ropeway_topic, "payers")
    }
    assert len(json.loads(run(*asked, "--count", "2", "--json").stdout)) == 2
    assert keys[0] in run(*asked).stdout
    assert run("transaction", "list", "--topic", "another").stdout == ""
