"""Real clients ask Ropeway's name server, while RocketMQ 5.5.0 has their topics."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin
from ropeway.client.admin_cut_over import STORED
from ropeway.client.admin_rollback import SENT_BACK
from ropeway.gateway.wire.commands.mirrors import MirrorMessages
from ropeway.gateway.wire.commands.send import SendBatchMessage, SendMessageV2
from tests.clients.grpc_clients import JAVA_GRPC, PYTHON_GRPC
from tests.clients.grpc_moving import GrpcMoving, move_and_return
from tests.clients.harness import WAIT_SECONDS, Session, bodies, numbered
from tests.clients.moving import (
    OTHER,
    SOURCE,
    TARGETS,
    Moving,
    mirrored,
    send,
    send_during,
    spread,
)
from tests.clients.programs import GO, JAVA_4, JAVA_5, Client, each
from tests.clients.test_connections import certificate
from tests.ropeway.client.scenario import PATIENT, scenario
from tests.system.rocketmq import SMALL, RocketMQ
from tests.system.ropeway import Ropeway
from tests.system.test_migration_killed import (
    Aim,
    again,
    of_kind,
    step,
    there_and_back,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.fixtures import Agents

pytestmark = pytest.mark.server

RUNS = 2
"""So many topics of each client."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    settings = {**SMALL, "brokerName": SOURCE}
    server = RocketMQ(tmp_path_factory.mktemp("source"), settings=settings)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def other(
    source: RocketMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RocketMQ]:
    """A second broker there, which has topics that are made on it alone."""
    settings = {**SMALL, "brokerName": OTHER}
    server = RocketMQ(
        tmp_path_factory.mktemp("other"),
        settings=settings,
        auto_create=False,
        joins=source,
    )
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def target(
    source: RocketMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ropeway]:
    """Two brokers, each with some of the topics."""
    folder = tmp_path_factory.mktemp("target")
    options = ["--migrate-from", source.name_server, "--grpc", "--workers", "2"]
    server = Ropeway(folder, options=options, tls=certificate(folder))
    server.start()
    yield server
    server.kill()


async def moved(target: Ropeway, topic: str) -> None:
    async with Admin(target.name_server, config=PATIENT) as here:
        await here.create_topic(topic, 1)


@each(JAVA_5, JAVA_4)
def test_clients_go_on_with_the_sources_brokers_until_a_topic_has_moved(
    agents: Agents, client: Client, source: RocketMQ, target: Ropeway, group: str
):
    ours = Session(agents.of(client), target.name_server)
    topic, new = f"left-{group}", f"moved-{group}"
    # Its sender makes it, by the route that TBW102 has there.
    sent = ours.produce(topic, numbered(5))
    assert {one["broker"] for one in sent} == {SOURCE}
    consumer = ours.start(
        "consume", topic=topic, group=group, **{"from": "FIRST_OFFSET"}
    )
    consumer.wait_for_bodies(bodies(sent))
    asyncio.run(mirrored(source, target, topic))
    more = ours.produce(topic, numbered(5, "more"))
    assert {one["broker"] for one in more} == {SOURCE}
    found = consumer.wait_for_bodies(bodies(more))
    assert sorted(bodies(found)) == sorted(bodies(sent) + bodies(more))
    asyncio.run(moved(target, new))
    here = ours.produce(new, numbered(5))
    assert {one["broker"] for one in here} <= TARGETS
    other = ours.start(
        "consume", topic=new, group=f"{group}-new", **{"from": "FIRST_OFFSET"}
    )
    other.wait_for_bodies(bodies(here))
    for one in (consumer, other):
        one.stop()


@each(JAVA_5, JAVA_4)
def test_refused_messages_come_again_from_the_source(
    agents: Agents, client: Client, target: Ropeway, group: str
):
    ours = Session(agents.of(client), target.name_server)
    topic = f"refused-{group}"
    ours.introduce(topic, group)
    consumer = ours.start("consume", topic=topic, group=group, fail=1, delay_level=1)
    sent = ours.produce(topic, numbered(3))
    again = consumer.wait(
        lambda events: (
            set(bodies(sent))
            <= {one["body"] for one in events if one["reconsume_times"] == 1}
        )
    )
    assert len(again) == 2 * len(sent)
    consumer.stop()


@each(JAVA_5, JAVA_4)
def test_replies_reach_who_asked_at_the_source(
    agents: Agents, client: Client, target: Ropeway, group: str
):
    ours = Session(agents.of(client), target.name_server)
    topic = f"asked-{group}"
    ours.introduce(topic, group)
    answering = ours.start("answer", topic=topic, group=group)
    asked = ours.call("request", topic=topic, messages=numbered(3))
    replied = asked.finish().events("replied")
    assert [one["reply"] for one in replied] == [f"re: message {n}" for n in range(3)]
    answering.stop()


@pytest.mark.go
@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.usefixtures("other")
def test_topics_move_and_go_back_without_loss_and_in_order(
    agents: Agents, source: RocketMQ, target: Ropeway, group: str
):
    moving = [
        Moving(
            client,
            Session(agents.of(client), target.name_server),
            f"taken-{group}-{number}-{run}",
            wide=run == 0,
        )
        for run in range(RUNS)
        for number, client in enumerate((GO, JAVA_5, JAVA_4))
    ]
    for one in moving:
        one.begin(source, target)
    send(moving, 5)
    send_during(source, target, moving, Moving.cut_over)
    send(moving, 5)
    returns_at = [len(one.sent) for one in moving]
    send_during(source, target, moving, Moving.roll_back)
    end = time.monotonic() + WAIT_SECONDS
    while any(one.sent[-1]["broker"] in TARGETS for one in moving):
        assert time.monotonic() < end
        send(moving, 1)
    for one, at in zip(moving, returns_at, strict=True):
        one.check(at)


@pytest.mark.slow
@scenario
async def test_nothing_acknowledged_is_lost_when_a_broker_of_the_source_dies(
    source: RocketMQ, other: RocketMQ, target: Ropeway
):
    victim = again(other)
    aims = [
        [Aim(victim, of_kind(MirrorMessages)), Aim(victim, step(STORED))],
        # A start takes seconds, so one of these is the command's own end.
        [
            Aim(victim, of_kind(SendMessageV2, SendBatchMessage)),
            Aim(None, step(SENT_BACK)),
        ],
    ]
    topics = ["dies-0", "dies-1"]
    for topic in topics:
        await spread(source, topic)
    where = source.name_server, target.name_server
    assert await there_and_back(*where, topics, aims) == 2 * len(topics)


@pytest.mark.jvm
@pytest.mark.slow
def test_grpc_clients_move_and_go_back_with_their_topics(
    agents: Agents, source: RocketMQ, target: Ropeway, group: str
):
    moving = [
        GrpcMoving(
            client,
            Session(agents.of(client), target.name_server),
            f"streamed-{group}-{number}",
            in_order=client is JAVA_GRPC,
        )
        for number, client in enumerate((JAVA_GRPC, PYTHON_GRPC))
    ]
    asyncio.run(move_and_return(source.name_server, target.name_server, moving))
