"""A consumer of lite topics goes on when its broker's master is killed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.lite_views import GetLiteGroupInfo
from ropeway.gateway.wire.lite_bodies import LiteGroupInfo
from tests.clients.asking import ask
from tests.clients.grpc_clients import JAVA_GRPC
from tests.clients.harness import Session
from tests.clients.test_connections import certificate
from tests.clients.test_grpc import set_up
from tests.system.cluster import SHORT_SESSION_MS, Cluster
from tests.system.faults import RECOVERY_S
from tests.system.test_cluster import running
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.clients.harness import Event
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

ROOMS = 20
BEFORE, COUNT = 5, 60
"""Messages of each lite topic: done long before the kill, and in all."""
PAUSE_MS = 10
AT_MOST = 3
"""How often a message may come: what was in hand or had just been done comes again."""
pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]


def lag(cluster: Cluster, group: str) -> int:
    """How many messages a group has not done; -1 where nobody can say now."""
    answer = ask(cluster, GetLiteGroupInfo(group=group, top_k=1))
    if answer.code:
        return -1
    return bodies.decode(LiteGroupInfo, answer.body).total_lag_count


def messages(first: int, end: int) -> list[Event]:
    """Some of each lite topic, in turn."""
    return [
        {"body": f"room-{room} {at}", "lite_topic": f"room-{room}"}
        for at in range(first, end)
        for room in range(ROOMS)
    ]


def test_what_is_in_lite_topics_is_consumed_in_order_when_the_master_is_killed(
    pulsar: Pulsar,
    zookeeper: ZooKeeper,
    agents: Agents,
    topic: str,
    group: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = Cluster(
        tmp_path / "cluster",
        pulsar,
        zookeeper.address,
        session_ms=SHORT_SESSION_MS,
        options=["--grpc"],
        tls=certificate(tmp_path),
    )
    with running(cluster):
        bound = {"+lite.bind.topic": topic}
        set_up(
            cluster,
            topic,
            group,
            "LITE",
            attributes=bound,
            consume_message_orderly=True,
        )
        ours = Session(agents.of(JAVA_GRPC), cluster.name_server)
        consumer = ours.start("consume_lite", topic=topic, group=group)
        for room in range(ROOMS):
            name = f"room-{room}"
            ours.ask(
                "subscribe_lite", "subscribed", target=consumer.id, lite_topic=name
            )
        ours.produce(topic, messages(0, BEFORE), retry_for_ms=RECOVERY_S * 1000)
        consumer.wait_for(BEFORE * ROOMS)
        until(lambda: lag(cluster, group) == 0)
        producer = ours.call(
            "produce",
            topic=topic,
            messages=messages(BEFORE, COUNT),
            pause_ms=PAUSE_MS,
            retry_for_ms=RECOVERY_S * 1000,
        )
        producer.wait_for((COUNT - BEFORE) * ROOMS // 3, "sent")
        cluster.nodes[0].kill()
        producer.wait_for(1, "done", seconds=RECOVERY_S)
        assert not producer.events("failed")
        wanted = [one["body"] for one in messages(0, COUNT)]
        consumer.wait_for_bodies(wanted, seconds=RECOVERY_S)
        # All is done, so nothing can come again.
        until(lambda: lag(cluster, group) == 0)
        received = [one["body"] for one in consumer.stop()]
    for room in range(ROOMS):
        mine = [body for body in received if body.split()[0] == f"room-{room}"]
        assert list(dict.fromkeys(mine)) == [f"room-{room} {at}" for at in range(COUNT)]
    often = Counter(received)
    assert max(often.values()) <= AT_MOST
    # What was done long before does not come again.
    assert {often[one["body"]] for one in messages(0, BEFORE)} == {1}
    record_property("received again", len(received) - len(wanted))
    print(f"{len(received) - len(wanted)} of {len(wanted)} received again")
