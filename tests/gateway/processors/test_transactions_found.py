"""Open transactions are found by the ids of their messages, over the wire."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.transactions import FindHalf, OpenHalf
from tests.gateway.processors.test_transactions import KEY, half
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_an_open_transaction_is_found_by_its_key_until_it_ends(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await half(client, pairs={"UNIQ_KEY": "other"})
        end = await half(client, pairs={"UNIQ_KEY": KEY})
        asked = FindHalf(unique_key=KEY)
        found = msgspec.json.decode((await client.ask(asked)).body, type=OpenHalf)
        assert (found.topic, found.producer_group) == ("orders", "producers")
        assert found.checks == 0
        assert abs(found.store_ms - time.time_ns() // 1_000_000) < 60_000
        assert (await client.ask(end)).code == 0
        assert (await client.ask(asked)).code == ResponseCode.QUERY_NOT_FOUND
