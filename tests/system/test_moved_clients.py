"""Queues move, and a broker is drained, under producers and consumers in Java."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ropeway.client import (
    Admin,
    ConsumeFrom,
    PullConsumer,
    admin_topics,
)
from ropeway.gateway.wire import bodies, message_id
from ropeway.gateway.wire.commands.admin import CreateGroup, CreateTopic
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from tests.clients.grpc_clients import JAVA_GRPC
from tests.clients.harness import Session
from tests.clients.programs import JAVA_4, JAVA_5
from tests.clients.test_connections import certificate
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.test_cluster import running
from tests.system.test_rebalance import (
    BROKERS,
    CONFIG,
    PATIENCE_S,
    PAUSE_S,
    until_known,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.clients.harness import Call, Event
    from tests.clients.programs import Client
    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

GIVER, TAKER = BROKERS
QUEUES = 4
COUNT, EARLY = 300, 40
"""Messages in order of each client, and how many before the first move."""
PAUSE_MS = 20
CHECK_MS = 3000
HOLD_MS = 10_000
"""How long a transaction of a remoting client is open, which a move outlives."""
WAIT_S = 300.0
ROUTES_MS = 1000
HOME = {"poll_routes_ms": ROUTES_MS}


class Flow(NamedTuple):
    """What one client sends and receives."""

    name: str
    session: Session
    is_grpc: bool
    calls: dict[str, Call]

    @property
    def ordered(self) -> str:
        """The topic of messages in order."""
        return f"ordered-{self.name}"

    @property
    def transacted(self) -> str:
        """The topic of transactions."""
        return f"transacted-{self.name}"

    def group(self, topic: str) -> str:
        """Who consumes a topic."""
        return f"group-{topic}"

    def messages(self) -> list[Event]:
        """Those in order."""
        place = "group" if self.is_grpc else "shard"
        return [
            {
                "body": f"{number}",
                place: f"g{number % QUEUES}" if self.is_grpc else number % QUEUES,
            }
            for number in range(COUNT)
        ]

    def transactions(self) -> list[Event]:
        """Half messages, most of which are committed when their producer is asked."""
        found = [
            {"body": f"asked {number}", "properties": {"check": "commit"}}
            for number in range(6)
        ]
        found.append({"body": "undone", "properties": {"check": "rollback"}})
        if not self.is_grpc:
            held = {"local": "commit", "hold_ms": str(HOLD_MS)}
            found.append({"body": "held", "properties": held})
        return found

    def begin(self) -> None:
        """Have both topics consumed, and half messages stored."""
        more = {} if self.is_grpc else HOME
        for topic in (self.ordered, self.transacted):
            options = {"topic": topic, "group": self.group(topic), **more}
            if not self.is_grpc:
                options |= {"from": "FIRST_OFFSET", "orderly": topic == self.ordered}
            self.calls[topic] = self.session.start("consume", **options)
        sending = {} if self.is_grpc else {"mode": "ordered", **HOME}
        self.calls["produce"] = self.session.call(
            "produce",
            topic=self.ordered,
            messages=self.messages(),
            pause_ms=PAUSE_MS,
            retry_for_ms=int(WAIT_S * 1000),
            **sending,
        )
        group = {} if self.is_grpc else {"group": f"{self.name}-producers", **HOME}
        self.calls["transact"] = self.session.call(
            "transact", topic=self.transacted, messages=self.transactions(), **group
        )

    def until_begun(self) -> None:
        """Return when there is something to move under it."""
        self.calls["produce"].wait_for(EARLY, "sent", WAIT_S)
        before = len(self.transactions()) - (not self.is_grpc)
        self.calls["transact"].wait_for(before, "sent", WAIT_S)
        if not self.is_grpc:
            self.calls["transact"].wait_for(before + 1, "executing", WAIT_S)

    def until_ended(self) -> None:
        """Return when all has come that was acknowledged."""
        self.calls["produce"].wait_for(1, "done", WAIT_S)
        assert not self.calls["produce"].events("failed")
        sent = [one["body"] for one in self.calls["produce"].events("sent")]
        assert sorted(map(int, sent)) == list(range(COUNT))
        self.calls[self.ordered].wait_for_bodies(sent, WAIT_S)
        self.calls["transact"].wait_for(1, "done", WAIT_S)
        wanted = [one["body"] for one in self.transactions() if one["body"] != "undone"]
        self.calls[self.transacted].wait_for_bodies(wanted, WAIT_S)

    def stop(self, topic: str) -> list[str]:
        """What came of a topic."""
        return [one["body"] for one in self.calls[topic].stop()]


async def make(cluster: Cluster, flow: Flow) -> None:
    """Make its topics, on the broker that is to give queues away."""
    async with Admin(cluster.name_server, config=PATIENT) as admin:
        for topic, kind in ((flow.ordered, "FIFO"), (flow.transacted, "TRANSACTION")):
            made = CreateTopic(
                topic=topic,
                default_topic="",
                read_queue_nums=QUEUES,
                write_queue_nums=QUEUES,
                perm=6,
                attributes=f"+message.type={kind}",
            )
            await admin.ask_broker(GIVER, made)
            group = bodies.GroupConfig(
                group_name=flow.group(topic),
                consume_message_orderly=flow.is_grpc and topic == flow.ordered,
            )
            await admin.ask_masters(CreateGroup(), bodies.encode(group))
            for queue_id in range(QUEUES):
                begin = UpdateConsumerOffset(
                    flow.group(topic), topic, queue_id, 0, GIVER
                )
                await admin.ask_broker(GIVER, begin)


def ropeway(cluster: Cluster, *words: str) -> subprocess.Popen[str]:
    """A command that runs."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "ropeway.gateway.cli.main", *words),
            *("--name-server", cluster.name_server, "--json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def until_one_has_moved(cluster: Cluster, flows: list[Flow]) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        Admin(cluster.name_server, config=PATIENT) as admin,
    ):
        while True:
            for flow in flows:
                for topic in (flow.ordered, flow.transacted):
                    if TAKER in await admin_topics.places(admin, topic):
                        return
            await asyncio.sleep(PAUSE_S)


