"""Consumers that ask for messages: lite pull, Go's polled pull, and pull by offset."""

from collections.abc import Callable

import pytest

from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import CLIENTS, CPP, JAVA_4, JAVA_5, Client, each

Open = Callable[[Client], Session]


@each(*CLIENTS)
@pytest.mark.compatibility("pull consumer that polls assigned queues (lite pull)")
def test_a_polled_consumer_receives_everything_and_continues_where_it_stopped(
    client: Client, session: Open, topic: str, group: str
) -> None:
    client.require("poll")
    agent = session(client)
    for prefix in ("first", "later"):
        messages = numbered(20, prefix)
        agent.produce(topic, messages)
        consumer = agent.start("poll", topic=topic, group=group)
        consumer.wait_for_bodies(bodies(messages))
        assert sorted(bodies(consumer.stop())) == sorted(bodies(messages))


@each(*CLIENTS)
@pytest.mark.compatibility("pull consumer that names its offsets")
def test_a_pull_consumer_reads_each_queue_to_its_end(
    client: Client, session: Open, topic: str, group: str
) -> None:
    client.require("pull")
    agent = session(client)
    messages = numbered(40, tags="TagA")
    agent.produce(topic, messages)
    received = agent.ask("pull", "received", topic=topic, group=group)
    assert sorted(bodies(received)) == sorted(bodies(messages))
    by_queue: dict[int, list[int]] = {}
    for event in received:
        by_queue.setdefault(event["queue"], []).append(event["offset"])
    for offsets in by_queue.values():
        assert offsets == list(range(len(offsets)))


@each(JAVA_5, JAVA_4, CPP)
@pytest.mark.compatibility("pull consumer that names its offsets")
def test_a_pull_lets_its_tags_through_only(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, numbered(12, "a", tags="TagA"))
    agent.produce(topic, numbered(12, "b", tags="TagB"))
    received = agent.ask("pull", "received", topic=topic, group=group, tags="TagB")
    assert sorted(bodies(received)) == sorted(bodies(numbered(12, "b")))


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("pull consumer, offsets out of range")
def test_a_pull_out_of_range_is_told_where_to_go_on(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, numbered(3), mode="ordered")
    answers = {}
    for offset in (2, 3, 4, 1000):
        answer = agent.ask(
            "pull", "pulled", topic=topic, group=group, queue=0, offset=offset
        )[0]
        answers[offset] = (answer["status"], answer["next"], answer["max"])
    assert answers == {
        2: ("FOUND", 3, 3),
        3: ("NO_NEW_MSG", 3, 3),
        4: ("OFFSET_ILLEGAL", 3, 3),
        1000: ("OFFSET_ILLEGAL", 3, 3),
    }
