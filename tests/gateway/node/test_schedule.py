"""Delay levels: never early, in order, and over restarts."""

from __future__ import annotations

import asyncio
import gc
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.common.clock import now_ms
from ropeway.gateway.node import schedule
from ropeway.gateway.node.schedule import _to_its_end, parse_levels
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.storage.api import LogUnavailableError
from ropeway.storage.file.offsets import open_offsets
from tests.copies import killed_copy
from tests.gateway.holding import Holding
from tests.remoting import Remoting, looped, running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULE = "SCHEDULE_TOPIC_XXXX"


async def delivered(client: Remoting, count: int) -> list[message.Message]:
    found: list[message.Message] = []
    while len(found) < count:
        answer = await client.ask(waiting("orders", len(found)))
        found += answer.messages()
    return found


def test_levels_are_numbers_with_units():
    assert parse_levels("1s 2m 3h 4d") == [1000, 120_000, 10_800_000, 345_600_000]
    for text in ("", "1", "s", "0s", "-1s", "1x", "1s,2s", "²s"):
        with pytest.raises(ValueError, match="delay level"):
            parse_levels(text)


@pytest.mark.rule(
    "node.md",
    "A delivery is one append to the real queue, and the offset moves after it.",
)
@looped
async def test_a_delayed_message_comes_once_in_order_and_never_early(tmp_path: Path):
    async with running(tmp_path, delay_levels="1s 1h") as (app, client):
        await client.ask(sending("orders", queue_id=1), b"now")
        for number in range(5):
            asked = sending("orders", pairs={"DELAY": "1", "TAGS": "t"})
            reply = (await client.ask(asked, b"%d" % number)).read(SendReply)
            assert (reply.queue_id, reply.queue_offset) == (0, number)
        waited = (await client.ask(pulling(SCHEDULE))).messages()
        assert len(waited) == 5
        found = await delivered(client, 5)
        assert [one.body for one in found] == [b"%d" % one for one in range(5)]
        for before, after in zip(waited, found, strict=True):
            assert after.store_ms - before.store_ms >= 1000
            assert after.born_ms == before.born_ms
            pairs = properties.parse(after.properties)
            # Only the timer says when it had a message.
            assert not {name for name in pairs if name.startswith("TIMER_")}
            assert pairs["DELAY"] == "1"
            assert (pairs["REAL_TOPIC"], pairs["REAL_QID"]) == ("orders", "0")
            assert pairs["TAGS"] == "t"
        offsets = app.node.offsets
        await until(lambda: offsets.get("CID_RMQ_SYS_SCHEDULE", SCHEDULE, 0) == 5)
        assert app.node.topics.get("orders").partitions[0].end == 5
        tagged = await client.ask(pulling("orders", subscription="t"))
        assert len(tagged.messages()) == 5


@looped
@pytest.mark.parametrize(
    ("level", "queue_id"), [("1", 0), ("2", 1), ("3", 1), ("99999999999", 1)]
)
async def test_a_level_above_the_last_is_the_last(tmp_path: Path, level, queue_id):
    async with running(tmp_path, delay_levels="1h 2h") as (app, client):
        answer = await client.ask(sending("orders", pairs={"DELAY": level}), b"x")
        assert answer.code == 0
        served = app.node.topics.get(SCHEDULE)
        assert served.partitions[queue_id].next_offset == 1


@looped
@pytest.mark.parametrize("level", ["0", "-1", "soon"])
async def test_no_level_is_no_delay(tmp_path: Path, level: str):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders", pairs={"DELAY": level}), b"x")
        assert len((await client.ask(pulling("orders"))).messages()) == 1


@looped
async def test_what_waits_survives_restarts_and_comes_once(tmp_path: Path):
    for _ in range(2):
        async with running(tmp_path, delay_levels="1s") as (_, client):
            for _ in range(3):
                await client.ask(sending("orders", pairs={"DELAY": "1"}), b"x")
    # The levels may have changed meanwhile: what waits at a later one comes out too.
    async with running(tmp_path, delay_levels="1s 1s") as (_, client):
        await client.ask(sending("orders", pairs={"DELAY": "2"}), b"y")
    async with running(tmp_path, delay_levels="1s") as (app, client):
        found = await delivered(client, 7)
        assert sorted(one.body for one in found) == [b"x"] * 6 + [b"y"]
        await client.ask(sending("orders", queue_id=1), b"z")
        assert app.node.topics.get("orders").partitions[0].end == 7


@looped
async def test_a_log_that_lost_its_end_delivers_what_comes_then(tmp_path: Path):
    delayed = sending("orders", pairs={"DELAY": "1"})
    group = "CID_RMQ_SYS_SCHEDULE"
    async with running(tmp_path, delay_levels="1s") as (app, client):
        await client.ask(delayed, b"x")
        await delivered(client, 1)
        await until(lambda: app.node.offsets.get(group, SCHEDULE, 0) == 1)
    offsets = open_offsets(tmp_path)
    offsets.commit(group, SCHEDULE, 0, 1000)
    await offsets.close()
    async with running(tmp_path, delay_levels="1s") as (app, client):
        await client.ask(delayed, b"y")
        found = await delivered(client, 3)
        assert [one.body for one in found] == [b"x", b"x", b"y"]
        await until(lambda: app.node.offsets.get(group, SCHEDULE, 0) == 2)


