"""Turns: who is begun when more comes than can be worked on, and who is refused."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import LimitsConfig, LogConfig
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.busy import busy
from tests.guarded import ALICE, allow, ask, guarded
from tests.remoting import beat, connect, looped, pulling, running, sending, until

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from tests.remoting import Frame

MANY = 3000
SHORT_TICK_S = 1e-6
"""Only the first to come in a tick is begun at once, however fast the machine is."""


class Leadership:
    def check(self, now_s: float) -> None:
        """Certain for ever."""


class Log:
    """A log that is as late as the test says."""

    overdue_ms = 0


class Asking:
    """A connection that has so many turns' worth of requests."""

    def __init__(
        self,
        name: str,
        turns: FairQueue,
        count: int,
        taken: list[str],
        flow: str = "one",
    ) -> None:
        self._name = name
        self.flow = turns.flow(flow)
        self._turns = turns
        self._count = count
        self._taken = taken
        turns.join(self)

    def take_turn(self, _now: float, _until: float) -> int:
        self._taken.append(self._name)
        self._count -= 1
        if self._count:
            self._turns.join(self)
        return 1


async def all_of(answers: list[asyncio.Future[Frame]]) -> list[Frame]:
    return await asyncio.wait_for(asyncio.gather(*answers), 60)


async def in_time(answer: Awaitable[Frame]) -> Frame:
    return await asyncio.wait_for(answer, 20)


@looped
async def test_who_asks_for_much_does_not_hold_up_who_asks_for_little():
    turns = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    Asking("much", turns, 4, taken)
    Asking("little", turns, 1, taken)
    Asking("some", turns, 2, taken)
    await until(lambda: len(taken) == 7)
    assert taken == ["much", "little", "some", "much", "some", "much", "much"]


@looped
async def test_nobody_has_more_turns_by_having_more_connections():
    turns = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    for number in range(4):
        Asking(f"many{number}", turns, 2, taken, "many")
    Asking("single", turns, 2, taken, "single")
    await until(lambda: len(taken) == 10)
    assert taken[:4] == ["many0", "single", "many1", "single"]


class Failing(Asking):
    """A connection whose turn fails."""

    closed = False

    def take_turn(self, _now: float, _until: float) -> int:
        raise RuntimeError("a turn that fails")

    def close(self) -> None:
        self.closed = True


@looped
async def test_a_turn_that_fails_ends_its_connection_and_no_others():
    turns = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    failing = Failing("failing", turns, 2, taken, "one")
    Asking("other", turns, 3, taken, "two")
    await until(lambda: len(taken) == 3)
    assert failing.closed
    await until(turns.is_free)


@looped
async def test_long_work_waits_for_turns_while_others_do():
    turns = FairQueue(LimitsConfig(), Log(), Leadership())
    slices = turns.slices("long")
    # Nobody waits: no pause.
    await asyncio.wait_for(slices.pause(), 20)
    taken: list[str] = []
    Asking("one", turns, 3, taken, "short")

    async def work() -> None:
        for _ in range(3):
            await slices.pause()
            taken.append("long")
            # Its turn is over.
            slices.flow.until = 0.0

    await asyncio.wait_for(work(), 20)
    assert taken.index("long") > taken.index("one")
    await until(lambda: taken.count("one") == 3)
    # One that gave up while it waited takes no turn.
    turns.is_free()
    Asking("two", turns, 1, taken, "short")
    waiting = asyncio.create_task(turns.slices("gone").pause())
    await asyncio.sleep(0)
    waiting.cancel()
    await until(turns.is_free)


@looped
async def test_a_send_that_waits_for_its_turn_for_too_long_is_told_why():
    turns = FairQueue(LimitsConfig(send_wait_ms=1), Log(), Leadership())
    assert not await turns.slices("sender").why_late()
    with busy(turns):
        why = await asyncio.wait_for(turns.slices("sender").why_late(), 60)
    assert why.endswith("allowed: 1")


