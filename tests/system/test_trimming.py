"""A topic on Pulsar is trimmed, and stays so wherever its queues go."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    RemotingError,
    admin_messages,
    admin_topics,
    admin_trims,
)
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT, eventually
from tests.system.cluster import Cluster
from tests.system.test_cluster import running
from tests.system.test_moving import TIMEOUT_S, command
from tests.system.test_rebalance import BROKERS, QUICK, until_known

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SENT = 10
FLOOR = 6


async def send(made: Cluster, count: int) -> None:
    """Fill both queues by turns, each with its own offsets as bodies."""
    async with (
        Admin(made.name_server, config=PATIENT) as admin,
        Producer(made.name_server, "senders", config=QUICK) as producer,
    ):
        for queue in (await admin.route("orders")).write_queues:
            for at in range(count):
                message = Message("orders", b"%d" % at)
                await producer.send(message, queue=queue, timeout_s=TIMEOUT_S)


async def read(admin: Admin) -> dict[str, list[bytes]]:
    """What each queue has, read from offset 0 on."""
    return {
        f"{queue.broker_name}/{queue.queue_id}": [
            one.body async for one in admin_messages.read(admin, queue, 0)
        ]
        for queue in (await admin.route("orders")).read_queues
    }


async def is_trimmed(made: Cluster, *queues: str) -> None:
    """Wait until the queues are where they should be, and see what they have."""
    wanted = [b"%d" % at for at in range(FLOOR, SENT)]

    async def look() -> dict[str, list[bytes]]:
        async with Admin(made.name_server, config=PATIENT) as admin:
            try:
                return await read(admin)
            except RemotingError:
                return {}

    found = await eventually(look, lambda found: found.keys() == set(queues))
    assert found == dict.fromkeys(queues, wanted)


@looped
async def test_what_was_trimmed_is_read_by_nobody_after_restarts_and_moves(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, brokers=BROKERS)
    with running(made):
        for node in made.nodes:
            await until_known(node.name_server)
        async with Admin(made.name_server, config=PATIENT) as admin:
            await admin_topics.create_on(admin, "orders", "broker-0", 2)
            await send(made, SENT)
            for queue_id in (0, 1):
                to = {"queue_id": queue_id, "offset": FLOOR}
                (done,) = await admin_trims.trim(admin, "orders", dry_run=True, **to)
                assert (done.before, done.after) == (0, FLOOR)
                assert await admin_trims.trim(admin, "orders", **to) == [done]
        await is_trimmed(made, "broker-0/0", "broker-0/1")

        moving = ["route", "rebalance", "orders", "--yes"]
        (moved,) = json.loads(await command(made, *moving))
        assert moved["to"] == "broker-1/0"
        await is_trimmed(made, "broker-0/0", "broker-1/0")
        for node in made.nodes:
            await asyncio.to_thread(node.stop)
        for node in made.nodes:
            await asyncio.to_thread(node.start)
        for node in made.nodes:
            await until_known(node.name_server)
        await is_trimmed(made, "broker-0/0", "broker-1/0")

        async with Admin(made.name_server, config=PATIENT) as admin:
            await admin.delete_topic("orders")
            await admin_topics.create_on(admin, "orders", "broker-0", 2)
            await send(made, 1)
            found = await read(admin)
        assert found == {"broker-0/0": [b"0"], "broker-0/1": [b"0"]}