@looped
async def test_a_clock_that_is_set_back_holds_no_level_up_and_makes_nothing_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What was stored before would wait an hour longer, and all others behind it."""
    delayed = sending("orders", pairs={"DELAY": "1"})

    def set_clock(by_s: int) -> None:
        there = SimpleNamespace(time_ns=lambda: time.time_ns() + by_s * 1_000_000_000)
        monkeypatch.setattr("ropeway.common.clock.time", there)

    async with running(tmp_path, delay_levels="3s") as (_, client):
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await client.ask(delayed, b"before a restart")
    set_clock(-3600)
    async with running(tmp_path, delay_levels="3s") as (_, client):
        found = await delivered(client, 1)
        assert loop.time() - began_s >= 2.9
        # It is stored before its sender knows.
        began_s = loop.time()
        await client.ask(delayed, b"before it is set")
        set_clock(-7200)
        found = await delivered(client, 2)
        assert loop.time() - began_s >= 2.9
        assert [one.body for one in found] == [b"before a restart", b"before it is set"]


def test_no_message_waits_twice_where_a_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
):
    """By the clock it would, once the clock is back by less than ten seconds."""
    steady_s, day_s, partition = 0, 0, SimpleNamespace(end=1)
    loop = SimpleNamespace(time=lambda: steady_s)
    monkeypatch.setattr(schedule.asyncio, "get_running_loop", lambda: loop)
    monkeypatch.setattr(schedule, "now_ms", lambda: (steady_s + day_s) * 1000)
    steady_s = 100
    clock = schedule._Clock(partition)
    assert clock.left_ms(0, 99_000, 5000) == 4000
    steady_s, day_s = 101, -14
    partition.end = 2
    assert clock.left_ms(0, 99_000, 5000) == 5000
    # What is stored now waits by the clock, as it is and as it will be.
    assert clock.left_ms(2, 87_000, 5000) == 5000
    steady_s = 106
    assert clock.left_ms(0, 99_000, 5000) == 0
    assert clock.left_ms(1, 99_000, 5000) == 0
    assert clock.left_ms(2, 87_000, 5000) == 0
    assert clock.left_ms(3, 92_000, 5000) == 5000
    day_s = -19
    assert clock.left_ms(3, 92_000, 5000) == 10_000
    # One is stored while it is ahead by a minute, for a moment: by seed 11000117.
    partition.end = 5
    assert clock.left_ms(4, 147_000, 5000) == 5000
    steady_s = 111
    assert clock.left_ms(4, 147_000, 5000) == 0


@looped
async def test_messages_of_a_deleted_topic_hold_nobody_up(tmp_path: Path):
    async with running(tmp_path, delay_levels="1s") as (app, client):
        await client.ask(sending("doomed", pairs={"DELAY": "1"}), b"x")
        await client.ask(sending("orders", pairs={"DELAY": "1"}), b"y")
        await app.node.topics.delete("doomed")
        (found,) = await delivered(client, 1)
        assert found.body == b"y"


@pytest.mark.rule(
    "node.md",
    "A delivery is one append to the real queue, and the offset moves after it.",
)
@looped
async def test_a_refusal_of_the_log_delays_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for pause in ("_FIRST_PAUSE_MS", "_LONGEST_PAUSE_MS"):
        monkeypatch.setattr(f"ropeway.gateway.node.timer.delivery.{pause}", 10)
    async with running(tmp_path, delay_levels="1s") as (app, client):
        for number in range(3):
            asked = sending("orders", pairs={"DELAY": "1"})
            await client.ask(asked, b"%d" % number)
        served = app.node.topics.get("orders")
        true = served.partitions[0]
        refusals = 0

        class Refusing:
            """Refuses now, or later, in turn."""

            def __getattr__(self, name):
                return getattr(true, name)

            def append(self, _records, _store_ms, done):
                nonlocal refusals
                refusals += 1
                error = LogUnavailableError("disk full")
                if refusals % 2:
                    raise error
                asyncio.get_running_loop().call_soon(done, -1, error)

        served.partitions[0] = Refusing()
        await until(lambda: refusals > 12)
        served.partitions[0] = true
        found = await delivered(client, 3)
        # One that was put off may come behind one that became due since.
        assert {one.body for one in found} == {b"0", b"1", b"2"}


@pytest.mark.rule(
    "node.md",
    "So a crash makes the last deliveries happen again; none is lost.",
)
@looped
async def test_a_crash_while_a_delivery_is_written_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.schedule.now_ms", lambda: now_ms() + 2000)
    async with running(tmp_path / "node", delay_levels="1s") as (app, client):
        await client.ask(sending("orders", queue_id=1), b"now")
        served = app.node.topics.get("orders")
        true = served.partitions[0]
        holding = Holding(true)
        served.partitions[0] = holding
        try:
            for number in range(3):
                asked = sending("orders", pairs={"DELAY": "1"})
                await client.ask(asked, b"%d" % number)
                await until(lambda: holding.held)
            # What a crash would leave now: all that is known is flushed first.
            await app.node.offsets.flush()
            killed_copy(tmp_path / "node", tmp_path / "crashed")
            assert not app.node.offsets.get("CID_RMQ_SYS_SCHEDULE", SCHEDULE, 0)
        finally:
            served.partitions[0] = true
            holding.let_go()
    async with running(tmp_path / "crashed", delay_levels="1s") as (_, client):
        found = await delivered(client, 3)
        assert [one.body for one in found] == [b"0", b"1", b"2"]


@looped
async def test_what_is_not_noted_while_delivering_ends_is_nobodys_error():
    loop = asyncio.get_running_loop()
    heard = []
    loop.set_exception_handler(lambda _, context: heard.append(context))
    goes_on = asyncio.Event()

    async def noting() -> None:
        await goes_on.wait()
        raise LogUnavailableError("another node leads")

    ending = loop.create_task(_to_its_end(noting()))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.sleep(0)
    assert not ending.done()
    goes_on.set()
    await asyncio.wait({ending})
    assert ending.cancelled()
    del ending
    gc.collect()
    assert not heard
