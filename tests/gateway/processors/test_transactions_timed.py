"""Messages of transactions that ask for a delivery time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from tests.gateway.processors.test_transactions import KEY, half
from tests.remoting import looped, running
from tests.requests import sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_committed_message_waits_for_its_time(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        due_ms = time.time_ns() // 1_000_000 + 1500
        end = await half(client, queue_id=2, pairs={"TIMER_DELIVER_MS": str(due_ms)})
        await client.ask(end)
        answer = await client.ask(waiting("orders", queue_id=2))
        (found,) = answer.messages()
        assert found.store_ms >= due_ms
        assert found.body == b"x"
        pairs = properties.parse(found.properties)
        assert (pairs["__transactionId__"], pairs["REAL_QID"]) == (KEY, "2")


@looped
async def test_a_time_that_cannot_be_is_refused_with_the_half_message(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await half(client)
        pairs = {"TRAN_MSG": "true", "PGROUP": "producers", "TIMER_DELAY_SEC": "soon"}
        answer = await client.ask(sending("orders", pairs=pairs, sys_flag=4), b"x")
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert "TIMER_DELAY_SEC is 'soon'; allowed: a whole number" in answer.remark
        assert len(app.node.transactions) == 1
