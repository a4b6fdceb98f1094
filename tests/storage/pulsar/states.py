"""States on a real Pulsar, for the tests of their parts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.cluster import Cluster as PulsarCluster
from ropeway.storage.pulsar.state import StateSettings, open_state
from tests.contracts.state import ignore, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.storage.pulsar.state import PulsarState
    from ropeway.storage.state import Deposed
    from tests.system.pulsar import Pulsar


class Cluster:
    """Opens states on one Pulsar, each node with a client of its own."""

    def __init__(self, pulsar: Pulsar, topic: str) -> None:
        self.pulsar = pulsar
        self.topic = topic
        self.admin = Admin(pulsar.admin_url)
        self._clients: list[PulsarClient] = []

    def client(self) -> PulsarClient:
        self._clients.append(PulsarClient(self.pulsar.service_url))
        return self._clients[-1]

    async def open(
        self, node: str, deposed: Deposed = ignore, **settings: float
    ) -> PulsarState:
        return await open_state(
            *(PulsarCluster(self.admin, self.client()), self.topic, node, deposed),
            StateSettings(**settings),  # type: ignore[arg-type]
        )

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.admin.close()


@asynccontextmanager
async def cluster(pulsar: Pulsar, topic: str) -> AsyncIterator[Cluster]:
    one = Cluster(pulsar, topic)
    try:
        yield one
    finally:
        await one.close()


def horizon(one: Cluster) -> object:
    """How far the topic is compacted."""
    path = one.topic.removeprefix("persistent://")
    stats = one.pulsar.admin("GET", f"persistent/{path}/internalStats")
    return stats["compactedLedger"]["ledgerId"]


STANDS_STILL_S = 20
"""A compaction of a few kilobytes takes less than a second."""


async def until_compacted(one: Cluster) -> bool:
    """Return when no compaction is under way, with whether the last one succeeded."""
    path = one.topic.removeprefix("persistent://")
    status = {}

    def done() -> bool:
        status.update(one.pulsar.admin("GET", f"persistent/{path}/compaction"))
        return status["status"] != "RUNNING"

    try:
        async with asyncio.timeout(STANDS_STILL_S):
            await until(done)
    except TimeoutError:
        # Seen of Pulsar 4.0.8 once in some hundred: it ends with its topic.
        await asyncio.to_thread(one.pulsar.admin, "PUT", f"persistent/{path}/unload")
        return False
    return bool(status["status"] == "SUCCESS")


async def compacted(one: Cluster) -> None:
    """Have the topic compacted from here on."""
    await until_compacted(one)
    await one.admin.compact(one.topic)
    # Pulsar may still be closing what read the topic for the compaction before.
    while not await until_compacted(one):
        await one.admin.compact(one.topic)