@looped
async def test_what_long_work_keeps_counts_as_waiting_while_it_pauses():
    turns = FairQueue(LimitsConfig(waiting_bytes=100), Log(), Leadership())
    Asking("one", turns, 1_000_000, [], "short")
    pausing = [asyncio.create_task(turns.slices("long", 60).pause()) for _ in range(2)]
    await asyncio.sleep(0)
    assert turns.is_full(turns.flow("long"))
    assert not turns.is_full(turns.flow("short"))
    pausing[0].cancel()
    await asyncio.wait_for(pausing[1], 20)
    assert turns.waiting_bytes == 0


@looped
async def test_large_requests_are_few_and_one_of_each_flow():
    turns = FairQueue(LimitsConfig(), Log(), Leadership())
    mine, also_mine, other = (turns.slices(one) for one in ("a", "a", "b"))
    await mine.begin_large()
    second = asyncio.create_task(also_mine.begin_large())
    await asyncio.wait_for(other.begin_large(), 20)
    assert not second.done()
    mine.end_large()
    await asyncio.wait_for(second, 20)
    others = [turns.slices(name) for name in "cd"]
    for one in others:
        await asyncio.wait_for(one.begin_large(), 20)
    fifth = asyncio.create_task(turns.slices("e").begin_large())
    await asyncio.sleep(0)
    assert not fifth.done()
    # Who gives up leaves its place.
    fifth.cancel()
    await asyncio.wait([fifth])
    also_mine.end_large()
    await asyncio.wait_for(turns.slices("e").begin_large(), 20)


@looped
async def test_who_is_unknown_is_not_refused_for_what_others_of_its_address_send(
    tmp_path: Path,
):
    async with guarded(tmp_path, allow("Topic:*", "Pub")) as (app, _):
        turns, listener = app.node.turns, app.server.listeners[0]
        async with connect(listener) as client:
            # As if very much waited that somebody else has sent from here.
            flow = turns.flow("127.0.0.1")
            flow.waiting += 100_000_000
            turns._free, turns.tick_over_at = False, 1e-9
            sent = asyncio.create_task(ask(client, ALICE, sending("orders"), b"x"))
            await until(
                lambda: sent.done() or any(one.waiting for one in listener.connections)
            )
            assert not sent.done()
            flow.waiting -= 100_000_000
            turns._tick()
            assert (await sent).code == 0


@looped
async def test_what_comes_is_begun_at_once_until_somebody_waits():
    turns = FairQueue(LimitsConfig(), Log(), Leadership())
    assert turns.is_free()
    assert turns.is_free()
    taken: list[str] = []
    Asking("one", turns, 1, taken)
    assert not turns.is_free()
    await until(lambda: taken)
    await until(turns.is_free)


@looped
async def test_sends_are_refused_when_half_of_the_wait_is_foreseen_or_the_log_is_late():
    log = Log()
    turns = FairQueue(LimitsConfig(send_wait_ms=200), log, Leadership())
    flow, other = turns.flow("one"), turns.flow("other")
    flow.waiting = 4_000
    assert not turns.why_late(flow)
    flow.waiting = 6_000
    assert turns.why_late(flow) == "sends wait for 120 ms; allowed: 200"
    assert not turns.why_late(other)
    flow.waiting = 0
    assert turns.is_free()
    log.overdue_ms = 250
    assert (
        turns.why_late(flow)
        == turns.why_late(other)
        == ("the log has not stored a message that came 250 ms ago")
    )
    await until(lambda: not turns.is_free())
    log.overdue_ms = 0
    await until(turns.is_free)


@looped
async def test_requests_beyond_what_may_wait_are_left_in_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """None is lost, and none is answered out of order."""
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TICK_S", SHORT_TICK_S)
    limits = LimitsConfig(send_wait_ms=60_000)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), b"first")
        app.server.turns._limit_bytes = 1
        (connection,) = app.server.listeners[0].connections
        most = 0
        append = type(app.node.topics.get("orders").partitions[0]).append

        def counted(*args):
            nonlocal most
            most = max(most, connection.waiting)
            return append(*args)

        partition = app.node.topics.get("orders").partitions[0]
        type(partition).append, body = counted, bytes(8000)
        try:
            answers = await all_of(
                [client.send(sending("orders"), body) for _ in range(MANY)]
            )
        finally:
            type(partition).append = append
        offsets = [one.read(SendReply).queue_offset for one in answers]
        assert offsets == list(range(1, MANY + 1))
        assert 0 < most < MANY // 2
        assert (app.server.turns.waiting, app.server.turns.waiting_bytes) == (0, 0)


