"""What two clusters of Pulsar are given, and what is seen of them."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PullConsumer,
    RemotingError,
)
from ropeway.client.message import MessageQueue
from tests.ropeway.client import scenario
from tests.system.ropeway import PATIENT, Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.pulsar import Pulsar

EAST, WEST = "standalone", "west"
TENANT = "geo"
QUEUES = 2
COUNT = 40
SEND_S = 60.0
PATIENCE_S = 300.0
PAUSE_S = 0.2


def node(
    directory: Path,
    routes: str,
    space: str,
    *,
    service_url: str,
    admin_url: str,
    more: str = "",
    name: str = "one",
) -> Ropeway:
    directory.mkdir()
    tenant, namespace = space.split("/")
    settings = directory / "ropeway.toml"
    settings.write_text(
        f'[pulsar]\nservice_url = "{service_url}"\nadmin_url = "{admin_url}"\n'
        f'tenant = "{tenant}"\nnamespace = "{namespace}"\n{more}{PATIENT}'
    )
    return Ropeway(
        directory,
        options=["--config", str(settings), "--routes", routes, "--node", name],
    )


async def until(condition: Callable[[], bool]) -> None:
    """Return when a condition on servers holds, which is asked for in a thread."""
    give_up = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < give_up
        await asyncio.sleep(PAUSE_S)


async def send(where: str, first: int, count: int) -> list[tuple[int, int]]:
    """Send numbers, in turn to each queue; the queue and offset of each."""
    found = []
    async with Producer(where, "senders", config=scenario.PATIENT_PRODUCER) as producer:
        for number in range(first, first + count):
            queue = MessageQueue("orders", "broker-0", number % QUEUES)
            message = Message("orders", b"%d" % number)
            sent = await producer.send(message, queue=queue, timeout_s=SEND_S)
            found.append((sent.queue.queue_id, sent.queue_offset))
    return found


async def accepted(where: str, message: Message) -> int:
    """Send a message to queue 0 until it is stored; the offset of that time."""
    queue = MessageQueue(message.topic, "broker-0", 0)
    async with (
        Producer(where, "senders", config=scenario.PATIENT_PRODUCER) as producer,
        asyncio.timeout(PATIENCE_S),
    ):
        while True:
            try:
                return (await producer.send(message, queue=queue)).queue_offset
            except RemotingError:
                await asyncio.sleep(PAUSE_S)


async def read(where: str, group: str, count: int) -> list[tuple[int, int, bytes]]:
    """So many messages, and commit them: queue, offset and body of each."""
    found: list[tuple[int, int, bytes]] = []
    async with PullConsumer(
        where,
        group,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        config=scenario.PATIENT_CONSUMER,
    ) as consumer:
        consumer.subscribe("orders")
        while len(found) < count:
            some = await consumer.poll(SEND_S)
            assert some, f"{len(found)} of {count} messages come"
            found += [(one.queue.queue_id, one.queue_offset, one.body) for one in some]
        assert await consumer.poll(0) == []
        await consumer.commit()
    return sorted(found)


def numbered(first: int, count: int) -> list[tuple[int, int, bytes]]:
    """What `read` finds of what `send` sent, where all is at its place."""
    return sorted(
        (number % QUEUES, number // QUEUES, b"%d" % number)
        for number in range(first, first + count)
    )


def replicated(here: Pulsar, space: str, there: str) -> Callable[[], bool]:
    """Whether all that a cluster has of a namespace is in another one, too."""
    names = [f"orders-partition-{number}" for number in range(QUEUES)]

    def look() -> bool:
        stats = [
            here.admin("GET", f"persistent/{space}/{name}/stats")["replication"][there]
            for name in (*names, "__ropeway_state-broker-0")
        ]
        return all(one["connected"] and not one["replicationBacklog"] for one in stats)

    return look


class Geo:
    """A namespace that two clusters replicate, and nodes that share their routes."""

    def __init__(self, directory: Path, name: str, routes: str) -> None:
        self.space = f"{TENANT}/{name}"
        self._directory = directory
        self._routes = routes
        self._made: list[Ropeway] = []

    def node(self, *servers: Pulsar, adopt: str | None = None) -> Ropeway:
        """A node whose settings name these clusters, the first one first."""
        services = ",".join(
            one.service_url.removeprefix("pulsar://") for one in servers
        )
        admins = ",".join(one.admin_url.removeprefix("http://") for one in servers)
        made = node(
            self._directory / f"{len(self._made)}",
            self._routes,
            self.space,
            service_url=f"pulsar://{services}",
            admin_url=f"http://{admins}",
            more="" if adopt is None else f'adopt = "{adopt}"\n',
            name=f"node-{len(self._made)}",
        )
        self._made.append(made)
        return made

    def refusal(self, *servers: Pulsar, adopt: str | None = None) -> str:
        """What a node says that does not start."""
        with pytest.raises(RuntimeError) as refused:
            self.node(*servers, adopt=adopt).start()
        return str(refused.value).strip().splitlines()[-1]

    def log(self, number: int) -> str:
        """What a node wrote, the first one 0."""
        return (self._directory / f"{number}" / "ropeway.log").read_text()

    async def start(self, one: Ropeway) -> None:
        """Start the first node, and make what the tests send to."""
        await asyncio.to_thread(one.start)
        async with Admin(one.name_server, config=scenario.PATIENT) as admin:
            await admin.create_topic("orders", QUEUES)

    def kill(self) -> None:
        """End all nodes."""
        for one in self._made:
            one.kill()
