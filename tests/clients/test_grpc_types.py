"""Priorities and lite topics, with the gRPC clients that have both."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.bodies import CustomizedRetry, RetryPolicy
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from tests.clients.asking import ask
from tests.clients.grpc_clients import JAVA_GRPC, NODE_GRPC, PYTHON_GRPC
from tests.clients.harness import Session, bodies
from tests.clients.programs import Client, each
from tests.clients.test_connections import certificate
from tests.clients.test_grpc import (
    QUEUES,
    SOON_MS,
    set_up,
    until,
    wait_until_done,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.fixtures import Server


@pytest.fixture(scope="module")
def server(
    start_server: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory
) -> Server:
    """A server for both protocols."""
    pair = certificate(tmp_path_factory.mktemp("tls"))
    return start_server(options=["--grpc"], tls=pair)


@pytest.fixture
def prepare(server: Server, topic: str, group: str) -> Callable[..., None]:
    """Make the test's topic, of a type, and its group."""
    return partial(set_up, server, topic, group)


@each(JAVA_GRPC, NODE_GRPC, PYTHON_GRPC)
@pytest.mark.compatibility("gRPC: priorities")
def test_the_most_urgent_messages_come_first(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("PRIORITY")
    ours = session(client)
    # Node.js takes 0 for none, and above the last queue all are alike.
    sent = [
        {"body": str(at), "priority": 1 + at % (QUEUES - 1)} for at in range(3 * QUEUES)
    ]
    ours.produce(topic, sent)
    simple = ours.start("poll", topic=topic, group=group)
    received = simple.wait_for(len(sent))
    wait_until_done(server, topic, group)
    simple.stop()
    urgency = [one["priority"] for one in received]
    assert urgency == sorted(urgency, reverse=True)
    assert sorted(map(int, bodies(received))) == list(range(3 * QUEUES))


@each(JAVA_GRPC, NODE_GRPC, PYTHON_GRPC)
@pytest.mark.compatibility("gRPC: lite topics, subscribed to one by one, each in order")
def test_lite_topics_come_in_order_to_who_subscribes_to_them(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    bound = {"+lite.bind.topic": topic}
    prepare("LITE", attributes=bound, consume_message_orderly=True)
    ours = session(client)
    names = [f"room-{number}" for number in range(20)]

    def send(first: int, last: int) -> None:
        ours.produce(
            topic,
            [
                {"body": f"{name} {at}", "lite_topic": name}
                for at in range(first, last)
                for name in [*names, "nobody"]
            ],
        )

    consumer = ours.start("consume_lite", topic=topic, group=group)

    def change(do: str, name: str, **more: int) -> None:
        ours.ask(do, "subscribed", target=consumer.id, lite_topic=name, **more)

    send(0, 2)
    for name in names:
        change("subscribe_lite", name)
    send(2, 4)

    def accepted() -> list[str]:
        return [one["body"] for one in consumer.events("received") if one["accepted"]]

    consumer.wait(lambda _: len(accepted()) >= 4 * len(names), "received")
    for name in names:
        mine = [body for body in accepted() if body.split()[0] == name]
        assert mine == [f"{name} {at}" for at in range(4)]
    first = consumer.events("received")[0]
    assert (first["lite_topic"], first["attempt"]) == (first["body"].split()[0], 1)

    change("unsubscribe_lite", names[0])
    send(4, 5)
    last = {f"{name} 4" for name in names[1:]}
    consumer.wait(lambda _: last <= set(accepted()), "received")
    assert f"{names[0]} 4" not in accepted()
    # One before where the group was, where the client can say so, and what came since.
    before = 0 if "tail" in client.unsupported else 1
    change("subscribe_lite", names[0], **({"tail": before} if before else {}))
    consumer.wait(lambda _: f"{names[0]} 4" in accepted(), "received")
    mine = [body for body in accepted() if body.split()[0] == names[0]]
    assert mine[4:] == [f"{names[0]} {at}" for at in range(4 - before, 5)]
    consumer.stop()


@each(JAVA_GRPC)
@pytest.mark.compatibility("gRPC: lite topics, retries and dead letters")
def test_what_is_refused_of_a_lite_topic_comes_again_and_is_a_dead_letter_then(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    policy = RetryPolicy(customized_retry_policy=CustomizedRetry([SOON_MS]))
    prepare(
        "LITE",
        attributes={"+lite.bind.topic": topic},
        retry_max_times=1,
        group_retry_policy=policy,
    )
    ours = session(client)
    consumer = ours.start("consume_lite", topic=topic, group=group, fail=99)
    ours.ask("subscribe_lite", "subscribed", target=consumer.id, lite_topic="a")
    ours.produce(topic, [{"body": "refused", "lite_topic": "a"}])
    received = consumer.wait_for(2)
    dead = GetRouteInfo(topic=f"%DLQ%{group}")
    until(lambda: ask(server, dead).code == 0)
    consumer.stop()
    assert [(one["body"], one["attempt"]) for one in received] == [
        ("refused", 1),
        ("refused", 2),
    ]


@each(JAVA_GRPC, NODE_GRPC, PYTHON_GRPC)
@pytest.mark.compatibility("gRPC: lite topics, all of a parent, none subscribed to")
def test_a_group_that_wants_all_lite_topics_gets_them_and_names_none(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    wanted = {"+lite.bind.topic": topic, "+lite.sub.wildcard": "true"}
    prepare("LITE", attributes=wanted, consume_message_orderly=True)
    ours = session(client)
    ours.produce(topic, [{"body": "a0", "lite_topic": "a"}])
    # They say what they subscribe to, here nothing: Node.js as it starts, Python where
    # it is told to, Java after half a minute.
    consumer = ours.start("consume_lite", topic=topic, group=group, say_all=True)
    ours.produce(topic, [{"body": "b0", "lite_topic": "b"}])
    assert sorted(bodies(consumer.wait_for(2))) == ["a0", "b0"]
    consumer.stop()
