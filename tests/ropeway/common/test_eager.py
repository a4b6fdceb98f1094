"""What needs no waiting is done at once; what waits goes on as if it were a task."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ropeway.common.eager import Waiting, begin, eager, own_task, settled
from tests.remoting import looped

if TYPE_CHECKING:
    from collections.abc import Awaitable


async def add(number: int, more: int = 1) -> int:
    return number + more


async def fail(after: Awaitable[object] | None = None) -> int:
    if after is not None:
        await after
    raise ValueError("wrong")


def future() -> asyncio.Future[int]:
    return asyncio.get_running_loop().create_future()


def test_what_needs_no_waiting_is_done_without_a_loop() -> None:
    assert begin(add(1)) == 2
    assert eager(add)(1, more=2) == 3


def test_what_fails_at_once_raises_at_once() -> None:
    with pytest.raises(ValueError, match="wrong"):
        begin(fail())


@looped
async def test_what_waits_goes_on_where_it_is_awaited() -> None:
    steps: list[str] = []
    first, second = future(), future()

    async def work() -> int:
        steps.append("begun")
        one = await first
        steps.append("first")
        return one + await second

    found = begin(work())
    assert isinstance(found, Waiting)
    assert steps == ["begun"]
    first.set_result(1)
    task = asyncio.ensure_future(found)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert steps == ["begun", "first"]
    second.set_result(2)
    assert await task == 3


@looped
async def test_what_fails_later_raises_where_it_is_awaited() -> None:
    gate = future()
    found = begin(fail(gate))
    assert isinstance(found, Waiting)
    gate.set_result(0)
    with pytest.raises(ValueError, match="wrong"):
        await found


@looped
async def test_an_error_that_is_waited_for_can_be_met() -> None:
    gate = future()

    async def work() -> str:
        try:
            await gate
        except KeyError:
            return await asyncio.sleep(0, "met")
        return ""

    found = begin(work())
    assert isinstance(found, Waiting)
    gate.set_exception(KeyError())
    assert await found == "met"


@looped
async def test_work_is_cancelled_with_its_task() -> None:
    gate, ended = future(), []

    async def work() -> None:
        try:
            await gate
        finally:
            ended.append(asyncio.current_task())

    found = begin(work())
    assert isinstance(found, Waiting)

    async def wait() -> None:
        await found

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert ended == [task]
    assert gate.cancelled()


@looped
async def test_work_that_nobody_awaits_is_ended() -> None:
    ended = []

    async def work() -> None:
        try:
            await future()
        finally:
            ended.append(True)

    found = begin(work())
    assert isinstance(found, Waiting)
    steps = found.__await__()
    next(steps)
    steps.close()
    assert ended == [True]
    found = begin(work())
    del found
    assert ended == [True, True]


@looped
async def test_an_answer_is_awaited_where_it_takes_time() -> None:
    assert await settled(2) == 2
    assert await settled(add(1)) == 2


@looped
async def test_many_that_wait_are_gathered() -> None:
    gates = [future() for _ in range(3)]

    async def work(gate: asyncio.Future[int]) -> int:
        return await gate

    begun = [begin(work(gate)) for gate in gates]
    for number, gate in enumerate(gates):
        gate.set_result(number)
    found = [one for one in begun if isinstance(one, Waiting)]
    assert await asyncio.gather(*found) == [0, 1, 2]


@looped
async def test_what_others_wrote_has_a_task_of_its_own() -> None:
    tasks = []

    async def theirs() -> int:
        async with asyncio.timeout(60):
            tasks.append(asyncio.current_task())
            return await asyncio.sleep(0, 1)

    async def work() -> int:
        return await own_task(theirs())

    found = begin(work())
    assert isinstance(found, Waiting)
    task = asyncio.ensure_future(found)
    assert await task == 1
    assert tasks == [task]
