"""Sends that wait for their topic or queue stay in the order in which they came."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.pending_sends import PendingSend, PendingSends
from ropeway.routing.api import RouteStoreUnavailableError
from ropeway.storage.api import LogUnavailableError
from tests.remoting import looped, until

if TYPE_CHECKING:
    from ropeway.gateway.node.pending_sends import Destination

QUEUE = ("orders", 1)


class Sends:
    """Numbered sends that wait, and what became of them."""

    def __init__(self) -> None:
        self.pending = PendingSends()
        self.came: list[int | tuple[int, Exception]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def add(
        self,
        number: int,
        destination: Destination = QUEUE,
        *,
        gate: asyncio.Event | None = None,
        error: Exception | None = None,
        first: bool = False,
    ) -> None:
        async def prepare() -> None:
            if gate is not None:
                await gate.wait()
            if error is not None:
                raise error

        one = PendingSend(
            prepare,
            lambda: self.came.append(number),
            lambda reason: self.came.append((number, reason)),
        )
        self.pending.add(destination, one, self.spawn, first=first)

    def spawn(self, work) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def ended(self) -> None:
        await until(lambda: all(one.done() for one in self.tasks))
        assert self.pending.waiting == {}


@looped
async def test_what_comes_while_some_wait_stays_behind_them():
    sends, gate = Sends(), asyncio.Event()
    sends.add(1, gate=gate)
    await asyncio.sleep(0)
    sends.add(2)
    gate.set()
    # Its queue is open now, and those before it have not been started yet.
    assert sends.pending.blocking(*QUEUE) == QUEUE
    sends.add(3)
    await sends.ended()
    assert sends.came == [1, 2, 3]
    assert sends.pending.blocking(*QUEUE) is None


@looped
async def test_a_topic_that_is_made_holds_what_goes_to_any_of_its_queues():
    sends, gate = Sends(), asyncio.Event()
    sends.add(1, "orders", gate=gate)
    sends.add(2, ("other", 1), gate=gate)
    assert sends.pending.blocking("orders", 7) == "orders"
    assert sends.pending.blocking("orders", 7, "orders") is None
    assert sends.pending.blocking("orders", 7, ("orders", 7)) is None
    assert sends.pending.blocking("other", 1) == ("other", 1)
    assert sends.pending.blocking("other", 2) is None
    gate.set()
    await sends.ended()
    assert sorted(sends.came) == [1, 2]


@looped
@pytest.mark.parametrize(
    "error", [LogUnavailableError("no"), RouteStoreUnavailableError("no")]
)
async def test_what_cannot_be_had_now_is_waited_for_once_and_not_by_each(error):
    sends, gate = Sends(), asyncio.Event()
    sends.add(1, gate=gate, error=error)
    for number in (2, 3):
        sends.add(number, gate=asyncio.Event())
    gate.set()
    await sends.ended()
    assert sends.came == [(number, error) for number in (1, 2, 3)]


@looped
async def test_what_one_may_not_the_next_one_may():
    sends, refusal = Sends(), PermissionError("not you")
    sends.add(1, error=refusal)
    sends.add(2)
    await sends.ended()
    assert sends.came == [(1, refusal), 2]


@looped
async def test_who_has_to_wait_once_more_stays_the_first():
    sends = Sends()
    sends.add(2)
    sends.add(1, first=True)
    await sends.ended()
    assert sends.came == [1, 2]


@looped
async def test_who_waits_is_answered_where_the_node_ends():
    sends = Sends()
    for number in (1, 2):
        sends.add(number, gate=asyncio.Event())
    await asyncio.sleep(0)
    sends.tasks[0].cancel()
    await sends.ended()
    assert [number for number, _ in sends.came] == [1, 2]
    assert {type(reason) for _, reason in sends.came} == {LogUnavailableError}
