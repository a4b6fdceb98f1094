"""Real clients ask Ropeway's name server, while RocketMQ 5.5.0 has their topics."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, starmap
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import Rollback
from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import JAVA_4, JAVA_5, Client, each
from tests.ropeway.client.scenario import PATIENT
from tests.system.rocketmq import SMALL, RocketMQ
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator, Sequence

    from tests.clients.fixtures import Agents
    from tests.clients.harness import Event

pytestmark = pytest.mark.server

SOURCE, TARGET = "source-0", "broker-0"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    settings = {**SMALL, "brokerName": SOURCE}
    server = RocketMQ(tmp_path_factory.mktemp("source"), settings=settings)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def target(
    source: RocketMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ropeway]:
    options = ["--migrate-from", source.name_server]
    server = Ropeway(tmp_path_factory.mktemp("target"), options=options)
    server.start()
    yield server
    server.kill()


async def mirrored(source: RocketMQ, target: Ropeway, topic: str) -> None:
    async with (
        Admin(source.name_server, config=PATIENT) as there,
        Admin(target.name_server, config=PATIENT) as here,
    ):
        mirror = Mirror(there, here)
        for pair in await mirror.prepare(topic):
            begin = await mirror.next_offset(pair)
            async for _ in mirror.copies(pair, begin):
                pass


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


RUNS, APART_S = 3, 7
"""So many cut-overs, begun so far apart: clients look at routes in between."""


async def cut_over(
    source: RocketMQ, target: Ropeway, topics: Sequence[str], group: str
) -> list[float]:
    """Move each topic by itself; for how long its producers were held."""
    async with (
        Admin(source.name_server, config=PATIENT) as there,
        Admin(target.name_server, config=PATIENT) as here,
    ):

        async def move(number: int, topic: str) -> float:
            await asyncio.sleep(number * APART_S)
            job = CutOver(there, here, Mirror(there, here))
            moved = await job.move(
                [topic],
                [f"{group}-{number}"],
                lambda step: print(f"{time.time():.1f} {step}"),
            )
            assert moved.left == 0
            return moved.paused_s

        return await asyncio.gather(*starmap(move, enumerate(topics)))


async def roll_back(
    source: RocketMQ, target: Ropeway, topics: Sequence[str], group: str
) -> list[float]:
    """Take each topic back by itself; for how long its producers were held."""
    async with (
        Admin(source.name_server, config=PATIENT) as there,
        Admin(target.name_server, config=PATIENT) as here,
    ):

        async def take(number: int, topic: str) -> float:
            await asyncio.sleep(number * APART_S)
            done = await Rollback(there, here, Mirror(there, here)).roll_back(
                [topic],
                [f"{group}-{number}"],
                lambda step: print(f"{time.time():.1f} {step}"),
            )
            assert done.waiting == {topic: 0}
            return done.paused_s

        return await asyncio.gather(*starmap(take, enumerate(topics)))


class Sender:
    """Sends to topics, a message of each at a time, to queues in turn."""

    def __init__(self, ours: Session, topics: Sequence[str]) -> None:
        self._ours = ours
        self.sent: dict[str, list[Event]] = {topic: [] for topic in topics}
        self.refused = 0

    def send(self, seconds: float) -> None:
        """Send for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for topic, of_topic in self.sent.items():
                shard = len(of_topic)
                message = {"body": f"{shard}", "shard": shard}
                call = self._ours.call(
                    "produce", topic=topic, messages=[message], mode="ordered"
                )
                found = call.finish().events("sent")
                self.refused += not found
                of_topic.extend({**one, "at_s": time.time()} for one in found)
            time.sleep(0.05)

    def send_during(self, work: Coroutine[None, None, list[float]]) -> list[float]:
        """Send until work is done; what it returns."""
        with ThreadPoolExecutor(1) as pool:
            doing = pool.submit(asyncio.run, work)
            while not doing.done():
                self.send(0.5)
            return doing.result()

    def tell(
        self, client: Client, topic: str, received: list[Event], held_s: float
    ) -> None:
        """Print what producers and consumers noticed."""
        of_topic = self.sent[topic]
        repeats = len(received) - len({one["body"] for one in received})
        print(
            f"{client.name}: {len(of_topic)} sent, {self.refused} refused; held "
            f"{held_s * 1000:.0f} ms, producer pause "
            f"{_longest(one['at_s'] for one in of_topic):.2f} s, consumer gap "
            f"{_longest(one['at_ms'] / 1000 for one in received):.1f} s, "
            f"{repeats} repeats"
        )