async def all_places(cluster: Cluster, topics: list[str]) -> list[dict[str, list[int]]]:
    async with Admin(cluster.name_server, config=PATIENT) as admin:
        return [await admin_topics.places(admin, topic) for topic in topics]


async def stored(cluster: Cluster, topic: str) -> dict[str, list[tuple[int, int]]]:
    """In which partitions, and where there, each body of a topic is."""
    found: dict[str, list[tuple[int, int]]] = {}
    reader = PullConsumer(
        cluster.name_server,
        "auditors",
        consume_from=ConsumeFrom.FIRST_OFFSET,
        config=CONFIG,
    )
    reader.subscribe(topic)
    async with reader:
        missing = {str(number) for number in range(COUNT)}
        while missing:
            some = await reader.poll(PATIENCE_S)
            assert some, missing
            for one in some:
                identity = message_id.parse_offset_msg_id(one.offset_msg_id)
                place = message_id.unpack(identity.message_id)
                body = one.body.decode()
                found.setdefault(body, []).append((place.partition, place.offset))
                missing.discard(body)
    return found


def is_in_order(received: list[str], places: dict[str, list[tuple[int, int]]]) -> bool:
    """Whether what came first of each queue's messages came in its order."""
    queues: dict[int, list[int]] = {}
    for body in dict.fromkeys(received):
        # Of one that was stored twice nobody knows which came first.
        if len(places[body]) == 1:
            ((partition, offset),) = places[body]
            queues.setdefault(partition, []).append(offset)
    return all(offsets == sorted(offsets) for offsets in queues.values())


def test_clients_in_java_lose_nothing_when_queues_move_and_their_broker_is_drained(
    pulsar: Pulsar,
    zookeeper: ZooKeeper,
    agents: Agents,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = Cluster(
        tmp_path / "cluster",
        pulsar,
        zookeeper.address,
        brokers=BROKERS,
        check_ms=CHECK_MS,
        options=["--grpc"],
        tls=certificate(tmp_path),
    )

    def flow(name: str, client: Client) -> Flow:
        session = Session(agents.of(client), cluster.name_server)
        return Flow(name, session, client is JAVA_GRPC, {})

    with running(cluster):
        flows = [flow("j4", JAVA_4), flow("j5", JAVA_5), flow("grpc", JAVA_GRPC)]
        for node in cluster.nodes:
            asyncio.run(until_known(node.name_server))
        for one in flows:
            asyncio.run(make(cluster, one))
            one.begin()
        for one in flows:
            one.until_begun()

        # The command dies in the middle, and is given again.
        killed = ropeway(cluster, "route", "rebalance", "--all", "--yes")
        asyncio.run(until_one_has_moved(cluster, flows))
        killed.kill()
        killed.communicate()
        topics = [name for one in flows for name in (one.ordered, one.transacted)]
        again = until_done(cluster, "route", "rebalance", "--all", "--yes")
        print(f"{len(again)} moves behind the kill")
        spread = asyncio.run(all_places(cluster, topics))
        assert [sorted(map(len, found.values())) for found in spread] == (
            [[QUEUES // 2] * 2] * len(topics)
        )
        drained = until_done(cluster, "broker", "drain", GIVER, "--yes")
        assert drained["left"] == {}
        for found in asyncio.run(all_places(cluster, topics)):
            assert {name: len(each) for name, each in found.items()} == {TAKER: QUEUES}

        for one in flows:
            one.until_ended()
        for one in flows:
            places = asyncio.run(stored(cluster, one.ordered))
            received = one.stop(one.ordered)
            assert is_in_order(received, places)
            ended = one.stop(one.transacted)
            assert "undone" not in ended
            one.calls["transact"].stop()
            twice = sum(len(each) - 1 for each in places.values())
            told = {
                "received again": len(received) - len(set(received)),
                "stored twice": twice,
                "transactions received again": sum(Counter(ended).values())
                - len(set(ended)),
            }
            print(one.name, told)
            for what, count in told.items():
                record_property(f"{one.name}: {what}", count)


def until_done(cluster: Cluster, *words: str) -> Any:
    """Give a command as often as something is refused for now; what it printed."""
    give_up_s = time.monotonic() + WAIT_S
    while True:
        process = ropeway(cluster, *words)
        out, errors = process.communicate(timeout=WAIT_S)
        if process.returncode == 0:
            return json.loads(out)
        assert time.monotonic() < give_up_s, errors
