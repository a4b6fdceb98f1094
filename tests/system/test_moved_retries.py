"""What consumers fail comes again, also where its queue has moved meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    RETRY,
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PushConsumer,
    admin_topics,
)
from tests.clients.harness import Session
from tests.clients.programs import JAVA_5
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.test_cluster import running
from tests.system.test_moving import TIMEOUT_S
from tests.system.test_rebalance import (
    BROKERS,
    CONFIG,
    PATIENCE_S,
    QUICK,
    rebalanced,
    until_known,
    until_placed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.client.received import ReceivedMessage
    from tests.clients.fixtures import Agents
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

COUNT, EARLY = 200, 40
PAUSE_MS = 20


async def until_spread(admin: Admin, queues: int) -> None:
    """Return when each broker is known to have so many queues."""
    await until_placed(
        admin, lambda found: [*map(len, found.values())] == [queues] * len(BROKERS)
    )


@looped
async def test_what_is_failed_when_its_queue_has_moved_comes_again(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
) -> None:
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    with running(made):
        for node in made.nodes:
            await until_known(node.name_server)
        where = made.name_server
        moved, complete = asyncio.Event(), asyncio.Event()
        wanted = {b"%d" % number for number in range(EARLY)}
        in_hand: set[bytes] = set()
        handled: set[bytes] = set()

        async def handle(message: ReceivedMessage) -> object:
            if message.body not in in_hand:
                in_hand.add(message.body)
                await moved.wait()
                return RETRY
            handled.add(message.body)
            if handled == wanted:
                complete.set()
            return None

        consumer = PushConsumer(
            where, "failing", consume_from=ConsumeFrom.FIRST_OFFSET, config=CONFIG
        )
        consumer.subscribe("orders", "*", handle)
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(where, "senders", config=QUICK) as producer,
            asyncio.timeout(PATIENCE_S),
        ):
            await admin_topics.create_on(admin, "orders", BROKERS[0], 2)
            await until_placed(admin, lambda found: list(found) == [BROKERS[0]])
            for body in wanted:
                await producer.send(Message("orders", body), timeout_s=TIMEOUT_S)
            async with consumer:
                while not in_hand:  # noqa: ASYNC110 - whatever comes first
                    await asyncio.sleep(0.01)
                await rebalanced(admin)
                await until_spread(admin, 1)
                moved.set()
                await complete.wait()


def test_a_client_in_java_gets_again_what_it_fails_under_a_move(
    pulsar: Pulsar, zookeeper: ZooKeeper, agents: Agents, tmp_path: Path
) -> None:
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    session = Session(agents.of(JAVA_5), made.name_server)

    async def prepare() -> None:
        for node in made.nodes:
            await until_known(node.name_server)
        async with Admin(made.name_server, config=PATIENT) as admin:
            await admin_topics.create_on(admin, "orders", BROKERS[0], 4)
            await until_placed(admin, lambda found: list(found) == [BROKERS[0]])

    async def spread() -> None:
        async with Admin(made.name_server, config=PATIENT) as admin:
            await rebalanced(admin)
            await until_spread(admin, 2)

    with running(made):
        asyncio.run(prepare())
        consumer = session.start(
            "consume",
            topic="orders",
            group="failing",
            poll_routes_ms=1000,
            fail=1,
            delay_level=1,
        )
        sending = session.call(
            "produce",
            topic="orders",
            messages=[{"body": f"{number}"} for number in range(COUNT)],
            pause_ms=PAUSE_MS,
            retry_for_ms=int(PATIENCE_S * 1000),
            poll_routes_ms=1000,
        )
        sending.wait_for(EARLY, "sent", PATIENCE_S)
        asyncio.run(spread())
        sending.wait_for(1, "done", PATIENCE_S)
        assert not sending.events("failed")
        wanted = {one["body"] for one in sending.events("sent")}
        assert len(wanted) == COUNT
        consumer.wait(
            lambda events: (
                wanted <= {one["body"] for one in events if one.get("accepted")}
            ),
            seconds=PATIENCE_S,
        )
        consumer.stop()
