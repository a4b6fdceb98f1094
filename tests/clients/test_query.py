"""Looking at a topic: offsets, one message by its ids, messages by key."""

import time
from collections.abc import Callable

import pytest

from tests.clients.fixtures import Server
from tests.clients.harness import AgentError, Event, Session, bodies, numbered
from tests.clients.programs import CLIENTS, JAVA_4, JAVA_5, Client, each
from tests.system.cluster import Cluster

Open = Callable[[Client], Session]


def until_found(ask: Callable[[], list[Event]], count: int) -> list[Event]:
    """Ask again until so many are found: a broker indexes after it answers."""
    give_up = time.monotonic() + 120
    while True:
        try:
            found = ask()
        except AgentError:
            found = []
        if len(found) >= count or time.monotonic() > give_up:
            return found
        time.sleep(0.1)


@each(*CLIENTS)
@pytest.mark.compatibility("query by message id, unique key and key")
def test_a_message_is_found_by_each_of_its_names(
    client: Client, session: Open, topic: str, server: Server
) -> None:
    client.require("query")
    agent = session(client)
    sent = agent.produce(topic, [{"body": "one", "keys": "k1 k2"}, {"body": "two"}])[0]
    names = ["offset_msg_id", "msg_id"]
    if client is JAVA_4 and isinstance(server, Cluster):
        # It asks without the topic; on Pulsar an id means a message of each topic.
        names.remove("offset_msg_id")
    for name in names:
        found = until_found(
            lambda name=name: agent.ask(
                "view", "received", topic=topic, message_id=sent[name]
            ),
            1,
        )
        assert bodies(found) == ["one"]
        assert found[0]["offset"] == sent["offset"]
        assert found[0]["queue"] == sent["queue"]
    for key in ("k1", "k2"):
        found = until_found(
            lambda key=key: agent.ask("query", "received", topic=topic, key=key), 1
        )
        assert bodies(found) == ["one"]


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("query by key within a time range")
def test_a_query_finds_messages_of_its_time_range_only(
    client: Client, session: Open, topic: str
) -> None:
    agent = session(client)
    agent.produce(topic, numbered(3, keys="shared"))
    found = until_found(
        lambda: agent.ask("query", "received", topic=topic, key="shared"), 3
    )
    assert sorted(bodies(found)) == bodies(numbered(3))
    # RocketMQ's index rounds times down to the second.
    before = min(one["stored_ms"] for one in found) - 2_000
    with pytest.raises(AgentError):
        agent.ask("query", "received", topic=topic, key="shared", end_ms=before)


@each(*CLIENTS)
@pytest.mark.compatibility("offsets of a queue: first, end, by time")
def test_offsets_of_a_queue_can_be_asked_for(
    client: Client, session: Open, topic: str
) -> None:
    client.require("offsets")
    agent = session(client)
    before_ms = int(time.time() * 1000) - 1
    agent.produce(topic, numbered(3), mode="ordered")
    while time.time() * 1000 <= before_ms + 100:
        time.sleep(0.01)
    after_ms = int(time.time() * 1000) + 1
    found = {
        when: agent.ask("offsets", "offsets", topic=topic, timestamp_ms=when)[0][
            "found"
        ]
        for when in (before_ms, after_ms)
    }
    queues = agent.ask("offsets", "offsets", topic=topic)
    assert (queues[0]["min"], queues[0]["max"]) == (0, 3)
    assert queues[0]["earliest_ms"] >= before_ms
    assert (queues[1]["min"], queues[1]["max"]) == (0, 0)
    assert found == {before_ms: 0, after_ms: 3}


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("create a topic")
def test_a_created_topic_has_the_queues_it_was_given(
    client: Client, session: Open, topic: str
) -> None:
    agent = session(client)
    agent.call("create_topic", topic=topic, queues=6).finish()
    queues = agent.ask("offsets", "offsets", topic=topic)
    assert [one["queue"] for one in queues] == [0, 1, 2, 3, 4, 5]
