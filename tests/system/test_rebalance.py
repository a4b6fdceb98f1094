"""Queues move between brokers on Pulsar, under clients, and whoever is killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from itertools import chain, cycle
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.client import (
    Admin,
    ConsumeFrom,
    ConsumerConfig,
    Message,
    Producer,
    PullConsumer,
    RemotingError,
    admin_moves,
    admin_topics,
)
from ropeway.client.config import ProducerConfig
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.killed_move import STEPS
from tests.system.test_cluster import reach, running
from tests.system.test_moving import TIMEOUT_S, command, send_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ropeway.client.received import ReceivedMessage
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

BROKERS = ("broker-0", "broker-1")
PATIENCE_S = 120.0
PAUSE_S = 0.2
FIRST = 40
CONFIG = ConsumerConfig(
    route_interval_s=1.0,
    rebalance_interval_s=1.0,
    retry_delay_s=0.2,
    connect_timeout_s=TIMEOUT_S,
    request_timeout_s=TIMEOUT_S,
)
QUICK = ProducerConfig(
    route_interval_s=1.0,
    retries=20,
    connect_timeout_s=TIMEOUT_S,
    request_timeout_s=TIMEOUT_S,
    send_timeout_s=TIMEOUT_S,
    default_queues=4,
)


def reader(name_server: str, group: str, topic: str = "orders") -> PullConsumer:
    found = PullConsumer(
        name_server, group, consume_from=ConsumeFrom.FIRST_OFFSET, config=CONFIG
    )
    found.subscribe(topic)
    return found


async def read(
    consumer: PullConsumer, wanted: set[bytes], *, broker: str | None = None
) -> list[ReceivedMessage]:
    """Messages, until all that are wanted are among them, and one of a broker."""
    found: list[ReceivedMessage] = []
    missing = set(wanted)
    while missing or broker not in {None, *(one.queue.broker_name for one in found)}:
        some = await consumer.poll(PATIENCE_S)
        assert some, f"nothing comes, and {sorted(missing, key=int)} are missing"
        found += some
        missing -= {one.body for one in some}
    return found


def in_order(received: list[ReceivedMessage]) -> bool:
    """Whether messages of a queue came as they were sent; again is no other order."""
    queues: dict[object, list[int]] = {}
    seen = set()
    for one in received:
        if (one.queue, one.body) not in seen:
            seen.add((one.queue, one.body))
            queues.setdefault(one.queue, []).append(int(one.body))
    return all(sent == sorted(sent) for sent in queues.values())


async def until_known(name_server: str) -> None:
    """Return when a node knows both brokers."""
    async with Admin(name_server, config=PATIENT) as admin, asyncio.timeout(PATIENCE_S):
        while True:
            known = chain(*(await admin.clusters()).values())
            if set(known) == set(BROKERS):
                return
            await asyncio.sleep(PAUSE_S)


async def until_placed(
    admin: Admin, condition: Callable[[dict[str, list[int]]], bool]
) -> None:
    """Return when the node that is asked has heard of it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition(await admin_topics.places(admin, "orders")):
                return
            await asyncio.sleep(PAUSE_S)


async def until_kept(cluster: Cluster) -> None:
    """Return when a kill takes back no commit: locks are told when all is kept."""
    queue = bodies.MessageQueue("broker-0", 0, "orders")
    body = bodies.encode(bodies.LockBatchBody("lockers", "test", [queue]))
    async with reach(cluster.nodes[0]) as client:
        answer = await client.ask(RequestCode.LOCK_BATCH_MQ, body=body)
        assert answer.code == 0


