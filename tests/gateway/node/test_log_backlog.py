"""What waits in the log, by flow: who has too much waits, and nobody else."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ropeway.gateway.config import LimitsConfig, LogConfig
from ropeway.gateway.node.fair_queueing import FairQueue
from tests.gateway.node.test_fair_queueing import (
    SHORT_TICK_S,
    Asking,
    Leadership,
    Log,
    slow_disk,
)
from tests.guarded import ALICE, ROOT, acl_of, allow, ask, populate
from tests.remoting import connect, looped, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LIMIT = 1 << 20
LONG, SHORT = 5000, 100


class Appending(Asking):
    """A connection that appends so much in each turn."""

    def __init__(self, log: Log, size: int, fair_queue: FairQueue, flow: str) -> None:
        self._log, self._size, self._back = log, size, fair_queue.log_backlog
        self.begun = 0
        super().__init__("", fair_queue, 1, [], flow)

    def take_turn(self, _now: float, _until: float) -> int:
        if self._back.holds_back(self, self._size):
            return 0
        self.begun += 1
        self._log.appended_bytes += self._size
        self._fair_queue.join(self)
        return 1


@looped
async def test_who_has_its_share_in_the_log_waits_until_the_log_has_stored_it():
    log = Log()
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=LIMIT), log, Leadership())
    much = Appending(log, LONG, fair_queue, "much")
    await until(lambda: fair_queue.tick_over_at == 0.0)
    assert log.appended_bytes == (LIMIT // 4 // LONG + 1) * LONG
    # All have turns meanwhile, so that it is known who appends.
    assert not fair_queue.is_free()
    begun, others = much.begun, Appending(log, LONG, fair_queue, "others")
    await until(lambda: others.begun == LIMIT // 4 // LONG + 1)
    assert much.begun == begun
    # Whose turn came first has its part stored first.
    log.appended_bytes -= begun * LONG
    await until(lambda: much.begun > begun)
    log.appended_bytes = 0
    await until(lambda: others.begun > begun)


class BecomingKnown(Appending):
    """A connection whose principal is known in its first turn."""

    def take_turn(self, now: float, until: float) -> int:
        begun = super().take_turn(now, until)
        self.flow = self._fair_queue.flow("principal")
        return begun


@looped
async def test_what_a_turn_appends_counts_where_it_began():
    """Else who connects again and again, and sends much at once, is never held back."""
    log = Log()
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=LIMIT), log, Leadership())
    for _ in range(LIMIT // 4 // LONG + 1):
        one = BecomingKnown(log, LONG, fair_queue, "address")
        await until(lambda one=one: one.begun > 0)
    held = Appending(log, LONG, fair_queue, "address")
    await until(lambda: held in fair_queue.log_backlog._held.get(held.flow, ()))
    assert held.begun == 0
    log.appended_bytes = 0
    await until(lambda: held.begun > 0)


@looped
async def test_who_has_gone_is_not_kept():
    log = Log()
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=LIMIT), log, Leadership())
    gone = Appending(log, LONG, fair_queue, "much")
    await until(lambda: fair_queue.tick_over_at == 0.0)
    begun = gone.begun
    assert fair_queue.log_backlog.forget(gone)
    assert not fair_queue.log_backlog.forget(gone)
    stays = Appending(log, LONG, fair_queue, "much")
    await until(lambda: fair_queue.tick_over_at == 0.0)
    log.appended_bytes = 0
    await until(lambda: stays.begun > 0)
    assert gone.begun == begun


@looped
async def test_what_is_short_goes_on():
    log = Log()
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=LIMIT), log, Leadership())
    much = Appending(log, LONG, fair_queue, "much")
    await until(lambda: fair_queue.tick_over_at == 0.0)
    begun, little = much.begun, Appending(log, SHORT, fair_queue, "much")
    await until(lambda: little.begun > begun)
    assert much.begun == begun
    little._size = LONG
    await until(lambda: fair_queue.tick_over_at == 0.0)


@looped
async def test_who_sends_little_finds_room_in_the_log_while_the_disk_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes_on = slow_disk(monkeypatch)
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TICK_S", SHORT_TICK_S)
    log = LogConfig(segment_bytes=32 << 20, flush="sync")
    limits = LimitsConfig(waiting_bytes=8 << 20, send_wait_ms=600_000)
    guards = acl_of(tmp_path)
    async with (
        running(tmp_path, acl=guards, log=log, limits=limits) as (app, client),
        AsyncExitStack() as stack,
    ):
        await populate(app, allow("Topic:*"))
        for who in (ROOT, ALICE):
            assert (await ask(client, who, sending("orders"), b"x")).code == 0
        many = [
            await stack.enter_async_context(connect(app.server.listeners[0]))
            for _ in range(16)
        ]
        for one in many:
            assert (await ask(one, ALICE, sending("orders"), b"x")).code == 0
        goes_on.clear()
        try:
            long = bytes(1 << 20)
            much = asyncio.gather(
                *(ask(one, ALICE, sending("orders"), long) for one in many)
            )
            # Whole, or still to be read: one of them after the other is.
            await until(lambda: app.server.fair_queue.log_backlog._held)
            await until(lambda: app.server.fair_queue.tick_over_at == 0.0)
            # A share of what was begun at once, one of turns, and a message each.
            assert app.node.log.waiting_bytes() < limits.waiting_bytes - len(long)
            little = asyncio.create_task(ask(client, ROOT, sending("orders"), b"x"))
            before = app.node.log.waiting_bytes()
            await until(lambda: app.node.log.waiting_bytes() > before or little.done())
            assert not little.done()
        finally:
            goes_on.set()
        assert (await asyncio.wait_for(little, 60)).code == 0
        assert {one.code for one in await asyncio.wait_for(much, 60)} == {0}
        assert app.node.log.waiting_bytes() == 0
