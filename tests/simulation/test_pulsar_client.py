"""Pulsar's client, the real one, over brokers of the model that die and move topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.commands import Access
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests import chance
from tests.simulation.pulsar_brokers import BUNDLES
from tests.simulation.pulsar_brokers import Pulsar as Cluster
from tests.simulation.world import World

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.errors import PulsarError
    from ropeway.storage.pulsar.producer import Producer

TOPIC = "persistent://public/default/t"
ENTRIES = 300
TERMS = 3
TERM = 1 << 20
EVERY_S = 0.01
BACK_S = 60.0
SEEDS = range(5)
FRESH = 5


class Writing:
    """Owners of a topic, one after the other, and a reader that follows them."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self._world = world
        self._cluster = cluster
        self._client = PulsarClient(cluster.service_url, request_timeout_s=30)
        self.stored: dict[int, Position] = {}
        """What was acknowledged, by sequence id."""
        self.read: list[Entry] = []
        self.over = False

    async def all(self) -> None:
        """Write and read while brokers fail, then see that all is there."""
        self._cluster.make(TOPIC)
        reader = await self._client.reader(
            TOPIC, "earliest", received=self.read.append, lost=_raise, permits=1 << 20
        )
        breaking = asyncio.ensure_future(self._break())
        waiting: list[asyncio.Future[None]] = []
        producer: Producer | None = None
        for term in range(1, TERMS + 1):
            # The one before is not closed: it is fenced, whatever it still sends.
            producer = await self._client.producer(
                TOPIC, "owner", access=Access.EXCLUSIVE_WITH_FENCING, lost=_ignore
            )
            newest = max(term * TERM, producer.last_sequence_id // TERM * TERM + TERM)
            waiting = []
            for number in range(ENTRIES):
                waiting.append(self._send(producer, newest + number))
                await asyncio.sleep(self._cluster.chance.expovariate(1 / EVERY_S))
        await asyncio.wait_for(asyncio.gather(*waiting), BACK_S)
        self.over = True
        await breaking
        async with asyncio.timeout(BACK_S):  # of virtual time
            while not self.read or self.read[-1].sequence_id != newest + ENTRIES - 1:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await reader.close()
        await self._client.close()

    def _send(self, producer: Producer, number: int) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def stored(where: Position | None, error: PulsarError | None) -> None:
            if where is not None:
                self.stored[number] = where
            if not done.done():
                done.set_result(None)

        producer.send([b"%d" % number], number, stored, EntryMetadata(1))
        return done

    async def _break(self) -> None:
        draw: random.Random = self._world.chance("faults")
        cluster, network = self._cluster, self._world.network
        while not self.over:
            await asyncio.sleep(draw.expovariate(4))
            broker = draw.choice(cluster.brokers)
            match draw.choice(["kill", "unload", "reset", "slow"]):
                case "kill":
                    process = cluster.kill(broker)
                    if process is not None:
                        self._world.kill(process)
                    await asyncio.sleep(draw.uniform(0, 2))
                    broker.start()
                case "unload":
                    for bundle in range(BUNDLES):
                        cluster.unload(bundle)
                case "reset":
                    for end in network.between(broker.host):
                        end.peer.reset()
                        end.reset()
                case "slow":
                    broker.is_slow = not broker.is_slow
        for broker in cluster.brokers:
            broker.is_slow = False
            broker.start()


def _raise(error: PulsarError) -> None:
    raise error


def _ignore(_: PulsarError) -> None:
    """It was fenced."""


def run(seed: int, scratch: Path) -> str:
    """What a run came to: the sequence ids that were read."""
    world = World(seed, scratch)
    with world.entered():
        process = world.process("node", "10.0.0.1")
        cluster = Cluster(world.network, world.chance("pulsar"))

        async def begun() -> Writing:
            writing = Writing(world, cluster)
            await writing.all()
            return writing

        work = world.loop.spawn(process, begun())
        writing = world.loop.run_until_complete(work)
        assert not world.loop.failures
        there = {one.where: one.metadata.sequence_id for one in cluster.topics[TOPIC]}
        read = [one.sequence_id for one in writing.read]
    # Nothing twice, nothing late of an owner that was fenced, nothing lost.
    assert read == sorted({*there.values()}), seed
    assert len(read) == len(there), seed
    for number, where in writing.stored.items():
        assert there[where] == number, seed
    return repr(read)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_there_once_and_in_order(
    seed: int, tmp_path: Path
) -> None:
    assert run(seed, tmp_path / "1") == run(seed, tmp_path / "2")


def test_the_same_holds_on_fresh_seeds(tmp_path: Path) -> None:
    for number in range(FRESH):
        run(chance.seed() + number, tmp_path / str(number))
