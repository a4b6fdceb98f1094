"""Turns: who is begun when more comes than can be worked on, and who is refused."""

from __future__ import annotations

import asyncio
import math
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
from tests.remoting import beat, connect, looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from tests.frames import Frame

MANY = 3000
SHORT_TICK_S = 1e-6
"""Only the first to come in a tick is begun at once, however fast the machine is."""


class Leadership:
    """Certain for ever."""

    late_s = certain_until_s = math.inf


class Log:
    """A log that is as late as the test says."""

    late_ms = 0
    appended_bytes = 0

    def overdue_ms(self) -> int:
        return self.late_ms

    def waiting_bytes(self) -> int:
        return self.appended_bytes or bool(self.late_ms)


class Asking:
    """A connection that has so many turns' worth of requests."""

    has_large = False

    def __init__(
        self,
        name: str,
        fair_queue: FairQueue,
        count: int,
        taken: list[str],
        flow: str = "one",
    ) -> None:
        self._name = name
        self.flow = fair_queue.flow(flow)
        self._fair_queue = fair_queue
        self._count = count
        self._taken = taken
        fair_queue.join(self)

    def take_turn(self, _now: float, _until: float) -> int:
        self._taken.append(self._name)
        self._count -= 1
        if self._count:
            self._fair_queue.join(self)
        return 1


