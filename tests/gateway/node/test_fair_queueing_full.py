"""Turns where too much waits: who has more than its share is held back, no others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.processors import auto_create
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.clients import HeartBeat
from tests.gateway.node.test_fair_queueing import (
    SHORT_TICK_S,
    Asking,
    Leadership,
    Log,
    in_time,
)
from tests.guarded import ALICE, ROOT, acl_of, allow, ask, populate
from tests.remoting import connect, looped, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


MANY = 600


class Quiet(Asking):
    """A connection that has nothing to ask for, and asks for no turn by itself."""

    def take_turn(self, _now: float, _until: float) -> int:
        self._taken.append(self._name)
        return 0


@looped
async def test_who_keeps_too_much_is_held_back_and_others_are_not():
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=100), Log(), Leadership())
    much, little = fair_queue.flow("much"), fair_queue.flow("little")
    fair_queue.keep(much, 101)
    fair_queue.keep(little, 50)
    assert (fair_queue.is_full(much), fair_queue.is_full(little)) == (True, False)
    # A share is what there is by those who keep anything.
    fair_queue.keep(little, 1)
    assert fair_queue.is_full(little)
    taken: list[str] = []
    held = Quiet("held", fair_queue, 0, taken, "much")
    gone = Quiet("gone", fair_queue, 0, taken, "little")
    await until(lambda: fair_queue.tick_over_at == 0.0)
    assert taken == ["held", "gone"]
    fair_queue.hold_back(held)
    fair_queue.hold_back(gone)
    little.held_back.pop(gone)
    fair_queue.keep(little, -1)
    # Nobody turns in circles meanwhile.
    await until(lambda: fair_queue.tick_over_at == 0.0)
    assert taken == ["held", "gone"]
    fair_queue.keep(much, -101)
    await until(lambda: fair_queue.tick_over_at == 0.0)
    assert taken == ["held", "gone", "held"]
    fair_queue.keep(little, -50)
    await until(lambda: fair_queue.tick_over_at == 0.0)
    assert (fair_queue.waiting_bytes, len(taken)) == (0, 3)


@looped
async def test_what_waits_to_be_inflated_counts_and_nobody_begins_beside_the_turns():
    fair_queue = FairQueue(LimitsConfig(waiting_bytes=100), Log(), Leadership())
    first, second = fair_queue.slices("bombs"), fair_queue.slices("bombs")
    await first.begin_large(1000)
    assert (fair_queue.waiting_bytes, fair_queue.is_free()) == (0, True)
    waiting = asyncio.create_task(second.begin_large(101))
    await until(lambda: fair_queue.is_full(fair_queue.flow("bombs")))
    await until(lambda: not fair_queue.is_free())
    assert not fair_queue.is_full(fair_queue.flow("others"))
    first.end_large()
    await in_time(waiting)
    assert fair_queue.waiting_bytes == 0
    await until(fair_queue.is_free)
    second.end_large()


def standing_still(monkeypatch: pytest.MonkeyPatch, name: str) -> asyncio.Event:
    """Have what makes topics or groups wait until this is set."""
    goes_on = asyncio.Event()
    make = getattr(auto_create, name)

    async def make_later(*args: Any) -> Any:
        await goes_on.wait()
        return await make(*args)

    monkeypatch.setattr(auto_create, name, make_later)
    return goes_on


@pytest.mark.slow
@looped
async def test_who_sends_little_is_served_while_anothers_long_work_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # A heartbeat waits for the route store at its first new group.
    goes_on = standing_still(monkeypatch, "ensure_group")
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TICK_S", SHORT_TICK_S)
    rules = (allow("Topic:*"), allow("Group:*"))
    limits = LimitsConfig(waiting_bytes=1 << 20)
    guards = acl_of(tmp_path)
    async with running(tmp_path, acl=guards, limits=limits) as (app, client):
        await populate(app, *rules)
        wanted = [bodies.SubscriptionData(f"t{one}", "*") for one in range(4)]
        beats = bodies.encode(
            bodies.HeartbeatData(
                client_id="much",
                consumer_data_set=[
                    bodies.ConsumerData(f"g{one}", subscription_data_set=wanted)
                    for one in range(1000)
                ],
            )
        )
        fair_queue = app.server.fair_queue
        async with connect(app.server.listeners[0]) as little:
            await ask(little, ROOT, sending("quiet"), b"first")
            asked = [
                asyncio.create_task(ask(client, ALICE, HeartBeat(), beats))
                for _ in range(8)
            ]
            await until(lambda: fair_queue.waiting_bytes > 1 << 20)
            for _ in range(3):
                # Of many at once, some wait for turns.
                many = [ask(little, ROOT, sending("quiet"), b"x") for _ in range(40)]
                for answer in await in_time(asyncio.gather(*many)):
                    assert answer.code == 0
            goes_on.set()
            assert {one.code for one in await asyncio.gather(*asked)} == {0}
        assert fair_queue.waiting_bytes == 0


@looped
async def test_sends_that_wait_for_a_topic_to_be_made_count_and_hold_back_who_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes_on = standing_still(monkeypatch, "auto_create")
    limits = LimitsConfig(waiting_bytes=1 << 20, send_wait_ms=600_000)
    async with running(tmp_path, limits=limits) as (app, client):
        fair_queue, pending = app.server.fair_queue, app.node.pending_sends.waiting
        long = "x" * 30_000
        slow = sending("slow", properties=f"a\x01{long}")
        answers = asyncio.gather(*(client.send(slow, b"x") for _ in range(MANY)))
        await until(lambda: fair_queue.is_full(fair_queue.flow("127.0.0.1")))
        await until(lambda: fair_queue.tick_over_at == 0.0)
        begun = len(pending["slow"])
        goes_on.set()
        found = await asyncio.wait_for(answers, 300)
        # Some of it came together; the rest was left in the network.
        assert begun < MANY // 2
        # The disk may have too much to do.
        assert {one.code for one in found} <= {0, ResponseCode.SYSTEM_BUSY}
        stored = [int(one.fields["queueOffset"]) for one in found if not one.code]
        assert stored
        assert stored == list(range(len(stored)))
        assert fair_queue.waiting_bytes == 0
