"""Groups that are ahead of their log are taken back to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.offset_repair import TakenBack
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_only_what_is_ahead_is_taken_back(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for _ in range(3):
            await client.ask(sending("orders"), b"x")
        offsets = app.node.offsets
        given = {0: 9, 1: 0, 2: 1}
        for queue_id, offset in given.items():
            offsets.commit("g", "orders", queue_id, offset)
        offsets.commit("behind", "orders", 0, 2)
        offsets.commit("g", "unknown", 0, 7)
        duty = TakenBack(offsets, app.node.topics)
        await duty.take_over()
        await duty.give_up()
        assert offsets.queues("g", "orders") == {0: 3, 1: 0, 2: 0}
        assert offsets.get("behind", "orders", 0) == 2
        assert offsets.get("g", "unknown", 0) == 7


@looped
async def test_a_start_takes_back_what_a_power_cut_has_left_ahead(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        app.node.offsets.commit("g", "orders", 0, 5)
    async with running(tmp_path) as (app, _):
        assert app.node.offsets.get("g", "orders", 0) == 1
