"""Nodes fight for a partition and flood it: one contiguous log, nothing lost or double.

Exclusive access alone does not see to that: a broker may let an old owner in again
while it notes a new one, above all while the topic moves. What does are terms.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest
import uvloop

from ropeway.storage.api import LogUnavailableError, OutcomeUnknownError
from ropeway.storage.pulsar.pack import decode
from ropeway.storage.pulsar.terms import next_offset_of, term_of
from tests import failures
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for
from tests.system.pulsar_client import read_all as read_entries

if TYPE_CHECKING:
    from ropeway.storage.pulsar import PulsarLog
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.partition import PulsarPartition
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.timeout(600)]

NODES = 3
TAKEOVERS = 45
UNLOAD_EVERY = 4
APPENDERS = 8
AT_LEAST = 10
"""Appends that an owner sees acknowledged before the next one may begin."""
WITHIN_S = 2.0
"""Or so long, for it may be fenced before."""
LOOK_S = 20.0
"""How long nothing is acknowledged before the server's threads are looked at."""


class Node:
    """A node that owns the partition whenever it can, and floods it while it does."""

    def __init__(self, name: str, log: PulsarLog, acknowledged: dict[int, str]) -> None:
        self.name = name
        self.log = log
        self.acknowledged = acknowledged
        self.own = 0
        self.number = 0
        self.stopping = False
        self._stored = asyncio.Event()

    async def take_over(self) -> None:
        """Own it once, whoever has it; how long is for the others to say."""
        with contextlib.suppress(LogUnavailableError):
            await opened(self.log, 0)

    async def flood(self) -> None:
        """Append until told to stop; while another node owns it, wait."""
        partition = self.log.partition(TOPIC, 0)
        while not self.stopping:
            self.number += 1
            text = f"{self.name}.{self.number}"
            try:
                offset = await begin(partition, record(text), record(text + "+"))
            except OutcomeUnknownError:
                continue
            except LogUnavailableError:
                await asyncio.sleep(0.001)
                continue
            assert offset not in self.acknowledged, "given out twice"
            self.acknowledged[offset] = text
            self.own += 1
            self._stored.set()

    async def seen(self, count: int) -> None:
        """Return when so many appends were acknowledged, or it takes too long."""
        enough = self.own + count
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                while self.own < enough:
                    self._stored.clear()
                    await self._stored.wait()


def run(server: Pulsar, namespace: str, *, at_once: int) -> None:
    """Take over again and again, `at_once` nodes at the same moment; then look.

    Whoever was the owner goes on as if nothing had happened, with appends on their way
    when it is fenced, and when the topic is unloaded. Where threads of Pulsar wait for
    each other for ever, as those of 4.0.8 may, it is started again as after any other
    fault, and nothing may be lost by that.
    """
    acknowledged: dict[int, str] = {}
    deadlocks = 0
    settings = settings_for(server, namespace)
    topic = f"persistent/{namespace}/{TOPIC}-partition-0"

    async def heal() -> None:
        nonlocal deadlocks
        while True:
            before = len(acknowledged)
            await asyncio.sleep(LOOK_S)
            if len(acknowledged) == before and await asyncio.to_thread(
                failures.is_deadlocked, server
            ):
                deadlocks += 1
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)

    async def unload() -> None:
        try:
            await asyncio.to_thread(server.admin, "PUT", f"{topic}/unload")
        except (OSError, HTTPException):
            if not deadlocks:
                raise

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            healing = asyncio.ensure_future(heal())
            stack.callback(healing.cancel)
            nodes = []
            for number in range(NODES):
                log = await stack.enter_async_context(log_of(settings))
                await log.create(TOPIC, [0])
                nodes.append(Node(str(number), log, acknowledged))
            await nodes[0].take_over()
            floods = [
                asyncio.ensure_future(node.flood())
                for node in nodes
                for _ in range(APPENDERS)
            ]
            for turn in range(1, TAKEOVERS + 1):
                takers = [nodes[(turn + i) % NODES] for i in range(at_once)]
                moves = []
                if turn % UNLOAD_EVERY == 0:
                    moves.append(asyncio.ensure_future(unload()))
                    await asyncio.sleep(0.001 * (turn % 7))
                await asyncio.gather(*(node.take_over() for node in takers))
                await asyncio.gather(*moves)
                await asyncio.wait(
                    [asyncio.ensure_future(node.seen(AT_LEAST)) for node in takers],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            for node in nodes:
                node.stopping = True
            await asyncio.gather(*floods)
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            check(await read_all(partition), acknowledged, partition.end)
            await check_entries(log)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def check(texts: list[str], acknowledged: dict[int, str], end: int) -> None:
    """All that was acknowledged is where it was said, once, and there is no gap."""
    assert len(texts) == end == len(set(texts))
    for offset, text in acknowledged.items():
        assert texts[offset : offset + 2] == [text, text + "+"]
    assert len(acknowledged) >= TAKEOVERS
    names = {text.split(".")[0] for text in acknowledged.values()}
    assert names == {str(number) for number in range(NODES)}


async def check_entries(log: PulsarLog) -> None:
    """In the topic, terms and offsets only grow, and each term has begun once."""
    partition: PulsarPartition = log.partition(TOPIC, 0)
    client: PulsarClient = log._client
    entries = await read_entries(client, partition.full_name)
    numbers = [entry.sequence_id for entry in entries]
    assert all(one < other for one, other in itertools.pairwise(numbers))
    claims = [term_of(one) for one in numbers if next_offset_of(one) is None]
    # Some take-overs fail: whoever was the owner takes its place back meanwhile.
    assert len(claims) == len(set(claims)) > TAKEOVERS / 2
    at = 0
    for entry in entries:
        pack = decode(entry.payload)
        if next_offset_of(entry.sequence_id) is not None:
            assert pack.base_offset == at
            at = pack.end
            # Markers count there, too, and packs that were not stored.
            assert entry.index is None or entry.index >= at - 1


def test_take_overs_one_after_the_other(each_pulsar: Pulsar) -> None:
    each_pulsar.make_namespace("public/one-after-the-other")
    run(each_pulsar, "public/one-after-the-other", at_once=1)


def test_take_overs_of_two_nodes_at_the_same_moment(each_pulsar: Pulsar) -> None:
    each_pulsar.make_namespace("public/same-moment")
    run(each_pulsar, "public/same-moment", at_once=2)
