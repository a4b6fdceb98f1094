"""A broker on Pulsar is emptied for good under clients, removed, and comes as new."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from ropeway.client import (
    RETRY,
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PushConsumer,
    RemotingError,
    admin_drains,
    admin_topics,
)
from ropeway.gateway.node import names
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT, eventually
from tests.system.cluster import Cluster
from tests.system.test_cluster import running
from tests.system.test_moving import TIMEOUT_S, command, send_on
from tests.system.test_rebalance import (
    BROKERS,
    CONFIG,
    PATIENCE_S,
    PAUSE_S,
    QUICK,
    in_order,
    read,
    reader,
    rebalanced,
    until_known,
    until_placed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.client.received import ReceivedMessage
    from ropeway.gateway.wire.commands.drains import DrainState
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

LEAVING = BROKERS[1]
REFUSED = 6
DELAYED = {"DELAY": "2"}
TIMED = {"TIMER_DELAY_MS": "4000"}
FAR = {"TIMER_DELAY_MS": str(30 * 86_400_000)}


@looped
async def test_a_broker_is_emptied_whoever_is_killed_and_nothing_is_lost(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    with running(made):
        staying, leaving = made.nodes
        for node in made.nodes:
            await until_known(node.name_server)
        stop = asyncio.Event()
        where = staying.name_server
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(made.name_server, "senders", config=QUICK) as producer,
            reader(made.name_server, "live") as live,
        ):
            await admin.create_topic("orders", 3)
            early = await send_waiting(producer)
            far = await send_far(producer)
            refused = await refuse(made.name_server, admin, producer)
            sending = asyncio.create_task(send_on(producer, "orders", stop))
            before = await admin_topics.places(admin, "orders")
            assert {name: len(each) for name, each in before.items()} == dict.fromkeys(
                BROKERS, 3
            )
            shown = json.loads(await drained(made, "--dry-run"))
            assert shown["queues"]["orders"] == 3
            assert not shown["draining"]

            # The command is killed, and then the node.
            killed = await started(made)
            await until_placed(admin, lambda found: len(found[BROKERS[0]]) > 3)
            with suppress(ProcessLookupError):  # it was faster
                killed.kill()
            await killed.wait()
            await asyncio.to_thread(leaving.kill)
            await asyncio.to_thread(leaving.start)
            await until_known(where)
            assert (await looked_at(admin)).draining
            printed = json.loads(await drained(made))
            assert printed["left"] == {}
            places = await admin_topics.places(admin, "orders")
            assert list(places) == [BROKERS[0]]
            assert sorted(places[BROKERS[0]]) == sorted(chain(*before.values()))

            stop.set()
            sent = await sending
            received = await read(live, {*early, *sent})
            assert {one.body for one in received} >= {*early, *sent}
            on_time = [one for one in received if int(one.body) >= 0]
            assert in_order(on_time)
            again = len(received) - len({one.body for one in received})
            print(f"{len(sent)} messages under a drain; {again} came again")

            # What was refused comes again, and what is dead is kept.
            assert await handled(where, "refusing", None) == refused
            dead = names.dlq_topic("burying")
            for name in (dead, names.retry_topic("refusing")):
                assert list(await admin_topics.places(admin, name)) == [BROKERS[0]]
            async with reader(where, "auditors", dead) as auditor:
                found = await read(auditor, refused)
            assert {one.body for one in found} == refused

            removing = ["broker", "remove", LEAVING, "--yes"]
            running_one = await command(made, *removing, code=1)
            assert f"{LEAVING} runs; stop its nodes first" in running_one
            await asyncio.to_thread(leaving.stop)
            await removed(made)
            # What is timed for next month has kept nobody waiting, and waits on.
            # Those that were moved are taken in there a moment later.
            await eventually(
                lambda: admin.waiting("orders"),
                lambda waiting: {one.msg_id for one in waiting} == far,
            )
            for topic in await admin.topics():
                assert LEAVING not in await admin_topics.places(admin, topic)

            # One of that name is a new one, and gets its part.
            await asyncio.to_thread(leaving.start)
            await until_known(where)
            await until_known(leaving.name_server)
            await rebalanced(admin, "orders")
            await rebalanced(admin, "refused")
            assert set(await admin_topics.places(admin, "refused")) == set(BROKERS)
            await until_placed(
                admin, lambda found: {3} == set(map(len, found.values()))
            )
            # The producer hears of its queues a moment later.
            late, to = [], set()
            async with asyncio.timeout(PATIENCE_S):
                while LEAVING not in to:
                    late.append(b"%d" % (10_000 + len(late)))
                    message = Message("orders", late[-1])
                    sent_to = await producer.send(message, timeout_s=TIMEOUT_S)
                    to.add(sent_to.queue.broker_name)
            found = await read(live, set(late), broker=LEAVING)
            assert {one.body for one in found} >= set(late)


async def send_waiting(producer: Producer) -> set[bytes]:
    """Send messages that wait on both brokers; their bodies, which are below 0."""
    bodies = [b"%d" % number for number in range(-48, 0)]
    for number, body in enumerate(bodies):
        pairs = DELAYED if number % 2 else TIMED
        message = Message("orders", body, properties=pairs)
        await producer.send(message, timeout_s=TIMEOUT_S)
    return set(bodies)


async def send_far(producer: Producer) -> set[str]:
    """Send messages that are timed for next month, to both brokers; their ids."""
    sent = [
        await producer.send(
            Message("orders", b"far", properties=FAR), timeout_s=TIMEOUT_S
        )
        for _ in range(6)
    ]
    return {one.msg_id for one in sent}


async def refuse(where: str, admin: Admin, producer: Producer) -> set[bytes]:
    """Have groups refuse messages of the broker that leaves; their bodies.

    Those of one wait to be tried again, those of the other are dead.
    """
    await admin_topics.create_on(admin, "refused", LEAVING, 2)
    wanted = {b"%d" % number for number in range(REFUSED)}
    for body in wanted:
        await producer.send(Message("refused", body), timeout_s=TIMEOUT_S)
    for group, most in (("refusing", None), ("burying", 0)):
        assert await handled(where, group, RETRY, most) == wanted
    return wanted


async def handled(
    where: str, group: str, result: object, most: int | None = None
) -> set[bytes]:
    """What a group gets of the topic of refused messages."""
    found: set[bytes] = set()
    complete = asyncio.Event()

    async def handle(message: ReceivedMessage) -> object:
        assert message.reconsume_times > 0 or result is RETRY
        found.add(message.body)
        if len(found) == REFUSED:
            complete.set()
        return result

    consumer = PushConsumer(
        where,
        group,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        config=structs.replace(CONFIG, max_reconsume_times=most),
    )
    consumer.subscribe("refused", "*", handle)
    async with consumer, asyncio.timeout(PATIENCE_S):
        await complete.wait()
    return found


async def looked_at(admin: Admin) -> DrainState:
    """What is on the broker, as soon as somebody leads it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(RemotingError):
                return await admin_drains.look(admin, LEAVING)
            await asyncio.sleep(PAUSE_S)


async def drained(cluster: Cluster, *options: str) -> str:
    if "--dry-run" not in options:
        options = (*options, "--yes")
    return await command(cluster, "broker", "drain", LEAVING, *options)


async def started(cluster: Cluster) -> asyncio.subprocess.Process:
    """A drain that goes on."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ropeway.gateway.cli.main", "broker", "drain", LEAVING),
        *("--yes", "--name-server", cluster.name_server),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def removed(cluster: Cluster) -> None:
    """Remove the broker, as soon as its node is forgotten."""
    async with (
        asyncio.timeout(PATIENCE_S),
        Admin(cluster.nodes[0].name_server, config=PATIENT) as one,
    ):
        while True:
            if LEAVING not in (await one.clusters()).get("DefaultCluster", ()):
                break
            await asyncio.sleep(PAUSE_S)
        done = await admin_drains.remove(one, LEAVING)
    assert done.left == {}
    assert done.own_topics > 1
