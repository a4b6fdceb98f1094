"""Large numbers: thousands of connections, and timed messages over a kill."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import load, requests
from ropeway.gateway.wire import properties
from tests.remoting import Frame, Remoting, beat, looped
from tests.requests import pulling, sending, waiting
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.slow

CONNECTIONS = 2000
AT_ONCE = 100
"""So many connect at the same time: a listen backlog is finite."""
OTHER_FILES = 20
"""Segments, indexes and the like, which first use opens."""
GROUPS = 20
QUEUES = 4
WAIT_MS = 120_000
TIMERS = int(os.environ.get("ROPEWAY_TIMERS", "100000"))
"""A million takes minutes: that is for releases, and says so in docs/testing.md."""
READ_S = 900
"""A million is delivered and read in three minutes, and later on a busy machine."""
DELAY_MS = 15_000 + TIMERS // 10
"""All are stored, and the node was killed, before the first is due."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Ropeway]:
    started = Ropeway(tmp_path)
    started.start()
    yield started
    started.kill()


def open_files(node: Ropeway) -> int:
    return sum(1 for _ in Path(f"/proc/{node.broker_pid}/fd").iterdir())


@asynccontextmanager
async def connected(node: Ropeway, count: int = 1) -> AsyncIterator[list[Remoting]]:
    """So many connections, opened some at a time and closed all at once."""

    async def one() -> Remoting:
        where = "127.0.0.1", node.broker_port
        return Remoting(*await asyncio.open_connection(*where))

    clients: list[Remoting] = []
    try:
        while len(clients) < count:
            more = min(AT_ONCE, count - len(clients))
            clients += await asyncio.gather(*(one() for _ in range(more)))
        yield clients
    finally:
        await asyncio.gather(*(client.close() for client in clients))


@looped
async def test_thousands_of_consumers_wait_and_each_is_answered(node: Ropeway) -> None:
    before = open_files(node)
    async with connected(node) as (sender,), connected(node, CONNECTIONS) as clients:
        for queue_id in range(QUEUES):
            await sender.ask(sending("orders", queue_id=queue_id), b"first")

        async def pulled(number: int, client: Remoting) -> asyncio.Future[Frame]:
            group = f"group-{number % GROUPS}"
            assert (await beat(client, f"client-{number}", group)).code == 0
            pull = waiting(
                "orders",
                1,
                queue_id=number % QUEUES,
                group=group,
                suspend_timeout_millis=WAIT_MS,
            )
            return client.send(pull)

        # Some at a time: none waits for the last of thousands for longer than it may.
        pulls: list[asyncio.Future[Frame]] = []
        while len(pulls) < CONNECTIONS:
            some = range(len(pulls), len(pulls) + AT_ONCE)
            pulls += await asyncio.gather(*(pulled(one, clients[one]) for one in some))
        assert open_files(node) >= before + CONNECTIONS
        for queue_id in range(QUEUES):
            await sender.ask(sending("orders", queue_id=queue_id), b"%d" % queue_id)
        for number, pull in enumerate(pulls):
            (found,) = (await asyncio.wait_for(pull, WAIT_MS / 1000)).messages()
            assert found.body == b"%d" % (number % QUEUES)
    async with asyncio.timeout(60):
        while open_files(node) > before + OTHER_FILES:  # noqa: ASYNC110 - another process's
            await asyncio.sleep(0.05)


@pytest.mark.skipif(
    shutil.which("gcc") is None, reason="the load generator is built with gcc"
)
@pytest.mark.timeout(2 * READ_S)
def test_timers_are_delivered_once_and_not_early_over_a_kill(node: Ropeway) -> None:
    port = node.broker_port
    requests.create_topic(port, "orders", QUEUES)
    report = load.run(
        "load",
        port,
        f"send connections=8 window=64 topic=orders queues={QUEUES} count={TIMERS} "
        f"ms=600000 delay_ms={DELAY_MS}",
    )
    node.kill()
    node.start()
    stored = asyncio.run(read_all(node, report.messages // QUEUES))
    assert stored == report.messages
    assert sum(requests.end_offset(port, "orders", q) for q in range(QUEUES)) == stored


async def read_all(node: Ropeway, count: int) -> int:
    """Read so many messages of each queue, as soon as they are there."""
    async with connected(node) as (client,), asyncio.timeout(READ_S):
        return sum([await read(client, number, count) for number in range(QUEUES)])


async def read(client: Remoting, queue_id: int, count: int) -> int:
    """Read as many messages of a queue, none of them stored too early."""
    offset = 0
    while offset < count:
        header = pulling(
            "orders", offset, queue_id=queue_id, max_msg_nums=1000, bulk=True
        )
        answer = await client.ask(header)
        for one in answer.messages():
            assert one.queue_offset == offset
            came_ms = int(properties.parse(one.properties)["TIMER_ENQUEUE_MS"])
            assert one.store_ms >= came_ms + DELAY_MS
            offset += 1
        if answer.code:
            await asyncio.sleep(0.05)
    return offset
