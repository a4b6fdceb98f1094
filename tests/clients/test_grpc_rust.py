"""RocketMQ 5's Rust client, which has producers and simple consumers."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.clients.grpc_clients import PYTHON_GRPC, RUST_GRPC
from tests.clients.harness import Event, Session, bodies
from tests.clients.programs import Client, each
from tests.clients.test_grpc import CHECK_MS, SOON_MS, message, set_up, wait_until_done
from tests.clients.test_grpc import what as all_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.fixtures import Server

KEPT_MS = 10_000
"""The shortest that RocketMQ lets a message be kept."""


@pytest.fixture(scope="module")
def server(start_server: Callable[..., Server]) -> Server:
    """A server that asks producers soon."""
    return start_server(options=["--grpc"], check_ms=CHECK_MS)


@pytest.fixture
def prepare(server: Server, topic: str, group: str) -> Callable[..., None]:
    """Make the test's topic, of a type, and its group."""
    return partial(set_up, server, topic, group)


@each(RUST_GRPC)
@pytest.mark.compatibility("gRPC: simple consumer, tags, messages of another client")
def test_messages_cross_between_clients_with_all_that_they_have(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("NORMAL")
    ours, other = session(client), session(PYTHON_GRPC)
    sent = ours.produce(topic, [message("Rust, 你好"), message("passed over", "O")])
    sent += other.produce(topic, [message("Python")])
    ids = {one["body"]: one["msg_id"] for one in sent}

    def seen(one: Event) -> None:
        assert one["msg_id"] == ids[one["body"]]
        assert all_of(one) == (topic, "T", ["one", "two"], "Grüße")

    # What it refuses comes again when its time is over.
    wanted = {"topic": topic, "group": group, "tags": "T"}
    polling = ours.start("poll", fail=1, invisible_ms=KEPT_MS, **wanted)
    received = polling.wait_for(4)
    wait_until_done(server, topic, group)
    polling.stop()
    assert sorted((one["body"], one["attempt"]) for one in received) == [
        (body, attempt) for body in ("Python", "Rust, 你好") for attempt in (1, 2)
    ]
    for one in received:
        seen(one)
    set_up(server, topic, f"{group}-r", "NORMAL")
    polling = other.start("poll", **{**wanted, "group": f"{group}-r"})
    for one in polling.wait_for_bodies(["Python", "Rust, 你好"]):
        seen(one)
    polling.stop()


@each(RUST_GRPC)
@pytest.mark.compatibility("gRPC: simple consumer, message groups in order")
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
    sent = [message(f"{at}", group=name) for at in range(5) for name in ("a", "b")]
    ours.produce(topic, sent)
    polling = ours.start("poll", topic=topic, group=group)
    received = polling.wait_for(len(sent))
    wait_until_done(server, topic, group)
    polling.stop()
    for name in ("a", "b"):
        of_one = [one for one in received if one["group"] == name]
        assert bodies(of_one) == [str(at) for at in range(5)]


@each(RUST_GRPC)
@pytest.mark.compatibility("gRPC: simple consumer, delivery times")
def test_a_delayed_message_comes_in_time(
    client: Client,
    session: Callable[[Client], Session],
    server: Server,
    prepare: Callable[..., None],
    topic: str,
    group: str,
) -> None:
    prepare("DELAY")
    ours = session(client)
    polling = ours.start("poll", topic=topic, group=group)
    # It knows whole seconds.
    due_s = (time.time_ns() // 1_000_000 + 3 * SOON_MS) // 1000
    ours.produce(topic, [{"body": "delayed", "delay_ms": 3 * SOON_MS}])
    (received,) = polling.wait_for_bodies(["delayed"])
    wait_until_done(server, topic, group)
    polling.stop()
    assert received["at_ms"] >= due_s * 1000
