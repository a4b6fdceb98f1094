"""What was acknowledged is received, also when the server restarts or is killed.

All clients send and receive at the same time, so that one restart serves them all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.clients.fixtures import Agents, Server
from tests.clients.harness import Event, Session, bodies, numbered
from tests.clients.programs import CLIENTS, Client, each

COUNT = 300
PAUSE_MS = 20
"""So that the quickest client still sends when the slowest has begun."""
RETRY_FOR_MS = 150_000
pytestmark = [pytest.mark.jvm, pytest.mark.go, pytest.mark.slow]


@dataclass
class Outcome:
    """What one client sent, and what it received of it."""

    acknowledged: list[Event]
    received: list[Event]
    ordered: list[Event]


def run(
    agents: Agents, server: Server, interrupt: Callable[[], None]
) -> dict[str, Outcome]:
    """Let all clients send and receive, interrupt the server, and wait for the end."""
    sessions = {
        one.name: Session(agents.of(one), server.name_server) for one in CLIENTS
    }
    topics = {name: f"restart-{number}" for number, name in enumerate(sessions)}
    for name, session in sessions.items():
        session.produce(topics[name], [{"body": "first"}])
    consumers = [
        {
            name: session.start(
                "consume",
                topic=topics[name],
                group=f"{topics[name]}-{way}",
                orderly=way,
            )
            for name, session in sessions.items()
        }
        for way in (False, True)
    ]
    for consumer in [*consumers[0].values(), *consumers[1].values()]:
        consumer.wait_for_bodies(["first"])
    messages = numbered(COUNT, shard=0)
    producers = {
        name: session.call(
            "produce",
            topic=topics[name],
            messages=messages,
            mode="ordered",
            pause_ms=PAUSE_MS,
            retry_for_ms=RETRY_FOR_MS,
        )
        for name, session in sessions.items()
    }
    for producer in producers.values():
        producer.wait_for(COUNT // 10, "sent")
    still_sending = [not producer.events("done") for producer in producers.values()]
    interrupt()
    assert all(still_sending)
    outcomes = {}
    for name, producer in producers.items():
        acknowledged = producer.finish().events("sent")
        for way in consumers:
            way[name].wait_for_bodies(bodies(acknowledged))
        outcomes[name] = Outcome(
            acknowledged, consumers[0][name].stop(), consumers[1][name].stop()
        )
    return outcomes


def restart(server: Server) -> None:
    server.stop()
    server.start()


def kill(server: Server) -> None:
    server.kill()
    server.start()


@pytest.fixture(scope="module", params=[restart, kill], ids=["restart", "kill"])
def outcomes(
    request: pytest.FixtureRequest, agents: Agents, start_server: Callable[..., Server]
) -> Iterator[dict[str, Outcome]]:
    """What came of an interruption, by client; the log is in synchronous mode."""
    server = start_server(sync_flush=True)
    yield run(agents, server, lambda: request.param(server))
    server.stop()


@each(*CLIENTS)
@pytest.mark.compatibility("loses nothing across a restart and kill -9")
def test_what_was_acknowledged_is_received(
    client: Client, outcomes: dict[str, Outcome]
) -> None:
    outcome = outcomes[client.name]
    assert sorted(bodies(outcome.acknowledged)) == sorted(bodies(numbered(COUNT)))
    received = {(one["body"], one["offset"]) for one in outcome.received}
    for sent in outcome.acknowledged:
        assert (sent["body"], sent["offset"]) in received


@each(*CLIENTS)
@pytest.mark.compatibility("keeps the order of a queue across a restart and kill -9")
def test_a_queue_keeps_its_order(client: Client, outcomes: dict[str, Outcome]) -> None:
    ordered = outcomes[client.name].ordered
    # A send whose answer was lost is sent again, and a hand-out whose offset was
    # not stored yet comes again: the first arrivals must still be in order.
    first: dict[str, int] = {}
    for one in ordered:
        first.setdefault(one["body"], one["offset"])
    assert list(first) == ["first", *bodies(numbered(COUNT))], first