def slow_disk(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Have writes to the disk wait while what is returned is cleared."""
    (goes_on := threading.Event()).set()
    fdatasync = os.fdatasync

    def slow(descriptor: int) -> None:
        goes_on.wait(60)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", slow)
    return goes_on


async def all_of(answers: list[asyncio.Future[Frame]]) -> list[Frame]:
    return await asyncio.wait_for(asyncio.gather(*answers), 60)


async def in_time(answer: Awaitable[Frame]) -> Frame:
    return await asyncio.wait_for(answer, 120)


@looped
async def test_who_asks_for_much_does_not_hold_up_who_asks_for_little():
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    Asking("much", fair_queue, 4, taken)
    Asking("little", fair_queue, 1, taken)
    Asking("some", fair_queue, 2, taken)
    await until(lambda: len(taken) == 7)
    assert taken == ["much", "little", "some", "much", "some", "much", "much"]


@looped
async def test_nobody_has_more_turns_by_having_more_connections():
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    for number in range(4):
        Asking(f"many{number}", fair_queue, 2, taken, "many")
    Asking("single", fair_queue, 2, taken, "single")
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
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    taken: list[str] = []
    failing = Failing("failing", fair_queue, 2, taken, "one")
    Asking("other", fair_queue, 3, taken, "two")
    await until(lambda: len(taken) == 3)
    assert failing.closed
    await until(fair_queue.is_free)


@looped
async def test_long_work_waits_for_turns_while_others_do():
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    slices = fair_queue.slices("long")
    # Nobody waits: no pause.
    await asyncio.wait_for(slices.pause(), 120)
    taken: list[str] = []
    Asking("one", fair_queue, 3, taken, "short")

    async def work() -> None:
        for _ in range(3):
            await slices.pause()
            taken.append("long")
            # Its turn is over.
            slices.flow.until = 0.0

    await asyncio.wait_for(work(), 120)
    assert taken.index("long") > taken.index("one")
    await until(lambda: taken.count("one") == 3)
    # One that gave up while it waited takes no turn.
    fair_queue.is_free()
    Asking("two", fair_queue, 1, taken, "short")
    waiting = asyncio.create_task(fair_queue.slices("gone").pause())
    await asyncio.sleep(0)
    waiting.cancel()
    await until(fair_queue.is_free)


@looped
async def test_a_send_that_waits_for_its_turn_for_too_long_is_told_why():
    fair_queue = FairQueue(LimitsConfig(send_wait_ms=1), Log(), Leadership())
    assert not await fair_queue.slices("sender").why_late()
    with busy(fair_queue):
        why = await asyncio.wait_for(fair_queue.slices("sender").why_late(), 60)
    assert why.endswith("allowed: 1")


@looped
async def test_what_long_work_keeps_counts_as_waiting_while_it_pauses():
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=100), Log(), Leadership())
    Asking("one", fair_queue, 1_000_000, [], "short")
    pauses = [fair_queue.slices("long", 60).pause() for _ in range(2)]
    pausing = [asyncio.create_task(one) for one in pauses]
    await asyncio.sleep(0)
    assert fair_queue.is_full(fair_queue.flow("long"))
    assert not fair_queue.is_full(fair_queue.flow("short"))
    pausing[0].cancel()
    await asyncio.wait_for(pausing[1], 120)
    assert fair_queue.waiting_bytes == 0


@looped
async def test_large_requests_are_few_and_one_of_each_flow():
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    mine, also_mine, other = (fair_queue.slices(one) for one in ("a", "a", "b"))
    await mine.begin_large()
    second = asyncio.create_task(also_mine.begin_large())
    await asyncio.wait_for(other.begin_large(), 120)
    assert not second.done()
    mine.end_large()
    await asyncio.wait_for(second, 120)
    others = [fair_queue.slices(name) for name in "cd"]
    for one in others:
        await asyncio.wait_for(one.begin_large(), 120)
    fifth = asyncio.create_task(fair_queue.slices("e").begin_large())
    await asyncio.sleep(0)
    assert not fifth.done()
    # Who gives up leaves its place.
    fifth.cancel()
    await asyncio.wait([fifth])
    also_mine.end_large()
    await asyncio.wait_for(fair_queue.slices("e").begin_large(), 120)


@looped
async def test_who_is_unknown_is_not_refused_for_what_others_of_its_address_send(
    tmp_path: Path,
):
    async with guarded(tmp_path, allow("Topic:*", "Pub")) as (app, _):
        fair_queue, listener = app.node.fair_queue, app.server.listeners[0]
        async with connect(listener) as client:
            # As if very much waited that somebody else has sent from here.
            flow = fair_queue.flow("127.0.0.1")
            flow.waiting += 100_000_000
            fair_queue._free, fair_queue.tick_over_at = False, 1e-9
            sent = asyncio.create_task(ask(client, ALICE, sending("orders"), b"x"))
            await until(
                lambda: sent.done() or any(one.waiting for one in listener.connections)
            )
            assert not sent.done()
            flow.waiting -= 100_000_000
            fair_queue._tick()
            assert (await sent).code == 0


@looped
async def test_what_comes_is_begun_at_once_until_somebody_waits():
    fair_queue = FairQueue(LimitsConfig(), Log(), Leadership())
    assert fair_queue.is_free()
    assert fair_queue.is_free()
    taken: list[str] = []
    Asking("one", fair_queue, 1, taken)
    assert not fair_queue.is_free()
    await until(lambda: taken)
    await until(fair_queue.is_free)


@looped
async def test_sends_are_refused_when_half_of_the_wait_is_foreseen_or_the_log_is_late():
    log = Log()
    fair_queue = FairQueue(LimitsConfig(send_wait_ms=200), log, Leadership())
    flow, other = fair_queue.flow("one"), fair_queue.flow("other")
    flow.waiting = 4_000
    assert not fair_queue.why_late(flow)
    flow.waiting = 6_000
    assert fair_queue.why_late(flow) == "sends wait for 120 ms; allowed: 200"
    assert not fair_queue.why_late(other)
    flow.waiting = 0
    assert fair_queue.is_free()
    log.late_ms = 250
    why = "the log has not stored a message that came 250 ms ago"
    assert {fair_queue.why_late(one) for one in (flow, other)} == {why}
    await until(lambda: not fair_queue.is_free())
    log.late_ms = 0
    await until(fair_queue.is_free)


@looped
async def test_requests_beyond_what_may_wait_are_left_in_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """None is lost, and none is answered out of order."""
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TICK_S", SHORT_TICK_S)
    limits = LimitsConfig(send_wait_ms=60_000)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), b"first")
        app.server.fair_queue._limit_bytes = 1
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
        assert (app.server.fair_queue.waiting, app.server.fair_queue.waiting_bytes) == (
            0,
            0,
        )


@looped
async def test_sends_that_wait_for_too_long_are_refused_and_the_rest_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TICK_S", SHORT_TICK_S)
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"first")
        fair_queue, patient_s = app.server.fair_queue, app.server.fair_queue.wait_s
        fair_queue.wait_s = 0.001
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
        fair_queue.wait_s = patient_s
        assert (await client.ask(sending("orders"), b"calm again")).code == 0
        (connection,) = app.server.listeners[0].connections
        assert (connection.in_flight, connection.waiting) == (0, 0)
        assert (fair_queue.waiting, fair_queue.waiting_bytes) == (0, 0)


@looped
async def test_a_connection_that_ends_while_it_waits_leaves_nothing_behind(
    tmp_path: Path,
):
    limits = LimitsConfig(write_buffer_bytes=1 << 20)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), bytes(1 << 20))
        await client.ask(pulling("orders"))
        listener = app.server.listeners[0]
        fair_queue = app.server.fair_queue
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
            await until(lambda: fair_queue.waiting > 100)
            assert fair_queue.waiting_bytes > len(pulls) // 2
        await until(lambda: len(listener.connections) == 1)
        assert (fair_queue.waiting, fair_queue.waiting_bytes) == (0, 0)
        assert (await client.ask(sending("orders"), b"x")).code == 0


@pytest.mark.rule(
    "README.md",
    "A message is acknowledged only when it is as durable as the log is set up",
)
@looped
async def test_while_the_disk_is_late_sends_are_refused_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes_on = slow_disk(monkeypatch)
    log = LogConfig(segment_bytes=8 << 20, flush="sync")
    async with running(tmp_path, log=log) as (app, client):
        try:
            await client.ask(sending("orders"), b"before")
            goes_on.clear()
            app.node.log.inner._writer._pace._wait_s = 0.02
            waiting = client.send(sending("orders"), b"waits")
            await until(app.node.log.overdue_ms)
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
