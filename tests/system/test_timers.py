"""Messages that wait for their time while nodes are killed: all come, none is early."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.clients.harness import Session, bodies
from tests.clients.programs import JAVA_5
from tests.system.cluster import SHORT_SESSION_MS, Cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

COUNT = 40
BEFORE_S, STEP_MS = 10, 500
PATIENT = {"retry_for_ms": 60_000}
"""Where the machine stands still, the master may be taken for dead, and is another."""


@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.slow
def test_another_node_delivers_what_waits_when_the_master_is_killed(
    tmp_path: Path,
    agents: Agents,
    pulsar: Pulsar,
    zookeeper: ZooKeeper,
    topic: str,
    group: str,
) -> None:
    cluster = Cluster(tmp_path, pulsar, zookeeper.address, session_ms=SHORT_SESSION_MS)
    try:
        cluster.start()
        agent = Session(agents.of(JAVA_5), cluster.name_server)
        agent.introduce(topic, group)
        consumer = agent.start("consume", topic=topic, group=group)
        first_ms = int(time.time() * 1000) + BEFORE_S * 1000
        due = {f"{one}": first_ms + one * STEP_MS for one in range(COUNT)}
        sent = agent.produce(
            topic,
            [{"body": body, "deliver_ms": at} for body, at in due.items()],
            **PATIENT,
        )
        (recalled,) = agent.produce(
            topic,
            [{"body": "recalled", "deliver_ms": first_ms + COUNT * STEP_MS}],
            **PATIENT,
        )
        agent.ask("recall", "recalled", topic=topic, handle=recalled["recall_handle"])
        # Some have come when the master dies, and most have not.
        consumer.wait_for(3)
        cluster.nodes[0].kill()
        received = consumer.wait_for_bodies(list(due))
        consumer.stop()
    finally:
        cluster.kill()
    assert len(sent) == COUNT
    assert "recalled" not in bodies(received)
    for one in received:
        assert one["stored_ms"] >= due[one["body"]]
