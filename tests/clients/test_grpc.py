"""RocketMQ 5's gRPC clients, and remoting clients beside them on the same port."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import bodies as wire_bodies
from ropeway.gateway.wire.commands.admin import CreateGroup, CreateTopic
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from tests.clients.asking import ask, lag
from tests.clients.grpc_clients import CLIENTS, JAVA_GRPC, RUST_GRPC
from tests.clients.harness import Event, Session, bodies, numbered
from tests.clients.programs import JAVA_5, Client, each
from tests.clients.test_popping import die
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.fixtures import Agents, Server

QUEUES = 4
CHECK_MS = 1000
SOON_MS = 1000
DELAY_MS, LATER_MS, LAST_MS = 3000, 11_000, 12_000
"""A recall has to be there in time on a slow machine, too."""


@pytest.fixture(scope="module")
def server(start_server: Callable[..., Server]) -> Server:
    """A server for both protocols, with its own certificate, that asks producers soon.

    Clients that use TLS unless told otherwise need nothing more.
    """
    return start_server(options=["--grpc"], check_ms=CHECK_MS)


@pytest.fixture
def prepare(server: Server, topic: str, group: str) -> Callable[..., None]:
    """Make the test's topic, of a type, and its group."""
    return partial(set_up, server, topic, group)


def set_up(
    server: Server, topic: str, group: str, kind: str, **changes: object
) -> None:
    """Make a topic of a type, and a group that begins at its first message."""

    def done(*request: object) -> None:
        answer = ask(server, *request)
        assert answer.code == 0, answer.remark

    done(
        CreateTopic(
            topic=topic,
            default_topic="",
            read_queue_nums=QUEUES,
            write_queue_nums=QUEUES,
            perm=6,
            attributes=f"+message.type={kind}",
        )
    )
    config = wire_bodies.GroupConfig(group_name=group, **changes)
    done(CreateGroup(), wire_bodies.encode(config))
    for queue_id in range(QUEUES):
        done(UpdateConsumerOffset(group, topic, queue_id, 0, "broker-0"))


def wait_until_done(server: Server, topic: str, group: str) -> None:
    """Wait until all that was received is acknowledged."""
    until(lambda: lag(server, group, topic) == 0)


def read(remoting: Session, topic: str) -> list[Event]:
    """All messages of a topic."""
    return remoting.ask("pull", "received", topic=topic, group=f"{topic[5:]}-r")


def message(body: str, tags: str = "T", **more: object) -> Event:
    """A message with all that a message may have."""
    return {
        "body": body,
        "tags": tags,
        "keys": "one two",
        "properties": {"user": "Grüße"},
        **more,
    }


def what(received: Event) -> tuple[object, ...]:
    """What a message is, apart from its body."""
    user = received["properties"]["user"]
    # Python's client has its keys in a set.
    keys = sorted(str(received["keys"]).split())
    return received["topic"], received["tags"], keys, user