@looped
async def test_sends_that_wait_for_too_long_are_refused_and_the_rest_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TICK_S", SHORT_TICK_S)
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"first")
        turns, patient_s = app.server.turns, app.server.turns.wait_s
        turns.wait_s = 0.001
        sends = [client.send(sending("orders"), bytes(200)) for _ in range(MANY)]
        others = [client.send(GetAllTopicList()) for _ in range(20)]
        answers = await all_of(sends)
        refused = [one for one in answers if one.code == ResponseCode.SYSTEM_BUSY]
        accepted = [one for one in answers if one.code == 0]
        assert len(refused) + len(accepted) == MANY
        assert refused
        assert "broker busy, sends wait for" in refused[0].remark
        offsets = [one.read(SendReply).queue_offset for one in accepted]
        assert offsets == list(range(1, len(accepted) + 1))
        assert {one.code for one in await all_of(others)} == {0}
        assert app.node.topics.get("orders").partitions[0].end == len(accepted) + 1
        turns.wait_s = patient_s
        assert (await client.ask(sending("orders"), b"calm again")).code == 0
        (connection,) = app.server.listeners[0].connections
        assert (connection.in_flight, connection.waiting) == (0, 0)
        assert (turns.waiting, turns.waiting_bytes) == (0, 0)


@looped
async def test_a_connection_that_ends_while_it_waits_leaves_nothing_behind(
    tmp_path: Path,
):
    limits = LimitsConfig(write_buffer_bytes=1 << 20)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), bytes(1 << 20))
        await client.ask(pulling("orders"))
        listener = app.server.listeners[0]
        turns = app.server.turns
        pulls = b"".join(
            encode_frame(
                RequestCode.PULL_MESSAGE, one, fields=to_fields(pulling("orders"))
            )
            for one in range(200)
        )
        with socket.create_connection((listener.host, listener.port)) as lazy:
            lazy.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(lazy, pulls)
            await until(lambda: any(one.congested for one in listener.connections))
            await until(lambda: turns.waiting > 100)
            assert turns.waiting_bytes > len(pulls) // 2
        await until(lambda: len(listener.connections) == 1)
        assert (turns.waiting, turns.waiting_bytes) == (0, 0)
        assert (await client.ask(sending("orders"), b"x")).code == 0


@pytest.mark.rule(
    "README.md",
    "A message is acknowledged only when it is as durable as the log is set up",
)
@looped
async def test_while_the_disk_is_late_sends_are_refused_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes_on = threading.Event()
    goes_on.set()
    fdatasync = os.fdatasync

    def slow(descriptor: int) -> None:
        goes_on.wait(60)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", slow)
    log = LogConfig(segment_bytes=8 << 20, flush="sync")
    limits = LimitsConfig(send_wait_ms=20)
    async with running(tmp_path, log=log, limits=limits) as (app, client):
        try:
            await client.ask(sending("orders"), b"before")
            goes_on.clear()
            waiting = client.send(sending("orders"), b"waits")
            await until(lambda: app.node.log.overdue_ms)
            refused = await client.ask(sending("orders"), b"refused")
            assert refused.code == ResponseCode.SYSTEM_BUSY
            assert "the log has not stored a message that came" in refused.remark
            client.send(sending("orders"), b"refused too", one_way=True)
            async with connect(app.server.listeners[0]) as other:
                assert (await other.ask(sending("orders"), b"refused")).code == 2
                (found,) = (await other.ask(pulling("orders"))).messages()
                assert found.body == b"before"
                assert (await beat(other, "me", "readers")).code == 0
            assert not waiting.done()
        finally:
            goes_on.set()
        assert (await in_time(waiting)).code == 0
        assert (await client.ask(sending("orders"), b"after")).code == 0
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"before", b"waits", b"after"]
