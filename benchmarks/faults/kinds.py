"""The faults: what is done to which part, and who is hit by it."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.faults.calls import Caller, NotSentError, ranks
from benchmarks.faults.place import NAMESPACE, SESSION_S
from ropeway.client import Admin, ClientConfig, RemotingError, admin_moves, admin_nodes
from ropeway.client.admin_moves import Move
from tests.requests import pulling, sending
from tests.starts import StartError
from tests.system.node_places import places
from tests.system.process import stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from benchmarks.faults.calls import Router
    from benchmarks.faults.place import Node, Place
    from tests.system.pulsar_servers import Bookie

TOPIC = "soak"
BESIDE = "beside"
FROZEN_S = 14.0
DEAD_S = 15.0
"""Longer than a bookie's session in ZooKeeper, 10 s by default. With Pulsar 4.0.8 one
that is back sooner ends: docs/pulsar.md, "Bookies that are forgotten"."""
PULSAR_DEAD_S = 35.0
"""Likewise; the session of the bookie in its process lasts 30 s."""
HELD_S = 8.0
LEAP_S = 3600.0
LEPT_S = 5.0
AGAIN_S = 0.2
PATIENCE_S = 180.0
PATIENT = ClientConfig(request_timeout_s=60.0)
FIRST, SECOND = "broker-0", "broker-1"
ALL = ""


class Scene(NamedTuple):
    """What a fault may use."""

    place: Place
    router: Router
    random: Random
    report: Callable[[str], None]

    async def in_order(self, broker: str = FIRST) -> list[Node]:
        """A broker's nodes, the master first, once they are as many as there are."""
        wanted = [node for node in self.place.nodes if node.broker == broker]
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError, TimeoutError, LookupError, NotSentError):
                found = (await ranks(wanted[0].address)).get(broker, [])
                if len(found) == len(wanted):
                    by_address = {node.address: node for node in wanted}
                    return [by_address[one] for one in found]
            if time.monotonic() > give_up_s:
                raise TimeoutError(f"{broker} has not all its nodes")
            await asyncio.sleep(AGAIN_S)


class Hit(NamedTuple):
    """Who was hit, and since when that is counted."""

    broker: str
    since_s: float | None = None


async def _again(node: Node) -> None:
    await asyncio.to_thread(node.start)


