"""The last day: what is kept, how finely, over a restart, and how much at most."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway import connection
from ropeway.gateway.http import day_history
from ropeway.gateway.http.day_history import FILE, MINUTE_MS, DayHistory
from tests.gateway.http.site import send
from tests.remoting import looped, running, until
from tests.requests import committing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.gateway.app import App

BEGAN_MS = 1_795_419_000_000


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now_ms = BEGAN_MS

    def __call__(self) -> int:
        return self.now_ms


@asynccontextmanager
async def kept(app: App, clock: Clock) -> AsyncIterator[DayHistory]:
    """A history with its first look, and looks that a test takes."""
    history = DayHistory(app.node, clock)
    await history.start()
    await until(lambda: history._looks)
    try:
        yield history
    finally:
        await history.close()


async def looks(history: DayHistory, clock: Clock, count: int) -> None:
    for _ in range(count):
        clock.now_ms += MINUTE_MS
        await history.look()


@looped
async def test_every_topic_and_group_is_kept_without_a_look_at_the_page(
    tmp_path, monkeypatch
):
    # On a fast machine all the sends of a minute come between two samples.
    monkeypatch.setattr(connection, "SAMPLE_EVERY_S", 0)
    clock = Clock()
    async with running(tmp_path) as (app, client), kept(app, clock) as history:
        await send(client, "orders", 6)
        await client.ask(committing("orders", 0, 0))
        await looks(history, clock, 1)
        await send(client, "orders", 120)
        await client.ask(committing("orders", 0, 66))
        await looks(history, clock, 1)
        await looks(history, clock, 1)
        sent = history.past("topic", "orders", "hours")
        assert sent.times_ms[-1] == clock.now_ms // MINUTE_MS * MINUTE_MS
        assert len(sent.times_ms) == len(sent.series["in"]) == 180
        assert sent.series["in"][-2:] == [2.0, 0.0]
        # Nobody looked before the start.
        assert sent.series["in"][:-3] == [None] * 177
        group = history.past("group", "readers", "hours").series
        assert group["lag"][-2:] == [60.0, 60.0]
        assert group["out"][-2:] == [pytest.approx(1.1), 0.0]
        broker = history.past("broker", "", "hours").series
        assert broker["send_ms"][-2] > 0
        idle = history.past("topic", "nosuch", "hours").series["in"]
        assert idle[-2:] == [0.0, 0.0]


@looped
async def test_a_day_has_the_mean_of_each_ten_minutes(tmp_path):
    clock = Clock()
    clock.now_ms = BEGAN_MS // (10 * MINUTE_MS) * 10 * MINUTE_MS - MINUTE_MS
    async with running(tmp_path) as (app, client), kept(app, clock) as history:
        await send(client, "orders", 1)
        await looks(history, clock, 1)
        await send(client, "orders", 60)
        await looks(history, clock, 1)
        await looks(history, clock, 3)
        day = history.past("topic", "orders", "day").series["in"]
        assert day[-1] == pytest.approx(1.0 / 5)
        assert len(day) == 144
        await looks(history, clock, 24 * 60)
        assert history.past("topic", "orders", "day").series["in"] == [0.0] * 144
        # What was idle for a day costs nothing more.
        assert ("topic", "orders", "in") not in history._series


@looped
async def test_others_have_turns_while_a_day_is_turned(tmp_path):
    clock, turns = Clock(), 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with running(tmp_path) as (app, _), kept(app, clock) as history:
        for number in range(20 * day_history._AT_ONCE):
            rings = history._series["topic", f"t-{number}", "in"] = day_history._Rings()
            rings.by_range["day"][number % 144] = 1.0
        clock.now_ms += 24 * 60 * MINUTE_MS
        other = asyncio.ensure_future(take_turns())
        await history.look()
        assert turns > 10
        assert not [one for one in history._series if one[1].startswith("t-")]
        other.cancel()


@looped
async def test_a_restart_keeps_it_with_a_gap(tmp_path):
    clock = Clock()
    async with running(tmp_path) as (app, client):
        async with kept(app, clock) as history:
            await send(client, "orders", 1)
            await looks(history, clock, 1)
            await send(client, "orders", 60)
            await looks(history, clock, 1)
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
        clock.now_ms += 5 * MINUTE_MS
        async with kept(app, clock) as history:
            await looks(history, clock, 1)
            found = history.past("topic", "orders", "hours").series["in"]
            assert found[-7:] == [1.0, *[None] * 5, 0.0]
        for damage in (b"", b"x", (tmp_path / FILE).read_bytes()[:-9]):
            (tmp_path / FILE).write_bytes(damage)
            async with kept(app, clock) as history:
                found = history.past("topic", "orders", "hours").series["in"]
                assert 1.0 not in found


@looped
async def test_no_more_series_are_kept_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(day_history, "MOST_SERIES", 4)
    clock = Clock()
    async with running(tmp_path) as (app, client), kept(app, clock) as history:
        for number in range(8):
            await send(client, f"topic-{number}", 1)
        await looks(history, clock, 1)
        for number in range(8):
            await send(client, f"topic-{number}", 1)
        await looks(history, clock, 1)
        assert len(history._series) == 4


@looped
async def test_a_node_that_does_not_lead_leaves_a_gap(tmp_path):
    clock = Clock()
    async with running(tmp_path) as (app, client), kept(app, clock) as history:
        await send(client, "orders", 1)
        await looks(history, clock, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app.node.leadership, "leads", False)
            await looks(history, clock, 2)
        assert history.past("topic", "orders", "hours").series["in"][-2:] == [None] * 2
