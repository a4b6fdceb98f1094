"""Queues that move between two nodes, whose logs are told that they share one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from ropeway.gateway.config import PopConfig
from ropeway.gateway.node import moves, names
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.moves import MoveQueue, QueueMoved, TakeQueue
from ropeway.storage.api import LogUnavailableError
from tests.gateway.holding import time_stands
from tests.gateway.pop.rig import GROUP, Consumer
from tests.remoting import connect, looped, two_running, until
from tests.requests import committing, pulling, sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.remoting import Remoting

QUEUES = 3


class Shared:
    """What of a shared log a move needs."""

    def __init__(self) -> None:
        self.let_gone: list[int] = []

    async def let_go(self, _topic: str, number: int) -> None:
        self.let_gone.append(number)


@asynccontextmanager
async def two(
    data: Path, **changes: Any
) -> AsyncIterator[tuple[App, App, Remoting, Shared]]:
    """The first broker has a topic of three queues."""
    async with two_running(data, **changes) as ((one, first), (other, second)):
        log = Shared()
        for app in (one, other):
            app.node.moves._log = log
            await until(lambda app=app: app.node.forwarder.others)
        fields = {"topic": "orders", "defaultTopic": "TBW102", "perm": "6"}
        fields |= {"topicFilterType": "SINGLE_TAG", "order": "false"}
        fields |= dict.fromkeys(("readQueueNums", "writeQueueNums"), str(QUEUES))
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        assert (await first.ask(code, fields=fields)).code == 0
        yield one, other, first, log
        del second


def last(header: Any) -> Any:
    return replace(header, queue_id=QUEUES - 1)


def route(app: App) -> dict[str, list[int]]:
    return app.node.routes.topics["orders"].route


@looped
async def test_a_queue_moves_with_what_groups_have_read_of_it(tmp_path: Path):
    async with two(tmp_path) as (one, other, client, log):
        assert (await client.ask(last(sending("orders")), b"sent")).code == 0
        assert (await client.ask(last(committing("orders", 0, 1)))).code == 0
        held = one.node.locks.lock("in-order", "client", [("orders", QUEUES - 1)])
        assert held
        before = route(one)["broker-0"]
        answer = await client.ask(MoveQueue(topic="orders", to_broker="broker-1"))
        moved = bodies.decode(QueueMoved, answer.body)
        assert (moved.giver, moved.from_id, moved.taker, moved.to_id) == (
            *("broker-0", QUEUES - 1),
            *("broker-1", 0),
        )
        assert log.let_gone == [before[-1]] == [moved.partition]
        assert route(one) == {"broker-0": before[:-1], "broker-1": before[-1:]}
        await until(lambda: other.node.topics.get("orders"))
        group = pulling("orders").consumer_group
        assert other.node.offsets.get(group, "orders", 0) == 1
        assert one.node.offsets.get(group, "orders", QUEUES - 1) is None
        # Whoever consumes in order has it to itself, as before.
        (lock,) = other.node.locks.of_queue("orders", 0).values()
        assert lock[0] == "client"
        assert not other.node.locks.lock("in-order", "another", [("orders", 0)])
        # Nothing is kept twice.
        await until(lambda: not any(map(names.is_inner, other.node.offsets.groups())))
        # Clients with the old route try another queue.
        late = await client.ask(last(sending("orders")), b"late")
        assert late.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "look at its route again" in late.remark
        # A queue that is made there again has been read by nobody.
        one.node.offsets.commit("stale", "orders", QUEUES - 1, 9)
        await one.node.topics.put(one.node.routes.topics["orders"])
        assert len(route(one)["broker-0"]) == QUEUES
        assert one.node.offsets.get("stale", "orders", QUEUES - 1) is None


@pytest.mark.parametrize("step", ["let_go", "taken", "changed"])
@looped
async def test_a_move_that_fails_leaves_the_queue_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    async with two(tmp_path) as (one, other, client, log):
        await client.ask(last(committing("orders", 0, 7)))
        before = route(one)

        def fail(*_: object, **__: object) -> None:
            raise LogUnavailableError(step)

        async def fail_late(*_: object) -> None:
            fail()

        with monkeypatch.context() as broken:
            if step == "let_go":
                broken.setattr(log, "let_go", fail_late)
            elif step == "taken":
                # What keeps offsets by time calls it as well, and is not to end by it.
                broken.setattr(other.node.offsets, "flush", fail_late)
            else:
                broken.setattr(moves, "moved", fail)
            wanted = MoveQueue(topic="orders", to_broker="broker-1")
            answer = await client.ask(wanted)
            assert answer.code != 0
            assert step in answer.remark
        assert route(one) == before
        assert (await client.ask(last(sending("orders")), b"here")).code == 0
        group = pulling("orders").consumer_group
        assert one.node.offsets.get(group, "orders", QUEUES - 1) == 7
        # What the other keeps is nobody's, and replaced by the next move.
        await client.ask(last(committing("orders", 0, 8)))
        assert (await client.ask(wanted)).code == 0
        await until(lambda: other.node.topics.get("orders"))
        assert other.node.offsets.get(group, "orders", 0) == 8


@looped
async def test_what_cannot_be_is_refused_with_what_can(tmp_path: Path):
    async with two(tmp_path) as (one, other, client, _):
        for taker, why in (
            ("broker-9", "allowed: broker-1"),
            ("broker-0", "allowed: "),
        ):
            answer = await client.ask(MoveQueue(topic="orders", to_broker=taker))
            assert answer.code == ResponseCode.ILLEGAL_OPERATION
            assert why in answer.remark
        other_one = MoveQueue(topic="orders", to_broker="broker-1", partition=99)
        assert ", not 99; look again" in (await client.ask(other_one)).remark
        async with one.node.topics.lock("orders"):
            busy = MoveQueue(topic="orders", to_broker="broker-1")
            assert "is being changed now" in (await client.ask(busy)).remark
        one.node.moves._log = None
        answer = await client.ask(MoveQueue(topic="orders", to_broker="broker-1"))
        assert answer.code == ResponseCode.ILLEGAL_OPERATION
        assert "embedded log, which no other broker can open" in answer.remark
        taking = await client.ask(TakeQueue())
        assert taking.code == ResponseCode.NO_PERMISSION
        del other


@looped
async def test_a_client_that_goes_away_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with two(tmp_path) as (one, other, client, log):
        await client.ask(last(committing("orders", 0, 7)))
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_topic: str, _number: int) -> None:
            begun.set()
            await go_on.wait()

        monkeypatch.setattr(log, "let_go", slow)
        async with connect(one.server.listeners[0]) as gone:
            gone.send(MoveQueue(topic="orders", to_broker="broker-1"))
            await begun.wait()
        go_on.set()
        await until(lambda: not one.node.topics.lock("orders").locked())
        group = pulling("orders").consumer_group
        if "broker-1" not in route(one):
            wanted = MoveQueue(topic="orders", to_broker="broker-1")
            assert (await client.ask(wanted)).code == 0
        await until(lambda: other.node.topics.get("orders"))
        assert {name: len(each) for name, each in route(one).items()} == {
            "broker-0": QUEUES - 1,
            "broker-1": 1,
        }
        assert len(one.node.topics.get("orders").partitions) == QUEUES - 1
        assert other.node.offsets.get(group, "orders", 0) == 7


@pytest.mark.parametrize("stay_ms", [1, 60_000])
@looped
async def test_popped_messages_come_again_wherever_their_queue_is(
    tmp_path: Path, stay_ms: int
):
    async with two(tmp_path, pop=PopConfig(stay_ms=stay_ms)) as (one, other, client, _):
        for body in (b"done", b"in hand"):
            assert (await client.ask(last(sending("orders")), body)).code == 0
        consumer = Consumer(client, topic="orders")
        found = await consumer.take(2, queue_id=QUEUES - 1)
        if stay_ms > 1:
            assert await consumer.ack(found, 0, QUEUES - 1) == 0
        else:
            pop = one.node.pop
            await until(lambda: pop.has_kept("orders", QUEUES - 1))
            await until(pop.is_idle)
            await until(pop.ledger.is_open)
        move = MoveQueue(topic="orders", to_broker="broker-1")
        await until_moved(client, move)
        await until(lambda: other.node.topics.get("orders"))
        offset = other.node.offsets.get(GROUP, "orders", 0)
        waiting = one.node.timer.topic.partitions[0].end
        # What is young comes again from there; what was old waits to be tried again.
        assert (offset, waiting) == ((1, 0) if stay_ms > 1 else (2, 2))


async def until_moved(client: Remoting, move: MoveQueue) -> None:
    """Ask as often as it is refused for now."""
    while (await client.ask(move)).code:  # noqa: ASYNC110 - asks a server
        await asyncio.sleep(0.02)


@looped
async def test_a_message_that_waits_goes_to_a_queue_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with two(tmp_path) as (one, _, client, _log):
        with time_stands(monkeypatch):
            delayed = last(sending("orders", pairs={"DELAY": "1"}))
            assert (await client.ask(delayed, b"waited")).code == 0
            move = MoveQueue(topic="orders", to_broker="broker-1")
            assert (await client.ask(move)).code == 0
            left = one.node.topics.get("orders").partitions
            assert len(left) == QUEUES - 1
        await until(lambda: sum(partition.end for partition in left) == 1)
