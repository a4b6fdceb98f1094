"""Open transactions are listed over the wire, a page at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.processors import transactions
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.transactions import HalvesPage, ListHalves
from tests.gateway.processors.test_transactions import KEY, half
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Remoting


async def page(client: Remoting, **asked) -> HalvesPage:
    answer = await client.ask(ListHalves(**{"max_nums": 10, **asked}))
    assert answer.code == 0, answer.remark
    return msgspec.json.decode(answer.body, type=HalvesPage)


@looped
async def test_an_open_transaction_is_listed_until_it_ends(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        assert await page(client) == HalvesPage([])
        await half(client, pairs={"UNIQ_KEY": "other"})
        end = await half(client, pairs={"UNIQ_KEY": KEY})
        (found,) = (await page(client, unique_key=KEY)).transactions
        assert (found.topic, found.producer_group) == ("orders", "producers")
        assert (found.msg_id, found.checks) == (KEY, 0)
        assert found.born_ms == 1_700_000_000_000
        assert abs(found.store_ms - time.time_ns() // 1_000_000) < 60_000
        assert len((await page(client, topic="orders")).transactions) == 2
        assert (await page(client, topic="others")).transactions == []
        assert (await client.ask(end)).code == 0
        (left,) = (await page(client)).transactions
        assert left.msg_id == "other"


@looped
async def test_pages_have_what_was_asked_for_and_say_where_to_go_on(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(transactions, "_MAX_LOOKS", 2)
    async with running(tmp_path) as (_, client):
        for number in range(5):
            await half(client, pairs={"UNIQ_KEY": str(number)})
        found, after = [], 0
        while after is not None:
            one = await page(client, max_nums=1, after=after)
            assert len(one.transactions) <= 1
            found += one.transactions
            after = one.next
        assert [one.msg_id for one in found] == [*"01234"]
        # Beyond what there is, and before it.
        assert (await page(client, after=1 << 40)) == HalvesPage([])
        assert len((await page(client, after=-1)).transactions) == 2
        for most in (0, 1001):
            refused = await client.ask(ListHalves(max_nums=most))
            assert refused.code == ResponseCode.INVALID_PARAMETER
            assert "allowed: 1 to 1000" in refused.remark
