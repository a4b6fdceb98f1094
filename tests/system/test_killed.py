"""A node that is killed while producers write: what it acknowledged is there after."""

from __future__ import annotations

import asyncio
import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import Remoting, connect, looped, until
from tests.requests import pulling, sending
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

QUEUES = 4
PIPELINED = 32


async def flood(
    client: Remoting, producer: int, acknowledged: list[tuple[int, int, bytes]]
) -> None:
    """Send without waiting for each answer until the node is gone; note the answers."""
    numbers = itertools.count()
    queue_id = producer % QUEUES
    try:
        while True:
            bodies = [b"%d-%d" % (producer, next(numbers)) for _ in range(PIPELINED)]
            futures = [
                client.send(sending("orders", queue_id=queue_id), body)
                for body in bodies
            ]
            for body, future in zip(bodies, futures, strict=True):
                answer = await future
                assert answer.code == 0
                reply = answer.read(SendReply)
                acknowledged.append((reply.queue_id, reply.queue_offset, body))
    except (ConnectionError, RuntimeError):
        # The rest of this round is unknown: stored or not, never acknowledged.
        await asyncio.gather(*futures, return_exceptions=True)


async def read_all(client: Remoting, queue_id: int) -> list[bytes]:
    found: list[bytes] = []
    while True:
        answer = await client.ask(
            pulling(
                "orders", len(found), queue_id=queue_id, max_msg_nums=1000, bulk=True
            )
        )
        if answer.code != 0:
            return found
        for one in answer.messages():
            assert one.queue_offset == len(found)
            found.append(one.body)


@looped
@pytest.mark.parametrize("flush", ["sync", "async"])
async def test_what_was_acknowledged_before_a_kill_is_there_in_order_and_once(
    tmp_path: Path, flush: str
):
    """`async` too, for it is the process that dies and not the machine."""
    node = Ropeway(tmp_path, sync_flush=flush == "sync")
    acknowledged: list[tuple[int, int, bytes]] = []
    in_thread: Callable = asyncio.to_thread
    try:
        for round_number in range(2):
            await in_thread(node.start)
            host, _, port = node.name_server.rpartition(":")
            where = SimpleNamespace(host=host, port=int(port))
            before = len(acknowledged)
            async with connect(where) as one, connect(where) as two:
                producers = [
                    asyncio.create_task(
                        flood(client, 10 * round_number + number, acknowledged)
                    )
                    for number, client in enumerate((one, two, one, two))
                ]
                await until(lambda: len(acknowledged) > before + 500)  # noqa: B023
                await in_thread(node.kill)
                await asyncio.gather(*producers)
        await in_thread(node.start)
        async with connect(where) as client:
            stored = [await read_all(client, one) for one in range(QUEUES)]
        for queue_id, offset, body in acknowledged:
            assert stored[queue_id][offset] == body
        for bodies in stored:
            assert len(set(bodies)) == len(bodies)
            for producer in {one.split(b"-")[0] for one in bodies}:
                numbers = [
                    int(one.split(b"-")[1])
                    for one in bodies
                    if one.startswith(producer + b"-")
                ]
                assert numbers == list(range(len(numbers)))
    finally:
        await in_thread(node.stop)
