"""Real clients that reach a node by IPv6 alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.grpc_clients import JAVA_GRPC
from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import GO, JAVA_4, JAVA_5, Client, each
from tests.clients.test_connections import certificate
from tests.clients.test_grpc import set_up
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.fixtures import Agents

COUNT = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ropeway]:
    """A node that listens on `::1`, and nowhere else, for all protocols."""
    folder = tmp_path_factory.mktemp("ipv6")
    started = Ropeway(folder, host="[::1]", options=["--grpc"], tls=certificate(folder))
    started.start()
    yield started
    started.kill()


@each(JAVA_5, JAVA_4, GO)
def test_what_is_sent_over_ipv6_is_received_over_ipv6(
    client: Client, server: Ropeway, agents: Agents, topic: str, group: str
) -> None:
    agent = Session(agents.of(client), server.name_server)
    sent = agent.produce(topic, numbered(COUNT))
    assert {event["status"] for event in sent} == {"SEND_OK"}
    consumer = agent.start("consume", topic=topic, group=group)
    received = consumer.wait_for_bodies(bodies(numbered(COUNT)))
    consumer.stop()
    assert sorted(bodies(received)) == sorted(bodies(numbered(COUNT)))
    assert {event["msg_id"] for event in received} == {one["msg_id"] for one in sent}


@each(JAVA_GRPC)
def test_grpc_clients_send_and_receive_over_ipv6(
    client: Client, server: Ropeway, agents: Agents, topic: str, group: str
) -> None:
    set_up(server, topic, group, "NORMAL")
    agent = Session(agents.of(client), server.name_server)
    agent.produce(topic, numbered(COUNT))
    consumer = agent.start("consume", topic=topic, group=group)
    received = consumer.wait_for_bodies(bodies(numbered(COUNT)))
    consumer.stop()
    assert sorted(bodies(received)) == sorted(bodies(numbered(COUNT)))
