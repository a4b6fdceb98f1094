"""The node keeps what it has begun until it is done."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from tests.remoting import looped, running, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_waiting_requests_are_kept_and_then_let_go(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        go = asyncio.Event()
        done = []

        async def work(number: int) -> None:
            await go.wait()
            done.append(number)

        for number in range(3):
            app.node.spawn(work(number))
        gc.collect()
        assert len(app.node.tasks) == 3
        go.set()
        await until(lambda: not app.node.tasks)
        assert done == [0, 1, 2]


def test_time_is_in_milliseconds():
    assert abs(now_ms() - time.time() * 1000) < 60_000
