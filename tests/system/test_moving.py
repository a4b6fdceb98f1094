"""A broker's master is moved, and a node drained, under clients that send."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PullConsumer,
    admin_nodes,
)
from tests.gateway.cli.printed import valid
from tests.remoting import looped, until
from tests.ropeway.client.scenario import (
    PATIENT,
    PATIENT_CONSUMER,
    PATIENT_PRODUCER,
    eventually,
)
from tests.system.cluster import Cluster
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.slow]

TIMEOUT_S = 60.0
MORE = 10
"""So many sends go well before a move, and after it."""


async def command(
    cluster: Cluster, *words: str, code: int = 0, form: tuple[str, ...] = ("--json",)
) -> str:
    """What `ropeway` printed, as JSON; of an error, its line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ropeway.gateway.cli.main", *words),
        *("--name-server", cluster.name_server, *form),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == code, (out, errors)
    if "--json" in form and not code:
        valid(words, out.decode())
    return (errors if code else out).decode()


async def send_on(
    producer: Producer,
    topic: str,
    stop: asyncio.Event,
    sent: list[bytes] | None = None,
) -> list[bytes]:
    """Send one message after the other; each is acknowledged, or this fails."""
    sent = [] if sent is None else sent
    while not stop.is_set():
        body = b"%d" % len(sent)
        await producer.send(Message(topic, body), timeout_s=TIMEOUT_S)
        sent.append(body)
        await asyncio.sleep(0.01)
    return sent


@looped
async def test_a_master_is_moved_and_its_node_stopped_and_nothing_is_lost(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with running(Cluster(tmp_path, pulsar, zookeeper.address)) as cluster:
        where = cluster.name_server
        stop, sent = asyncio.Event(), list[bytes]()
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(where, "senders", config=PATIENT_PRODUCER) as producer,
        ):
            await admin.create_topic("orders", 2)
            sending = asyncio.create_task(send_on(producer, "orders", stop, sent))
            await until(lambda: len(sent) > MORE)

            moving = ["route", "move", "broker-0", "--to", "node-1", "--yes"]
            (moved,) = json.loads(await command(cluster, *moving))
            assert (moved["before"], moved["master"]) == ("node-0", "node-1")
            print(f"moved in {moved['took_ms']} ms")
            await until_known(cluster, "node-1", "node-0")

            draining = ["route", "drain", "node-1", "--yes"]
            drained = json.loads(await command(cluster, *draining))
            assert [one["master"] for one in drained["moved"]] == ["node-0"]
            await asyncio.to_thread(cluster.nodes[1].stop)
            before = len(sent)
            await until(lambda: len(sent) > before + MORE)
            stop.set()
            await sending

            await until_known(cluster, "node-0")
            alone = ["route", "drain", "node-0", "--yes"]
            refused = await command(cluster, *alone, code=1)
            assert "broker broker-0 has no node but node-0" in refused
        received = await read_all(where, len(sent))
        assert sorted(received, key=int) == sent


async def until_known(cluster: Cluster, *wanted: str) -> None:
    """Return when each node that runs knows the nodes, of which the first leads."""
    order = [(name, name == wanted[0]) for name in wanted]
    for node in cluster.nodes:
        if not node.runs:
            continue
        async with Admin(node.name_server, config=PATIENT) as admin:
            await eventually(
                lambda admin=admin: admin_nodes.nodes(admin),
                lambda nodes: [(one.name, one.leads) for one in nodes] == order,
            )


async def read_all(where: str, count: int) -> list[bytes]:
    """All messages of the topic, each once."""
    found: list[bytes] = []
    async with PullConsumer(
        where,
        "readers",
        consume_from=ConsumeFrom.FIRST_OFFSET,
        config=PATIENT_CONSUMER,
    ) as reader:
        reader.subscribe("orders")
        while len(found) < count and (some := await reader.poll(TIMEOUT_S)):
            found += [one.body for one in some]
        found += [one.body for one in await reader.poll(2)]
    return found
