"""A migration to a Ropeway of several brokers: each topic is on one of them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    RemotingError,
    admin_drains,
    admin_groups,
    admin_offsets,
    admin_topics,
)
from ropeway.client.admin_cut_over import STORED, CutOver
from ropeway.client.admin_finish import Finish, Left
from ropeway.client.admin_mirror_checks import Verified, Verifier
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import RETURNED, SENT_BACK, Rollback
from ropeway.client.errors import AdminError, ResponseError
from ropeway.common.throttle import Throttle
from ropeway.gateway.cli import mirrors
from ropeway.gateway.wire.commands.drains import DrainBroker
from ropeway.gateway.wire.commands.mirrors import MirrorMessages
from ropeway.testing import running_gateway
from tests.requests import sending
from tests.ropeway.client.scenario import PATIENT, PRODUCER, eventually, scenario
from tests.ropeway.client.test_admin_mirrors import copy_all, same, send
from tests.system.cluster import SHORT_SESSION_MS, Cluster
from tests.system.ropeway import Ropeway
from tests.system.test_migration_killed import (
    SENT,
    Aim,
    messages,
    of_kind,
    step,
    there_and_back,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = pytest.mark.slow

BROKERS = ["broker-0", "broker-1"]
GROUP = "readers"


def one_on_each() -> list[str]:
    """Names of topics of which each broker gets one."""
    names = [f"orders-{number}" for number in range(100)]
    return [
        next(one for one in names if crc32(one.encode()) % len(BROKERS) == place)
        for place in range(len(BROKERS))
    ]


@scenario
async def test_topics_of_each_broker_move_and_go_back(tmp_path: Path):
    with running_gateway(options=("--broker", "source-0")) as there:
        options = ("--workers", "2", "--migrate-from", there.name_server)
        here = Ropeway(tmp_path, options=options)
        here.start()
        try:
            await move_and_return(there.name_server, here.name_server)
        finally:
            here.stop()


async def move_and_return(there: str, here: str) -> None:
    topics = one_on_each()
    async with (
        Admin(there, config=PATIENT) as source,
        Admin(here, config=PATIENT) as ours,
        Producer(there, "early", config=PRODUCER) as early,
        Producer(here, "producers", config=PRODUCER) as producer,
    ):
        mirror = Mirror(source, ours)
        for admin in (source, ours):
            await admin_groups.create(admin, GROUP, {})
        pairs = {}
        for topic, broker, other in zip(topics, BROKERS, BROKERS[::-1], strict=True):
            await source.create_topic(topic, 2)
            await send(early, topic, 5)
            pairs[topic] = await mirror.prepare(topic)
            assert [pair.target.broker_name for pair in pairs[topic]] == [broker] * 2
            # Queues there would be nobody's mirror.
            with pytest.raises(ResponseError, match=f"gets no queue on broker {other}"):
                await admin_topics.create_on(ours, topic, other, 2)
            assert await mirror.prepare(topic) == pairs[topic]
            assert await copy_all(mirror, pairs[topic]) == 5
        every = [pair for some in pairs.values() for pair in some]
        await same(source, ours, every)
        # Producers find the other's queues where it leads as well.
        job = CutOver(source, ours, mirror, 0)
        assert await job.not_moved(topics) == topics
        assert (await job.move(topics, [GROUP], lambda _: None)).left == 0
        await same(source, ours, every)
        verifier = Verifier(source, ours, Throttle(None, lambda: 0.0), 0)
        counts = [await verifier.verify(pair, lambda _: None) for pair in every]
        assert counts == [Verified(n, 0, 0, 0, None, None) for n in (3, 2, 3, 2)]
        for topic, broker in zip(topics, BROKERS, strict=True):
            sent = await producer.send(Message(topic, b"here"))
            assert sent.queue.broker_name == broker
            # Nobody else sends it on to the source.
            (other,) = {*BROKERS} - {broker}
            with pytest.raises(ResponseError, match="not exist, apply first please"):
                await ours.ask_broker(other, sending(topic), b"astray")
            with pytest.raises(ResponseError, match="gets no queue on broker"):
                await ours.create_topic(topic, 2)
        rollback = Rollback(source, ours, mirror, 0)
        done = await rollback.roll_back(topics[:1], [GROUP], lambda _: None)
        assert done.sent == {topics[0]: 1}
        assert await rollback.stage(topics[0]) == RETURNED
        finish = Finish(source, ours)
        assert await finish.look(topics[1]) == Left()
        await finish.end(topics[1])
        # It came from nowhere now, so it can be anywhere.
        await admin_topics.create_on(ours, topics[1], BROKERS[0], 2)
        with pytest.raises(AdminError, match="is on brokers broker-0, broker-1 of"):
            await mirror.prepare(topics[1])


@pytest.mark.jvm
@pytest.mark.server
@scenario
async def test_another_node_leads_on_when_one_dies_while_messages_are_held(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with running_gateway(options=("--broker", "source-0")) as there:
        cluster = Cluster(
            tmp_path,
            pulsar,
            zookeeper.address,
            brokers=[broker for broker in BROKERS for _ in range(2)],
            session_ms=SHORT_SESSION_MS,
            options=("--migrate-from", there.name_server),
        )

        def leader(address: str) -> None:
            """The node that the request is for, which led up to now."""
            (node,) = (one for one in cluster.nodes if one.name_server == address)
            node.kill()
            node.start()

        steps = ((STORED, SENT_BACK), (MirrorMessages, RETURNED))
        aims = [
            [
                Aim(leader, step(one) if isinstance(one, str) else of_kind(one))
                for one in some
            ]
            for some in zip(*steps, strict=True)
        ]
        # Each broker has one.
        topics = one_on_each()
        async with Admin(there.name_server, config=PATIENT) as source:
            for topic in topics:
                await source.create_topic(topic, 1)
        try:
            await asyncio.to_thread(cluster.start)
            await followed_over_a_kill(there.name_server, cluster)
            kills = await there_and_back(
                there.name_server, cluster.name_server, topics, aims
            )
        finally:
            await asyncio.to_thread(cluster.kill)
    assert kills == 2 * len(topics)


async def followed_over_a_kill(there: str, cluster: Cluster) -> None:
    """A mirror goes on at the other node of the broker, as long as the first is away.

    Args:
        there: The source's name servers.
        cluster: Runs.
    """
    topic, group = "followed", "kitchen"
    async with (
        Admin(there, config=PATIENT) as source,
        Admin(cluster.name_server, config=PATIENT) as ours,
        Producer(there, "p", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 1)
        for admin in (source, ours):
            await admin_groups.create(admin, group, {})
        for number in range(SENT):
            await producer.send(Message(topic, b"%d" % number))
        # So slow that it has not done when its node dies; a pull at a time.
        mirror = Mirror(source, ours, 1)
        (pair,) = await mirror.prepare(topic)
        throttle = Throttle(SENT / 3, time.monotonic)
        work = mirrors._Work(mirror, throttle, mirrors.Outage(), lambda: None, False)
        following = asyncio.create_task(mirrors._mirror(work, [topic], [group]))

        async def leader() -> str:
            return (await ours.route(topic)).brokers[pair.target.broker_name][0]

        async def end() -> int:
            return await mirror.next_offset(pair)

        await eventually(end, lambda at: at > 0)
        address = await leader()
        (node,) = (one for one in cluster.nodes if one.name_server == address)
        await asyncio.to_thread(node.kill)
        await admin_offsets.place(source, group, {pair.source: SENT})

        async def followed() -> int | None:
            with suppress(RemotingError):
                return await admin_offsets.committed(ours, group, pair.target)
            return None

        await eventually(followed, lambda at: at == SENT)
        assert await leader() != address
        kept = [one.body async for one in messages(ours, pair.target)]
        assert kept == [b"%d" % number for number in range(SENT)]
        following.cancel()
        await asyncio.wait([following])
        await asyncio.to_thread(node.start)
        # Its queues stay; and a broker that is to have none gets none.
        broker = pair.target.broker_name
        (other,) = {*BROKERS} - {broker}
        with pytest.raises(ResponseError, match="topic followed is mirrored"):
            await ours.ask_broker(broker, DrainBroker())
        await ours.ask_broker(other, DrainBroker())
        for name in one_on_each():
            await source.create_topic(f"{name}-too", 1)
            (pair,) = await mirror.prepare(f"{name}-too")
            assert pair.target.broker_name == broker
        await admin_drains.undrain(ours, other)
