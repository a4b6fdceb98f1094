"""Slaves read for clients, also while nobody leads; and all brokers get a new topic."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING
from urllib.error import HTTPError

import msgspec
import pytest

from ropeway.client import Admin
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateGroup, CreateTopic, DeleteTopic
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.commands.send import SendReply
from tests.clients.harness import AgentError, Session
from tests.clients.programs import CLIENTS
from tests.remoting import Remoting, looped
from tests.requests import pulling, sending, waiting
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.test_cluster import brokers, reach, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

JAVA = next(client for client in CLIENTS if client.mark == "jvm")
LONG_MS = 60_000
"""A session that outlives a test: nobody takes the place of a dead master."""
TRY_FOR_S = 30


@looped
async def test_slaves_read_on_when_the_master_is_dead_and_nobody_has_its_place(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper, agents: Agents
):
    made = Cluster(tmp_path, pulsar, zookeeper.address, session_ms=LONG_MS)
    with running(made) as cluster:
        first, second = cluster.nodes
        async with reach(first) as master, reach(second) as slave:
            group = bodies.GroupConfig(group_name="readers", broker_id=1)
            assert (await master.ask(CreateGroup(), bodies.encode(group))).code == 0
            for number in range(20):
                await master.ask(sending("orders"), b"%d" % number)
            found = await master.ask(pulling("orders"))
            assert found.read(PullReply).suggest_which_broker_id == 1
            assert await offsets(slave, 20) == list(range(20))
            # A pull that waits there is woken by what the master stores.
            pull = slave.send(waiting("orders", 20))
            await master.ask(sending("orders"), b"20")
            assert [one.body for one in (await pull).messages()] == [b"20"]

        session = Session(agents.of(JAVA), cluster.name_server)
        # The client hears that it is to ask the slave, and then does.
        for offset in (0, 8):
            events = await asyncio.to_thread(pull_with_java, session, offset)
            assert events[0]["offset"] == offset

        await asyncio.to_thread(first.kill)
        async with reach(second) as slave:
            assert await offsets(slave, 21) == list(range(21))
            answer = await slave.ask(GetMaxOffset(topic="orders", queue_id=0))
            assert answer.read(Offset).offset == 21
            refused = await slave.ask(sending("orders"), b"nobody takes it")
            assert refused.code == ResponseCode.SYSTEM_ERROR
        events = await asyncio.to_thread(pull_with_java, session, 16)
        assert events[0]["offset"] == 16
        # Nobody has taken over meanwhile.
        assert await brokers(second) == {
            "broker-0": {"0": first.name_server, "1": second.name_server}
        }


async def offsets(client: Remoting, end: int) -> list[int]:
    """The offsets of all messages up to an end; a pull gives what is at hand."""
    found: list[int] = []
    while len(found) < end:
        answer = await client.ask(pulling("orders", len(found)))
        found += [one.queue_offset for one in answer.messages()]
    return found


def pull_with_java(session: Session, offset: int) -> list[dict[str, object]]:
    """One pull of an unmodified client; it may try the dead name server first."""
    for left in reversed(range(TRY_FOR_S)):
        try:
            events = session.ask(
                "pull",
                "received",
                topic="orders",
                group="readers",
                queue=0,
                offset=offset,
            )
        except AgentError:
            if not left:
                raise
            time.sleep(1)
        else:
            return events
    raise AssertionError("not reached")


@looped
async def test_a_new_topic_is_on_all_brokers_at_once(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    made = Cluster(
        tmp_path, pulsar, zookeeper.address, brokers=["broker-0", "broker-1"]
    )
    with running(made) as cluster:
        first, second = cluster.nodes
        async with reach(first) as one, reach(second) as other:
            # By the first message, as by an administrator of ours.
            await one.ask(sending("orders"), b"x")
            # Before another node has seen a route, it asks for it: none is in parts.
            assert await queues(other, "orders") == {"broker-0": 4, "broker-1": 4}
            sent = await other.ask(sending("orders", queue_id=3), b"y")
            assert sent.read(SendReply).queue_offset == 0
            async with Admin(first.name_server, config=PATIENT) as admin:
                await admin.create_topic("bills", 3)
            assert await queues(one, "bills") == {"broker-0": 3, "broker-1": 3}
            # An administrator of RocketMQ's names one broker and means it.
            create = CreateTopic(
                topic="notes",
                default_topic="TBW102",
                read_queue_nums=2,
                write_queue_nums=2,
                perm=6,
            )
            assert (await other.ask(create)).code == 0
            await until_queues(one, "notes", {"broker-1": 2})
            assert (await one.ask(create)).code == 0
            await until_queues(other, "notes", {"broker-0": 2, "broker-1": 2})
            path = f"persistent/public/{cluster.namespace}/orders/partitions"
            made_there = await asyncio.to_thread(pulsar.admin, "GET", path)
            assert made_there["partitions"] == 8
            # One broker deletes what is its own; the last one, all that is left.
            assert (await one.ask(DeleteTopic(topic="orders"))).code == 0
            await until_queues(other, "orders", {"broker-1": 4})
            (kept,) = (await other.ask(pulling("orders", queue_id=3))).messages()
            assert kept.body == b"y"
            assert (await other.ask(DeleteTopic(topic="orders"))).code == 0
            with pytest.raises(HTTPError, match="404"):
                await asyncio.to_thread(pulsar.admin, "GET", path)


async def queues(client: Remoting, topic: str) -> dict[str, int]:
    """How many queues of a topic each broker has, as clients are told."""
    answer = await client.ask(GetRouteInfo(topic=topic))
    route = msgspec.json.decode(answer.body, type=bodies.TopicRoute)
    return {one.broker_name: one.write_queue_nums for one in route.queue_datas}


async def until_queues(client: Remoting, topic: str, wanted: dict[str, int]) -> None:
    """Return when a node has seen what another one has changed."""
    while await queues(client, topic) != wanted:  # noqa: ASYNC110 - it comes
        await asyncio.sleep(0.02)
