"""The same program sees the same on RocketMQ 5.5.0 and on Ropeway."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.fixtures import Agents, Server, numbers
from tests.clients.harness import Session, numbered
from tests.clients.programs import JAVA_4, JAVA_5, Client, each
from tests.system.request_scenarios import REQUESTS
from tests.system.rocketmq import RocketMQ
from tests.system.ropeway import Ropeway
from tests.system.scenarios import (
    SCENARIOS,
    Scenario,
    code_of,
    committed,
    on_queue,
    transactions,
)
from tests.system.timer_scenarios import timers

pytestmark = [pytest.mark.server, pytest.mark.jvm, pytest.mark.slow]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """RocketMQ and Ropeway, both running; they ask producers of transactions soon."""
    yield from started(tmp_path_factory, check_ms=1000)


@pytest.fixture(scope="module")
def strict_pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Server, Server]]:
    """Both, where nobody makes a topic by sending to it."""
    yield from started(tmp_path_factory, auto_create=False)


def started(
    paths: pytest.TempPathFactory, **settings: Any
) -> Iterator[tuple[Server, Server]]:
    servers = (
        RocketMQ(paths.mktemp("rocketmq"), **settings),
        Ropeway(paths.mktemp("ropeway"), **settings),
    )
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()


def compare(
    scenario: Scenario, client: Client, agents: Agents, servers: tuple[Server, Server]
) -> tuple[Any, Any]:
    """What a client sees on each of two servers."""
    topic = f"{scenario.__name__}-{next(numbers)}"
    agent = agents.of(client)
    theirs, ours = (
        scenario(Session(agent, server.name_server), topic) for server in servers
    )
    return theirs, ours


@each(JAVA_5, JAVA_4)
@pytest.mark.parametrize(
    "scenario", [*SCENARIOS, *REQUESTS], ids=lambda one: one.__name__
)
@pytest.mark.compatibility("sees the same as on RocketMQ 5.5.0")
def test_a_client_sees_the_same_on_both(
    scenario: Scenario, client: Client, agents: Agents, pair: tuple[Server, Server]
) -> None:
    theirs, ours = compare(scenario, client, agents, pair)
    assert ours == theirs


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("sees the same as on RocketMQ 5.5.0")
def test_committed_offsets_are_the_same_on_both_and_ours_never_go_back(
    client: Client, agents: Agents, pair: tuple[Server, Server]
) -> None:
    """RocketMQ handles commits of one client on several threads: an older one may win.

    Seen once in some hundred runs: a queue at the offset where its consumer began.
    """
    theirs, ours = compare(committed, client, agents, pair)
    ends = [[(queue, queue + 1) for queue in range(4)]] * 2
    assert [[(one["queue"], one["offset"]) for one in group] for group in ours] == ends
    for of_theirs, of_ours in zip(theirs, ours, strict=True):
        for one, other in zip(of_theirs, of_ours, strict=True):
            assert one in (other, {**other, "offset": 0})


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("sees the same as on RocketMQ 5.5.0")
def test_transactions_are_the_same_on_both_and_ours_stores_no_message_again(
    client: Client, agents: Agents, pair: tuple[Server, Server]
) -> None:
    theirs, ours = compare(transactions, client, agents, pair)
    assert ours == {**theirs, "repeats": []}


@each(JAVA_5)
@pytest.mark.compatibility("sees the same as on RocketMQ 5.5.0")
def test_a_message_with_a_delivery_time_looks_the_same_on_both(
    client: Client, agents: Agents, pair: tuple[Server, Server]
) -> None:
    theirs, ours = compare(timers, client, agents, pair)
    assert ours == theirs


def unknown_topics(session: Session, topic: str) -> object:
    """Codes where the topic must exist before."""
    return {
        "send": code_of(
            session, "produce", topic=topic, messages=numbered(1), retries=0
        ),
        "offsets": code_of(session, "offsets", topic=topic),
        "pull": code_of(session, "pull", topic=topic, group=topic),
    }


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("sees the same as on RocketMQ 5.5.0")
def test_an_unknown_topic_is_refused_alike(
    client: Client, agents: Agents, strict_pair: tuple[Server, Server]
) -> None:
    theirs, ours = compare(unknown_topics, client, agents, strict_pair)
    assert ours == theirs


def offset_of_a_new_group(session: Session, topic: str) -> object:
    """What a group that never committed is told of an empty queue."""
    session.produce(topic, on_queue(0, 1, "a"), mode="ordered")
    return [
        one["offset"]
        for one in session.ask("committed", "committed", topic=topic, group=topic)
    ]


DIFFERENCES: list[tuple[Scenario, object, object, str]] = [
    (
        offset_of_a_new_group,
        [0, -1, -1, -1],
        [0, 0, 0, 0],
        (
            "told of no offset in an empty queue, a new group starts at the end, which "
            "may have moved: it misses a message. We say 0 while the queue begins at 0"
        ),
    ),
]


@each(JAVA_5, JAVA_4)
@pytest.mark.parametrize(
    ("scenario", "theirs", "ours", "reason"),
    DIFFERENCES,
    ids=[one[0].__name__ for one in DIFFERENCES],
)
def test_the_two_differ_where_it_is_meant(
    client: Client,
    scenario: Scenario,
    theirs: object,
    ours: object,
    reason: str,
    agents: Agents,
    pair: tuple[Server, Server],
) -> None:
    assert compare(scenario, client, agents, pair) == (theirs, ours), reason
