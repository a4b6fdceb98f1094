"""Tasks that nobody awaits are kept until they have ended."""

from __future__ import annotations

import asyncio
import gc

import pytest

from ropeway.common.tasks import Tasks
from tests.remoting import looped, until


@looped
async def test_tasks_that_wait_are_kept_and_then_let_go():
    tasks, go, done = Tasks(), asyncio.Event(), []

    async def work(number: int) -> None:
        await go.wait()
        done.append(number)

    for number in range(3):
        tasks.start(work(number))
    gc.collect()
    assert len(tasks) == 3
    go.set()
    await until(lambda: not tasks)
    assert done == [0, 1, 2]


@looped
async def test_a_task_that_is_awaited_raises_and_is_let_go():
    tasks = Tasks()

    async def fails() -> None:
        raise LookupError("one")

    with pytest.raises(LookupError, match="one"):
        await tasks.start(fails())
    assert not tasks
