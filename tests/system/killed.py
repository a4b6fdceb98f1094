"""A node that is killed again and again while producers write, held to its answers."""

from __future__ import annotations

import asyncio
import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import Remoting, connect, until
from tests.requests import pulling, sending
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

TOPIC = "orders"
QUEUES = 4
PIPELINED = 32
ACKNOWLEDGED = 100, 1500
"""A node is killed after so many answers, and up to `LATER_S` later."""
LATER_S = 0.2


class Acknowledged(NamedTuple):
    """What a producer was answered."""

    queue_id: int
    offset: int
    body: bytes


async def flood(
    client: Remoting, producer: int, acknowledged: list[Acknowledged]
) -> None:
    """Send without waiting for each answer until the node is gone; note the answers."""
    numbers = itertools.count()
    queue_id = producer % QUEUES
    try:
        while True:
            bodies = [b"%d-%d" % (producer, next(numbers)) for _ in range(PIPELINED)]
            futures = [
                client.send(sending(TOPIC, queue_id=queue_id), body) for body in bodies
            ]
            for body, future in zip(bodies, futures, strict=True):
                answer = await future
                assert answer.code == 0
                reply = answer.read(SendReply)
                acknowledged.append(
                    Acknowledged(reply.queue_id, reply.queue_offset, body)
                )
    except (ConnectionError, RuntimeError):
        # The rest of this round is unknown: stored or not, never acknowledged.
        await asyncio.gather(*futures, return_exceptions=True)


async def read_on(client: Remoting, queue_id: int, found: list[bytes]) -> None:
    """Add all that a queue has behind what was found of it."""
    while True:
        header = pulling(
            TOPIC, len(found), queue_id=queue_id, max_msg_nums=1000, bulk=True
        )
        answer = await client.ask(header)
        if answer.code != 0:
            return
        for one in answer.messages():
            assert one.queue_offset == len(found)
            found.append(one.body)


async def kill_again_and_again(
    folder: Path, flush: str, kills: int, chance: Random
) -> tuple[int, int]:
    """Kill a node under load, start it, and see that it has what it has acknowledged.

    Args:
        folder: For its data, settings and log.
        flush: Its flush mode. `async`, too, loses nothing: the process dies, and not
            the machine.
        kills: How often.
        chance: When, each time.

    Returns:
        How many messages were acknowledged, and how many are stored.
    """
    node = Ropeway(folder, sync_flush=flush == "sync")
    host, _, port = node.name_server.rpartition(":")
    where = SimpleNamespace(host=host, port=int(port))
    acknowledged: list[Acknowledged] = []
    stored: list[list[bytes]] = [[] for _ in range(QUEUES)]
    seen = 0
    try:
        for number in range(kills + 1):
            await asyncio.to_thread(node.start)
            async with connect(where) as one, connect(where) as two:
                for queue_id, found in enumerate(stored):
                    await read_on(one, queue_id, found)
                for there, offset, body in acknowledged[seen:]:
                    assert stored[there][offset] == body
                seen = len(acknowledged)
                if number == kills:
                    break
                producers = [
                    asyncio.create_task(flood(client, 10 * number + at, acknowledged))
                    for at, client in enumerate((one, two, one, two))
                ]
                wanted = seen + chance.randint(*ACKNOWLEDGED)
                await until(lambda: len(acknowledged) > wanted)  # noqa: B023
                await asyncio.sleep(chance.uniform(0, LATER_S))
                await asyncio.to_thread(node.kill)
                await asyncio.gather(*producers)
        async with connect(where) as client:
            for queue_id, found in enumerate(stored):
                again: list[bytes] = []
                await read_on(client, queue_id, again)
                assert again == found
                _in_order_and_once(found)
    finally:
        await asyncio.to_thread(node.stop)
    return len(acknowledged), sum(map(len, stored))


def _in_order_and_once(bodies: list[bytes]) -> None:
    """See that a queue has all of what each producer sent, up to some message."""
    numbers: dict[bytes, int] = {}
    for body in bodies:
        producer, number = body.split(b"-")
        assert int(number) == numbers.get(producer, 0)
        numbers[producer] = int(number) + 1
