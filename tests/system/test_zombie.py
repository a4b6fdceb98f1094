"""A node that was frozen for long stores nothing of what came to it meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    RemotingError,
)
from tests.remoting import looped, until
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.faults import QUEUES, read_all
from tests.system.process import stopped
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.slow]

FROZEN_S = 14.0
ONCE = ProducerConfig(retries=0, route_interval_s=1.0)
"""Each try is a message of its own, so that none can be taken for another."""


class Ledger:
    """What one client sends to one queue, in order, and what was acknowledged.

    Each message is tried until it is acknowledged, and only then comes the next.
    """

    def __init__(self, where: str, queue_id: int) -> None:
        self._where = where
        self._queue = MessageQueue("orders", "broker-0", queue_id)
        self.acknowledged: list[str] = []
        self.tried: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        async with Producer(self._where, f"p{self._queue.queue_id}", config=ONCE) as it:
            for number in itertools.count():
                for attempt in itertools.count():
                    if stop.is_set():
                        return
                    body = f"{number}.{attempt}"
                    self.tried.append(body)
                    with suppress(RemotingError):
                        message = Message("orders", body.encode())
                        await it.send(message, queue=self._queue)
                        self.acknowledged.append(body)
                        break
                    await asyncio.sleep(0.05)

    def check(self, stored: list[str]) -> None:
        assert set(self.acknowledged) <= set(stored)
        assert len(set(stored)) == len(stored), "no try is there twice"
        assert set(stored) <= set(self.tried)
        numbers = [tuple(map(int, body.split("."))) for body in stored]
        assert numbers == sorted(numbers), "none is late"


@looped
async def test_what_came_to_a_frozen_master_is_not_stored_when_it_goes_on(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with running(Cluster(tmp_path, pulsar, zookeeper.address)) as cluster:
        async with Admin(cluster.name_server, config=PATIENT) as admin:
            await admin.create_topic("orders", QUEUES)
        stop = asyncio.Event()
        ledgers = [Ledger(cluster.name_server, one) for one in range(QUEUES)]
        sending = [asyncio.create_task(one.run(stop)) for one in ledgers]

        async def flow() -> None:
            before = [len(one.acknowledged) for one in ledgers]
            await until(
                lambda: all(
                    len(one.acknowledged) > count + 5
                    for one, count in zip(ledgers, before, strict=True)
                )
            )

        await flow()
        master = cluster.nodes[0]
        with stopped(master.broker_pid):
            # Not a wait for something: this is the fault, as long as it was seen.
            await asyncio.sleep(FROZEN_S)
            await flow()
        log = master._directory / "ropeway.log"
        await until(lambda: "stood still for longer than its lease" in log.read_text())
        await flow()
        # What it refuses now is fresh: it forwards again.
        before = len(ledgers[0].acknowledged)
        await until(lambda: len(ledgers[0].acknowledged) > before + 50)
        stop.set()
        await asyncio.gather(*sending)
        stored = await read_all(cluster, "orders")
    for ledger, queue in zip(ledgers, stored, strict=True):
        ledger.check(queue)
