"""Clocks that are set while a node runs: nothing is lost, late, or held by two.

What waits for a duration goes by the clock that nobody sets (`monotonic_ms`). Here the
wall clock leaps by days, forward and back.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from tests.gateway.pop.rig import INVISIBLE_MS, Clock, Consumer, rigged
from tests.gateway.pop.test_service import dead, pop_all, some_in_hand
from tests.remoting import beat, looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY_MS = 86_400_000
LEAPS = pytest.mark.parametrize("leap_ms", [10 * DAY_MS, -DAY_MS], ids=["on", "back"])


@pytest.fixture
def leap(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the clock of this process, by so many milliseconds."""
    real = time.time_ns

    def by(leap_ms: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: real() + leap_ms * 1_000_000)

    return by


@looped
@LEAPS
async def test_a_lock_and_a_message_in_flight_stay_with_who_has_them(
    tmp_path: Path, leap_ms: int, leap: Callable[[int], None]
) -> None:
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        popping = Consumer(client)
        found = await popping.take(1)
        locks = app.node.locks
        assert locks.lock("readers", "one", [("orders", 0)])
        leap(leap_ms)
        assert not locks.lock("readers", "two", [("orders", 0)])
        app.node.pop.turn()
        assert not (await popping.pop()).messages
        assert await popping.ack(found, found.offsets[0]) == 0


@looped
async def test_a_message_that_nobody_acknowledges_comes_again_in_time(
    tmp_path: Path, leap: Callable[[int], None]
) -> None:
    async with running(tmp_path) as (_, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        popping = Consumer(client)
        await popping.take(1, invisible_time=1000)
        leap(-DAY_MS)
        again = await popping.pop(poll_time=20_000)
        assert again.bodies == [b"x"]


@looped
@LEAPS
async def test_a_client_that_is_heard_is_not_given_up(
    tmp_path: Path, leap_ms: int, leap: Callable[[int], None]
) -> None:
    async with running(tmp_path) as (app, client):
        assert (await beat(client, "me", "readers")).code == 0
        leap(leap_ms)
        assert app.node.clients.expire() == []
        assert app.node.clients.find_consumer("readers", "me")


@looped
@LEAPS
@pytest.mark.parametrize("store", ["kept", "lost"])
async def test_messages_in_flight_come_again_after_a_leap_and_a_kill(
    tmp_path: Path, store: str, leap_ms: int
) -> None:
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await some_in_hand(rig)
        dead(rig)
    if store == "lost":
        shutil.rmtree(tmp_path / "pop")
    clock.now_ms += leap_ms
    async with rigged(tmp_path, clock) as rig:
        found = sorted(await pop_all(rig))
        rig.pass_time(INVISIBLE_MS + max(0, -leap_ms))
        found += sorted(await pop_all(rig))
        assert set(found) >= {b"%d" % n for n in (0, 2, 3, 4, 6, 7)}