async def kill_master(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    await asyncio.to_thread(master.kill)
    await _again(master)
    return Hit(FIRST)


async def kill_standby(scene: Scene) -> Hit:
    _, standby = await scene.in_order()
    await asyncio.to_thread(standby.kill)
    await _again(standby)
    return Hit(FIRST)


async def kill_both(scene: Scene) -> Hit:
    nodes = await scene.in_order()
    for node in nodes:
        await asyncio.to_thread(node.kill)
    for node in nodes:
        await _again(node)
    return Hit(FIRST)


async def stop_master(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    await asyncio.to_thread(master.stop)
    await _again(master)
    return Hit(FIRST)


async def freeze_master(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    async with master.frozen():
        await asyncio.sleep(FROZEN_S)
    return Hit(FIRST)


async def expire_master(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    with places(scene.place.routes) as held:
        await asyncio.to_thread(held.expire, master.name)
    return Hit(FIRST)


async def expire_standby(scene: Scene) -> Hit:
    _, standby = await scene.in_order()
    with places(scene.place.routes) as held:
        await asyncio.to_thread(held.expire, standby.name)
    return Hit(FIRST)


async def delete_master(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    with places(scene.place.routes) as held:
        await asyncio.to_thread(held.delete, master.name)
    return Hit(FIRST)


async def restart_zookeeper(scene: Scene) -> Hit:
    zookeeper = scene.place.zookeeper
    await asyncio.to_thread(zookeeper.kill)
    await asyncio.to_thread(zookeeper.start)
    return Hit(ALL)


async def freeze_zookeeper(scene: Scene) -> Hit:
    with scene.place.zookeeper.paused():
        await asyncio.sleep(SESSION_S * 2)
    return Hit(ALL)


async def unload_namespace(scene: Scene) -> Hit:
    await asyncio.to_thread(scene.place.admin, "PUT", f"namespaces/{NAMESPACE}/unload")
    return Hit(ALL)


async def unload_partition(scene: Scene) -> Hit:
    topic, partition = _partition(scene)
    name = f"{NAMESPACE}/{topic}-partition-{partition}"
    await asyncio.to_thread(scene.place.admin, "PUT", f"persistent/{name}/unload")
    return Hit(scene.router.places[topic, partition].broker)


def _partition(scene: Scene) -> tuple[str, int]:
    places = [one for one in scene.router.places if one[0] == TOPIC]
    return scene.random.choice(places)


async def restart_pulsar(scene: Scene) -> Hit:
    await asyncio.to_thread(scene.place.pulsar.kill)
    await asyncio.sleep(PULSAR_DEAD_S)
    return await _pulsar_ready(scene)


async def stop_pulsar(scene: Scene) -> Hit:
    await asyncio.to_thread(scene.place.pulsar.stop)
    return await _pulsar_ready(scene)


async def _pulsar_ready(scene: Scene) -> Hit:
    """Start Pulsar until it is ready: on a busy machine one start may not be enough."""
    while True:
        try:
            await asyncio.to_thread(scene.place.pulsar.start)
        except StartError as error:
            print(f"Pulsar is started again: {str(error).splitlines()[0]}", flush=True)
            await asyncio.to_thread(scene.place.pulsar.kill)
        else:
            return Hit(ALL, time.monotonic())


async def kill_bookie(scene: Scene) -> Hit:
    bookie = await _bookie(scene)
    await asyncio.to_thread(bookie.kill)
    await asyncio.sleep(DEAD_S)
    await asyncio.to_thread(bookie.start)
    return Hit(ALL)


async def freeze_bookie(scene: Scene) -> Hit:
    bookie = await _bookie(scene)
    with stopped(bookie.pid):
        await asyncio.sleep(FROZEN_S)
    return Hit(ALL)


async def _bookie(scene: Scene) -> Bookie:
    """One that a queue is written to now: nothing comes soon to one that was dead."""
    while True:
        topic, partition = _partition(scene)
        found = await asyncio.to_thread(
            scene.place.bookies_of, f"{topic}-partition-{partition}"
        )
        if found:
            return scene.random.choice(found)
        await asyncio.sleep(AGAIN_S)


async def cut_connections(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    master.proxy.cut()
    return Hit(FIRST)


async def strand_connections(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    master.proxy.strand()
    return Hit(FIRST)


async def hold_connections(scene: Scene) -> Hit:
    master, _ = await scene.in_order()
    master.proxy.hold()
    await asyncio.sleep(HELD_S)
    master.proxy.release()
    return Hit(FIRST)


async def move_queue(scene: Scene) -> Hit:
    """Move the last queue of the broker that has more of them, or of either."""
    shares: dict[str, list[tuple[int, int]]] = {FIRST: [], SECOND: []}
    for (topic, partition), place in scene.router.places.items():
        if topic == TOPIC:
            shares[place.broker].append((place.queue_id, partition))
    sizes = {broker: len(share) for broker, share in shares.items()}
    giver = max(sizes, key=lambda one: (sizes[one], scene.random.random()))
    taker = SECOND if giver == FIRST else FIRST
    last, partition = max(shares[giver])
    one = Move(TOPIC, giver, last, taker, sizes[taker], partition)
    async with Admin(scene.place.name_server, config=PATIENT) as admin:
        await admin_moves.move(admin, one)
    return Hit(giver)


async def move_master(scene: Scene) -> Hit:
    _, standby = await scene.in_order()
    async with Admin(scene.place.name_server, config=PATIENT) as admin:
        await admin_nodes.move(admin, FIRST, standby.name)
    return Hit(FIRST)


async def leap_forward(scene: Scene) -> Hit:
    return await _leap(scene, LEAP_S)


async def leap_back(scene: Scene) -> Hit:
    return await _leap(scene, -LEAP_S)


async def _leap(scene: Scene, seconds: float) -> Hit:
    master, _ = await scene.in_order()
    master.set_clock(seconds)
    await asyncio.sleep(LEPT_S)
    master.set_clock(0)
    return Hit(FIRST)


async def make_anew(scene: Scene) -> Hit:
    """Delete a topic of both brokers, make it again, and see nothing of the old one."""
    async with Admin(scene.place.name_server, config=PATIENT) as admin:
        bodies = [f"{time.time_ns()}.{generation}".encode() for generation in range(2)]
        for body in bodies:
            await until_done(lambda: admin.delete_topic(BESIDE))
            await until_done(lambda: admin.create_topic(BESIDE, 2))
            for broker, number in itertools.product((FIRST, SECOND), range(2)):
                stored = await _send_and_read(scene, broker, number, body)
                if set(stored) != {body} or not stored:
                    scene.report(
                        f"{BESIDE} of {broker}/{number}, made anew, has {stored}, "
                        f"not {body!r}"
                    )
    return Hit(ALL)


async def until_done(act: Callable[[], Awaitable[object]]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            await act()
        except RemotingError as error:
            if "not exist" in str(error) or "no topic" in str(error):
                return
            if time.monotonic() > give_up_s:
                raise
            await asyncio.sleep(AGAIN_S)
        else:
            return


async def _send_and_read(
    scene: Scene, broker: str, number: int, body: bytes
) -> list[bytes]:
    """Send once with success, and read the queue from its first message on."""
    (master, *_) = await scene.in_order(broker)
    caller = Caller()
    give_up_s = time.monotonic() + PATIENCE_S
    try:
        while True:
            with suppress(OSError, TimeoutError, NotSentError):
                sent = await caller.ask(
                    master.address,
                    sending(BESIDE, queue_id=number),
                    body,
                    seconds=3.0,
                )
                if sent.code == 0:
                    break
            if time.monotonic() > give_up_s:
                raise TimeoutError(f"{BESIDE} of {broker}/{number} takes nothing")
            await asyncio.sleep(AGAIN_S)
        pull = pulling(BESIDE, 0, queue_id=number)
        answer = await caller.ask(master.address, pull, seconds=30.0)
        return [one.body for one in answer.messages()] if answer.code == 0 else []
    finally:
        caller.close()


class Kind(NamedTuple):
    """A fault."""

    name: str
    weight: int
    """How often it comes, beside the others."""
    act: Callable[[Scene], Awaitable[Hit]]


KINDS = (
    Kind("master killed (kill -9)", 16, kill_master),
    Kind("standby killed (kill -9)", 8, kill_standby),
    Kind("both nodes killed", 6, kill_both),
    Kind("master stopped (SIGTERM)", 16, stop_master),
    Kind("master moved (`route move`)", 10, move_master),
    Kind("master frozen for 14 s", 8, freeze_master),
    Kind("master's session expired", 10, expire_master),
    Kind("standby's session expired", 6, expire_standby),
    Kind("master's place in ZooKeeper deleted", 10, delete_master),
    Kind("ZooKeeper killed and started", 8, restart_zookeeper),
    Kind("ZooKeeper frozen for 6 s", 8, freeze_zookeeper),
    Kind("namespace unloaded", 16, unload_namespace),
    Kind("partition unloaded", 16, unload_partition),
    Kind("Pulsar killed and started", 5, restart_pulsar),
    Kind("Pulsar stopped and started", 4, stop_pulsar),
    Kind("bookie killed for 15 s", 8, kill_bookie),
    Kind("bookie frozen for 14 s", 8, freeze_bookie),
    Kind("connections to Pulsar reset", 16, cut_connections),
    Kind("connections to Pulsar half open", 5, strand_connections),
    Kind("connections to Pulsar silent for 8 s", 8, hold_connections),
    Kind("queue moved to another broker", 16, move_queue),
    Kind("topic deleted and made again", 10, make_anew),
    Kind("master's clock an hour ahead for 5 s", 6, leap_forward),
    Kind("master's clock an hour back for 5 s", 6, leap_back),
)
