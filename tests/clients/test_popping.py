"""Java's push consumer that pops: queues are shared out, messages handed out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.processors.assignments import RequestMode
from ropeway.gateway.wire import bodies as wire_bodies
from ropeway.gateway.wire.commands.admin import CreateGroup
from ropeway.gateway.wire.commands.pop import SetMessageRequestMode
from tests.clients.asking import ask, lag
from tests.clients.harness import WAIT_SECONDS, Session, bodies, numbered
from tests.clients.programs import JAVA_5, Client, each
from tests.system.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.fixtures import Agents, Server

INVISIBLE_MS = 10_000
"""The shortest that the client allows is 5 s."""


def pops(server: Server, topic: str, group: str, **changes: int) -> None:
    """Have a group pop a topic."""
    setup = wire_bodies.GroupConfig(group_name=group, **changes)
    assert ask(server, CreateGroup(), wire_bodies.encode(setup)).code == 0
    mode = RequestMode(
        topic=topic, consumer_group=group, mode="POP", pop_share_queue_num=8
    )
    answer = ask(server, SetMessageRequestMode(), wire_bodies.encode(mode))
    assert answer.code == 0, answer.remark


def wait_until_done(server: Server, topic: str, group: str) -> None:
    """Wait until all that was received is acknowledged."""
    give_up = time.monotonic() + WAIT_SECONDS
    while left := lag(server, group, topic):
        assert time.monotonic() < give_up, f"{left} messages are not done"
        time.sleep(0.1)


def die(server: Server) -> None:
    """Kill what serves; another node takes over, or it comes back."""
    if isinstance(server, Cluster):
        server.nodes[0].kill()
    else:
        server.kill()
        server.start()


@each(JAVA_5)
@pytest.mark.compatibility("push consumer, pop")
def test_what_is_popped_and_done_is_done_and_what_is_refused_comes_again(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    topic: str,
    group: str,
) -> None:
    agent = session(client)
    agent.produce(topic, [{"body": "first", "shard": 0}], mode="ordered")
    pops(server, topic, group)
    consumer = agent.start("consume", topic=topic, group=group, pop=True, fail=1)
    sent = [
        {**one, "shard": number % 4, "tags": "t", "properties": {"user": str(number)}}
        for number, one in enumerate(numbered(20))
    ]
    sent = agent.produce(topic, sent, mode="ordered")
    ours = [f"message {number}" for number in range(20)]
    received = consumer.wait(
        lambda found: (
            set(ours) <= {one["body"] for one in found if one["reconsume_times"] == 1}
        )
    )
    wait_until_done(server, topic, group)
    consumer.stop()
    by_time: dict[int, dict[str, dict]] = {0: {}, 1: {}}
    for one in received:
        by_time[one["reconsume_times"]][one["body"]] = one
    assert set(by_time[0]) >= set(ours)
    for one in sent:
        first, again = (by_time[times][one["body"]] for times in (0, 1))
        assert (first["queue"], first["offset"]) == (one["queue"], one["offset"])
        assert first["topic"] == again["topic"] == topic
        assert first["msg_id"] == again["msg_id"] == one["msg_id"]
        assert again["properties"]["user"] == first["properties"]["user"]
        assert again["at_ms"] - first["at_ms"] >= 9_000, "it was to come after 10 s"
        assert (first["accepted"], again["accepted"]) == (False, True)


@each(JAVA_5)
@pytest.mark.slow
@pytest.mark.compatibility("push consumer, pop across kill -9")
def test_what_is_popped_when_the_server_dies_comes_again(
    client: Client,
    agents: Agents,
    start_server: Callable[..., Server],
    topic: str,
    group: str,
) -> None:
    server = start_server(sync_flush=True)
    agent = Session(agents.of(client), server.name_server)
    agent.produce(topic, [{"body": "first"}])
    pops(server, topic, group)
    consumer = agent.start(
        "consume", topic=topic, group=group, pop=True, invisible_ms=INVISIBLE_MS
    )
    consumer.wait_for_bodies(["first"])
    producer = agent.call(
        "produce",
        topic=topic,
        messages=numbered(300),
        pause_ms=10,
        retry_for_ms=150_000,
    )
    producer.wait_for(100, "sent")
    die(server)
    acknowledged = bodies(producer.finish().events("sent"))
    assert len(set(acknowledged)) == 300
    consumer.wait_for_bodies(acknowledged)
    wait_until_done(server, topic, group)
    consumer.stop()
    server.stop()