@each(*CLIENTS)
@pytest.mark.jvm
@pytest.mark.compatibility("gRPC: simple consumer, tags, messages of remoting clients")
def test_messages_cross_between_the_protocols_with_all_that_they_have(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("NORMAL")
    ours, remoting = session(client), session(JAVA_5)
    sent = ours.produce(topic, [message("gRPC, 你好"), message("passed over", "O")])
    sent += remoting.produce(topic, [message("remoting")])
    ids = {one["body"]: one["msg_id"] for one in sent}
    all_that_it_has = (topic, "T", ["one", "two"], "Grüße")

    simple = ours.start(
        "poll", topic=topic, group=group, tags="T", fail=1, change_ms=SOON_MS
    )
    received = simple.wait_for(4)
    wait_until_done(server, topic, group)
    simple.stop()
    assert sorted((one["body"], one["attempt"]) for one in received) == [
        (body, attempt) for body in ("gRPC, 你好", "remoting") for attempt in (1, 2)
    ]
    for one in received:
        assert one["msg_id"] == ids[one["body"]]
        assert what(one) == all_that_it_has

    consumer = remoting.start("consume", topic=topic, group=f"{group}-r", tags="T")
    received = consumer.wait_for_bodies(["gRPC, 你好", "remoting"])
    consumer.stop()
    assert len(received) == 2
    for one in received:
        assert one["msg_id"] == ids[one["body"]]
        assert what(one) == all_that_it_has


@each(*CLIENTS)
@pytest.mark.compatibility("gRPC: push consumer, message groups in order")
def test_messages_of_a_group_come_in_their_order(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("FIFO", consume_message_orderly=True)
    ours = session(client)
    sent = [message(f"{at}", group=name) for at in range(10) for name in ("a", "b")]
    ours.produce(topic, sent)
    consumer = ours.start("consume", topic=topic, group=group)
    received = consumer.wait_for(len(sent))
    wait_until_done(server, topic, group)
    consumer.stop()
    for name in ("a", "b"):
        of_one = [one for one in received if one["group"] == name]
        assert bodies(of_one) == [str(at) for at in range(10)]


@each(*CLIENTS)
@pytest.mark.compatibility("gRPC: delivery times and recall")
def test_a_delayed_message_comes_in_time_unless_it_is_recalled(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("DELAY")
    ours = session(client)
    consumer = ours.start("consume", topic=topic, group=group)
    messages = [{"body": "delayed", "delay_ms": DELAY_MS}]
    if "recall" not in client.unsupported:
        messages.append({"body": "recalled", "delay_ms": LATER_MS})
    before_ms = time.time_ns() // 1_000_000
    sent = ours.produce(topic, [*messages, {"body": "last", "delay_ms": LAST_MS}])
    if "recall" not in client.unsupported:
        handle = sent[1]["recall_handle"]
        (recalled,) = ours.ask("recall", "recalled", topic=topic, handle=handle)
        assert recalled["msg_id"] == sent[1]["msg_id"]
    received = consumer.wait_for_bodies(["delayed", "last"])
    wait_until_done(server, topic, group)
    consumer.stop()
    # In any order where the machine stood still for the time between them.
    assert sorted(bodies(received)) == ["delayed", "last"]
    came_ms = {one["body"]: one["at_ms"] for one in received}
    assert came_ms["delayed"] >= before_ms + DELAY_MS


@each(*CLIENTS, RUST_GRPC)
@pytest.mark.compatibility("gRPC: transactions, commit, rollback and asking back")
def test_only_what_was_committed_comes(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("TRANSACTION")
    ours = session(client)
    ends = {
        "rolled back": {"local": "rollback"},
        "rolled back later": {"check": "rollback"},
        "committed": {"local": "commit"},
        "committed later": {"check": "commit"},
    }
    later = {"rolled back later", "committed later"}
    producer = ours.start(
        "transact",
        topic=topic,
        messages=[{"body": body, "properties": end} for body, end in ends.items()],
    )
    takes = "poll" if client is RUST_GRPC else "consume"
    consumer = ours.start(takes, topic=topic, group=group)
    asked = producer.wait(lambda found: later <= set(bodies(found)), "checked")
    received = consumer.wait_for_bodies(["committed", "committed later"])
    wait_until_done(server, topic, group)
    producer.stop()
    consumer.stop()
    assert set(bodies(asked)) == later
    assert sorted(bodies(received)) == ["committed", "committed later"]


@each(*CLIENTS)
@pytest.mark.jvm
@pytest.mark.compatibility("gRPC: push consumer, SQL filter, retries and dead letters")
def test_what_is_refused_comes_again_and_is_a_dead_letter_then(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    soon = wire_bodies.CustomizedRetry([SOON_MS])
    policy = wire_bodies.RetryPolicy(customized_retry_policy=soon)
    prepare("NORMAL", retry_max_times=1, group_retry_policy=policy)
    ours, remoting = session(client), session(JAVA_5)
    consumer = ours.start(
        "consume", topic=topic, group=group, sql="user = 'Grüße'", fail=99
    )
    (sent, _) = ours.produce(topic, [message("refused"), {"body": "passed over"}])
    received = consumer.wait_for(2)
    dead = f"%DLQ%{group}"
    until(lambda: ask(server, GetRouteInfo(topic=dead)).code == 0)
    letters: list[Event] = []
    until(lambda: bool(letters.extend(read(remoting, dead)) or letters))
    (letter,) = letters
    wait_until_done(server, topic, group)
    consumer.stop()
    assert [(one["body"], one["attempt"]) for one in received] == [
        ("refused", 1),
        ("refused", 2),
    ]
    assert (letter["body"], letter["msg_id"]) == ("refused", sent["msg_id"])
    assert what(letter)[1:] == ("T", ["one", "two"], "Grüße")


@each(JAVA_GRPC)
@pytest.mark.slow
@pytest.mark.compatibility("gRPC: push consumer across kill -9")
def test_what_was_acknowledged_outlives_the_server(
    client: Client,
    agents: Agents,
    start_server: Callable[..., Server],
    topic: str,
    group: str,
) -> None:
    server = start_server(options=["--grpc"], sync_flush=True)
    set_up(server, topic, group, "NORMAL")
    ours = Session(agents.of(client), server.name_server)
    consumer = ours.start("consume", topic=topic, group=group)
    producer = ours.call(
        "produce",
        topic=topic,
        messages=numbered(200),
        pause_ms=10,
        retry_for_ms=150_000,
    )
    producer.wait_for(50, "sent")
    die(server)
    acknowledged = bodies(producer.finish().events("sent"))
    assert len(acknowledged) == 200
    consumer.wait_for_bodies(acknowledged)
    wait_until_done(server, topic, group)
    consumer.stop()
    server.stop()