@pytest.mark.slow
@each(JAVA_5, JAVA_4)
def test_cut_overs_lose_nothing_and_keep_order(
    agents: Agents, client: Client, source: RocketMQ, target: Ropeway, group: str
):
    ours = Session(agents.of(client), target.name_server)
    topics = [f"taken-{group}-{number}" for number in range(RUNS)]
    consumers = []
    for number, topic in enumerate(topics):
        its = f"{group}-{number}"
        ours.introduce(topic, its)
        asyncio.run(mirrored(source, target, topic))
        consumers.append(ours.start("consume", topic=topic, group=its, orderly=True))
    sender = Sender(ours, topics)
    sender.send(35)  # consumers know both clusters by then
    held = sender.send_during(cut_over(source, target, topics, group))
    sender.send(40)
    for number, (topic, consumer) in enumerate(zip(topics, consumers, strict=True)):
        of_topic = sender.sent[topic]
        received = consumer.wait_for_bodies(bodies(of_topic))
        consumer.stop()
        came_over(of_topic, SOURCE, TARGET)
        for queue in {one["queue"] for one in of_topic}:
            offsets = [one["offset"] for one in of_topic if one["queue"] == queue]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
            came = [one["offset"] for one in received if one["queue"] == queue]
            assert [*dict.fromkeys(came)] == sorted(set(came))
        sender.tell(client, topic, received, held[number])


def came_over(sent: list[Event], old: str, new: str) -> None:
    """From one message to the next."""
    brokers = [one["broker"] for one in sent]
    first = brokers.index(new)
    assert set(brokers[:first]) == {old}
    assert set(brokers[first:]) == {new}


@pytest.mark.slow
@each(JAVA_5, JAVA_4)
def test_rollbacks_lose_nothing_and_keep_order(
    agents: Agents, client: Client, source: RocketMQ, target: Ropeway, group: str
):
    ours = Session(agents.of(client), target.name_server)
    topics = [f"returned-{group}-{number}" for number in range(RUNS)]
    for number, topic in enumerate(topics):
        ours.introduce(topic, f"{group}-{number}")
        asyncio.run(mirrored(source, target, topic))
    asyncio.run(cut_over(source, target, topics, group))
    consumers = [
        ours.start("consume", topic=topic, group=f"{group}-{number}", orderly=True)
        for number, topic in enumerate(topics)
    ]
    sender = Sender(ours, topics)
    sender.send(35)
    held = sender.send_during(roll_back(source, target, topics, group))
    sender.send(40)
    for number, (topic, consumer) in enumerate(zip(topics, consumers, strict=True)):
        of_topic = sender.sent[topic]
        received = consumer.wait_for_bodies(bodies(of_topic))
        consumer.stop()
        came_over(of_topic, TARGET, SOURCE)
        for queue in {one["queue"] for one in of_topic}:
            sent = [one["body"] for one in of_topic if one["queue"] == queue]
            came = [one["body"] for one in received if one["queue"] == queue]
            assert [one for one in dict.fromkeys(came) if one in sent] == sent
        sender.tell(client, topic, received, held[number])


def _longest(times_s: Iterable[float]) -> float:
    return max(after - before for before, after in pairwise(sorted(times_s)))
