"""Owned tasks."""

import asyncio
import logging

from ropeway.client.tasks import OwnedTasks, wait_for
from tests.ropeway.client.scenario import scenario, until


@scenario
async def test_closing_cancels_and_awaits_everything():
    ended = []

    async def lasts() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(1)

    tasks = OwnedTasks()
    for number in range(3):
        tasks.spawn(lasts(), f"task {number}")
    await asyncio.sleep(0)
    await tasks.close()
    assert len(ended) == 3


def test_a_bug_is_logged_with_the_tasks_name(caplog):
    async def has_a_bug() -> None:
        raise ZeroDivisionError

    @scenario
    async def check() -> None:
        task = OwnedTasks().spawn(has_a_bug(), "sums")
        await until(task.done)
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        check()
    assert "task=sums failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


@scenario
async def test_waiting_says_whether_it_came():
    event = asyncio.Event()
    assert not await wait_for(event, 0.01)
    event.set()
    assert await wait_for(event, 0.01)
