"""Each way of sending, by each client: what was sent is what is received."""

from collections.abc import Callable

import pytest

from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import CLIENTS, Client, each

COUNT = 12
MODES = [
    pytest.param(mode, marks=pytest.mark.compatibility(f"producer, {name}"), id=mode)
    for mode, name in {
        "sync": "synchronous",
        "async": "asynchronous",
        "oneway": "one-way",
        "batch": "batch",
        "ordered": "ordered by a queue selector",
    }.items()
]


@each(*CLIENTS)
@pytest.mark.parametrize("mode", MODES)
def test_each_message_is_received_once_and_as_it_was_sent(
    client: Client,
    mode: str,
    session: Callable[[Client], Session],
    topic: str,
    group: str,
) -> None:
    agent = session(client)
    messages = numbered(COUNT, tags="TagA", keys="key", properties={"user": "value"})
    for number, message in enumerate(messages):
        message["shard"] = number % 3
    # A one-way send to a topic that does not exist yet is dropped unseen.
    first = [{"body": "first"}]
    sent = agent.produce(topic, first) + agent.produce(topic, messages, mode=mode)
    consumer = agent.start("consume", topic=topic, group=group)
    received = consumer.wait_for_bodies(bodies(first + messages))
    consumer.stop()
    assert sorted(bodies(received)) == sorted(bodies(first + messages))
    assert {event["status"] for event in sent} == {"SEND_OK"}
    for event in received:
        if event["body"] != "first":
            assert (event["tags"], event["keys"]) == ("TagA", "key")
    by_body = {event["body"]: event for event in received}
    for event in sent:
        if "body" in event:
            assert event["msg_id"] == by_body[event["body"]]["msg_id"]
            assert event["offset"] == by_body[event["body"]]["offset"]


@each(*CLIENTS)
@pytest.mark.compatibility("producer, delay levels")
def test_a_delayed_message_comes_no_earlier_than_its_level_says(
    client: Client, session: Callable[[Client], Session], topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, [{"body": "first"}])
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait_for_bodies(["first"])
    agent.produce(
        topic,
        [
            {"body": "later", "delay_level": 2},
            {"body": "soon", "delay_level": 1},
            {"body": "now"},
        ],
    )
    received = consumer.wait_for_bodies(["later", "soon", "now"])
    consumer.stop()
    # In any order where the machine stood still for the time between them.
    assert sorted(bodies(received)) == ["first", "later", "now", "soon"]
    waited_ms = {one["body"]: one["at_ms"] - one["born_ms"] for one in received}
    assert waited_ms["soon"] >= 1_000
    assert waited_ms["later"] >= 5_000