async def rebalanced(admin: Admin, topic: str = "orders") -> None:
    """Spread the topic's queues, as often as that is refused for now."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(RemotingError):
                async for _ in admin_moves.rebalance(admin, topic):
                    pass
                return
            await asyncio.sleep(PAUSE_S)


async def send_unevenly(producer: Producer, stop: asyncio.Event) -> list[bytes]:
    """Send as much to the last of three queues as to both others, until told to stop.

    One after the other, so that also a machine that stands still evens them out. What a
    queue that has just moved refuses is sent again.
    """
    sent: list[bytes] = []
    for index in cycle((0, -1, 1, -1, 1, -1, 1, -1)):
        if stop.is_set():
            break
        message = Message("orders", b"%d" % len(sent))
        await until_sent(producer, message, index)
        sent.append(message.body)
        await asyncio.sleep(0.01)
    return sent


async def until_sent(producer: Producer, message: Message, index: int) -> None:
    """Return when the queue of that place among all has the message."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(RemotingError):
                await producer.send(
                    message, selector=lambda found, _: found[index], timeout_s=TIMEOUT_S
                )
                return
            await asyncio.sleep(PAUSE_S)


async def by_load(cluster: Cluster, *words: str) -> list[dict[str, Any]]:
    """What a call prints that moves by load."""
    if "--dry-run" not in words:
        words = (*words, "--yes")
    call = await command(cluster, "route", "rebalance", "--by-load", *words)
    found: list[dict[str, Any]] = json.loads(call)
    return found


