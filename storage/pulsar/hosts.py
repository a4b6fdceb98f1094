"""Which machines serve a topic's partitions, for whoever wants to be near them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.pulsar.errors import PulsarError

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.topic_names import PulsarName

AT_ONCE = 32
"""Look-ups on their way: a topic has up to 1,024 partitions."""

PATIENCE_S = 3.0
"""Whoever makes a topic waits for it, and can do without."""

_log = structlog.get_logger()


async def hosts(
    client: PulsarClient, name: PulsarName, partitions: Collection[int]
) -> dict[int, str]:
    """The host of the broker that serves each partition, of those that were found.

    A partition that nobody serves yet is given to a broker by the question.
    """
    found: dict[int, str] = {}
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(number: int) -> None:
        async with slots:
            found[number] = await client.host_of(name.partition(number))

    try:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            for number in partitions:
                group.create_task(ask(number))
    except* (PulsarError, TimeoutError) as errors:
        _log.warning(
            "cannot tell which brokers serve a topic",
            topic=name.path,
            found=len(found),
            reason=str(errors.exceptions[0]),
        )
    return found
