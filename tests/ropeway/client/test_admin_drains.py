"""The administrator's client empties a broker, and says what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, admin_drains
from ropeway.client.admin_drains import Waiting
from ropeway.client.errors import AdminError, ResponseError
from ropeway.gateway.processors.half_message import PREPARED
from tests.gateway.processors.test_drains import sharing
from tests.gateway.processors.test_moves import QUEUES, route
from tests.remoting import looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_drain_waits_for_what_is_open_and_goes_on_when_begun_again(
    tmp_path: Path,
):
    async with sharing(tmp_path) as (one, other, client):
        half = sending(
            "orders",
            pairs={"TRAN_MSG": "true", "PGROUP": "producers"},
            sys_flag=PREPARED,
        )
        assert (await client.ask(half, b"half")).code == 0
        async with Admin(one.server.listeners[0].advertised) as admin:
            seen = []
            async for step in admin_drains.drain(admin, "broker-0"):
                seen.append(step)
                if isinstance(step, Waiting):
                    break
            assert [step.from_id for step in seen[:-1]] == [2, 1]
            assert "transactions of broker broker-0 are open" in seen[-1].trouble
            assert seen[-1].state.waiting == {"transactions": 1}
            one.node.transactions._begin(type(one.node.transactions._book)(9))
            again = [
                step
                async for step in admin_drains.drain(admin, "broker-0")
                if not isinstance(step, Waiting)
            ]
            assert [step.to_id for step in again] == [QUEUES - 1]
            assert list(route(one)) == ["broker-1"]

            with pytest.raises(ResponseError, match="no other broker runs"):
                async for _ in admin_drains.drain(admin, "broker-1"):
                    pass
            await until(lambda: other.node.topics.get("orders"))
            with pytest.raises(AdminError, match="there is no broker broker-7"):
                await admin_drains.undrain(admin, "broker-7")
            await admin_drains.undrain(admin, "broker-0")
            assert not (await admin_drains.look(admin, "broker-0")).draining
            with pytest.raises(ResponseError, match="broker-0 runs"):
                await admin_drains.remove(admin, "broker-0")