async def moved_by_load(cluster: Cluster, *words: str) -> dict[str, Any]:
    """The first move that is named: a machine that stands still sends nothing."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await by_load(cluster, "orders", *words)):
            pass
    (one,) = found
    return one


@looped
async def test_the_queue_that_is_sent_most_moves_under_clients_and_no_other(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    with running(made):
        for node in made.nodes:
            await until_known(node.name_server)
        where = made.name_server
        stop = asyncio.Event()
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(where, "senders", config=QUICK) as producer,
        ):
            await admin_topics.create_on(admin, "orders", "broker-0", 3)
            await until_placed(admin, lambda found: list(found) == ["broker-0"])
            assert await by_load(made, "--all") == []
            (old,) = (await admin_topics.places(admin, "orders")).values()
            sending = asyncio.create_task(send_unevenly(producer, stop))

            named = await moved_by_load(made, "--dry-run")
            after = await admin_topics.places(admin, "orders")
            assert after == {"broker-0": old}
            moved = await moved_by_load(made)
            for one in (named, moved):
                assert one["from"] == "broker-0/2"
                assert one["to"] == "broker-1/0"
                assert one["partition"] == old[2]
                assert one["to_per_s"] == 0
                assert 0 < one["queue_per_s"] < one["from_per_s"]
                assert one["average_per_s"] < one["from_per_s"]
            assert named["took_ms"] is None
            assert moved["took_ms"] is not None
            after = {"broker-0": old[:2], "broker-1": old[2:]}
            await until_placed(admin, lambda found: found == after)

            assert await by_load(made, "orders") == []
            assert await admin_topics.places(admin, "orders") == after
            stop.set()
            sent = await sending
        async with reader(where, "readers") as consumer:
            received = await read(consumer, set(sent), broker="broker-1")
        assert in_order(received)
        # All that the queue had came along, from before the move, too.
        there = [one for one in received if one.queue.broker_name == "broker-1"]
        assert {one.body for one in there} == set(sent[1::2])


@looped
async def test_a_second_broker_gets_queues_under_clients_and_nothing_is_lost(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    first, second = made.nodes
    try:
        await asyncio.to_thread(first.start)
        stop = asyncio.Event()
        where = first.name_server
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(where, "senders", config=QUICK) as producer,
            reader(where, "live") as live,
        ):
            await admin.create_topic("orders", 4)
            early = [b"%d" % number for number in range(-FIRST, 0)]
            for body in early:
                await producer.send(Message("orders", body), timeout_s=TIMEOUT_S)
            async with reader(where, "early") as consumer:
                known = await read(consumer, set(early))
            assert len(known) == FIRST
            await asyncio.to_thread(second.start)
            for node in made.nodes:
                await until_known(node.name_server)
            sending = asyncio.create_task(send_on(producer, "orders", stop))
            wanted = {*early, b"100"}
            lively = asyncio.create_task(read(live, wanted, broker=BROKERS[1]))

            planned = json.loads(
                await command(made, "route", "rebalance", "orders", "--dry-run")
            )
            places = await admin_topics.places(admin, "orders")
            assert list(places) == ["broker-0"]
            spreading = ["route", "rebalance", "--all", "--yes"]
            moved = json.loads(await command(made, *spreading))
            print(f"moved in {[one['took_ms'] for one in moved]} ms")
            assert [{**one, "took_ms": None} for one in moved] == planned
            assert [one["from"] for one in moved] == ["broker-0/3", "broker-0/2"]
            assert [one["to"] for one in moved] == ["broker-1/0", "broker-1/1"]
            old = places["broker-0"]
            after = {"broker-0": old[:2], "broker-1": [old[3], old[2]]}
            await until_placed(admin, lambda found: found == after)
            assert await admin_moves.plan(admin, "orders") == []
            even = await command(made, *spreading, form=())
            assert even == "no queue moves: each broker has as many as it should\n"

            received = await lively
            stop.set()
            sent = await sending
            late = set(sent) - {one.body for one in received}
            received += await read(live, late)
            assert {one.body for one in received} >= {*early, *sent}
            assert in_order(received)
        async with reader(made.name_server, "early") as consumer:
            found = await read(consumer, set(sent))
            # What was committed before came along with the queues.
            assert not {one.body for one in found} & set(early)
            assert in_order(found)
    finally:
        made.kill()


@pytest.mark.parametrize("step", STEPS)
@looped
async def test_a_broker_that_is_killed_leaves_a_queue_with_one_of_the_two(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper, step: str
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    doomed = made.nodes[STEPS[step].broker]
    doomed._python = [sys.executable, "-m", "tests.system.killed_move", step]
    with running(made):
        for node in made.nodes:
            await until_known(node.name_server)
        async with Admin(made.name_server, config=PATIENT) as admin:
            await admin_topics.create_on(admin, "orders", "broker-0", 2)
            early = [b"%d" % number for number in range(FIRST)]
            async with Producer(made.name_server, "senders", config=QUICK) as producer:
                for body in early:
                    await producer.send(Message("orders", body), timeout_s=TIMEOUT_S)
            async with reader(made.name_server, "early") as consumer:
                assert len(await read(consumer, set(early))) == FIRST
            await until_kept(made)
            before = await admin_topics.places(admin, "orders")
            with suppress(RemotingError, TimeoutError):
                async for _ in admin_moves.rebalance(admin, "orders"):
                    pass
        ended = await asyncio.to_thread(doomed._process._process.wait, PATIENCE_S)
        assert ended == -signal.SIGKILL
        doomed.kill()
        doomed._python = [sys.executable]
        await asyncio.to_thread(doomed.start)
        async with Admin(made.name_server, config=PATIENT) as admin:
            places = await admin_topics.places(admin, "orders")
            assert sorted(chain(*places.values())) == sorted(before["broker-0"])
            assert ("broker-1" in places) == STEPS[step].moved
            late = [b"%d" % number for number in range(FIRST, 2 * FIRST)]
            async with Producer(made.name_server, "senders", config=QUICK) as producer:
                for body in late:
                    await producer.send(Message("orders", body), timeout_s=TIMEOUT_S)
            async with reader(made.name_server, "early") as consumer:
                found = await read(consumer, set(late))
                assert not {one.body for one in found} & set(early)
                assert in_order(found)
            if not STEPS[step].moved:
                # It goes on where it was left, as soon as both know each other again.
                await rebalanced(admin)
            await until_placed(
                admin, lambda found: sorted(map(len, found.values())) == [1, 1]
            )
