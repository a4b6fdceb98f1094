"""Real clients ask Ropeway's name server, while RocketMQ 5.5.0 has their topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin
from ropeway.client.admin_mirrors import Mirror
from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import JAVA_4, JAVA_5, Client, each
from tests.system.rocketmq import SMALL, RocketMQ
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.fixtures import Agents

pytestmark = pytest.mark.server

SOURCE, TARGET = "source-0", "broker-0"


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    settings = {**SMALL, "brokerName": SOURCE}
    server = RocketMQ(tmp_path_factory.mktemp("source"), settings=settings)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def target(
    source: RocketMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ropeway]:
    options = ["--migrate-from", source.name_server]
    server = Ropeway(tmp_path_factory.mktemp("target"), options=options)
    server.start()
    yield server
    server.kill()


async def mirrored(source: RocketMQ, target: Ropeway, topic: str) -> None:
    async with Admin(source.name_server) as there, Admin(target.name_server) as here:
        mirror = Mirror(there, here)
        for pair in await mirror.prepare(topic):
            begin = await mirror.next_offset(pair)
            async for _ in mirror.copies(pair, begin):
                pass


async def moved(target: Ropeway, topic: str) -> None:
    async with Admin(target.name_server) as here:
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
    assert {one["broker"] for one in here} == {TARGET}
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
