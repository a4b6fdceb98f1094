"""Logs on a real Pulsar, for tests."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar import PulsarLog, PulsarLogSettings, open_log
from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.commands import Access
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.contracts.log import TOPIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ropeway.storage.pulsar.entry import Position
    from ropeway.storage.pulsar.errors import PulsarError
    from ropeway.storage.pulsar.partition import PulsarPartition
    from tests.system.pulsar import Pulsar

OUTCOME_S = 5.0
"""A Pulsar that is stopped is given up after this, and a slow one is not."""
PATIENCE_S = 300.0


def settings_for(pulsar: Pulsar, namespace: str, **others: Any) -> PulsarLogSettings:
    """Settings of a log in a test's own namespace."""
    tenant, space = namespace.split("/")
    return PulsarLogSettings(
        service_url=pulsar.service_url,
        admin_url=pulsar.admin_url,
        tenant=tenant,
        namespace=space,
        **others,
    )


@contextlib.asynccontextmanager
async def log_of(
    settings: PulsarLogSettings,
    lost_ownership: Callable[[str, int], None] | None = None,
) -> AsyncIterator[PulsarLog]:
    """A log that is closed in the end."""
    log = await open_log(settings, prepare=True, lost_ownership=lost_ownership)
    try:
        yield log
    finally:
        await log.close()


async def until(
    condition: Callable[[], bool], again: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Wait for a condition; `again` is called before each look."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if again is not None:
                await again()
            if condition():
                return
            await asyncio.sleep(0.02)


async def followed(log: PulsarLog) -> PulsarPartition:
    """The first partition of the test's topic, as a slave has it."""
    await log.follow()
    await log.create(TOPIC, [0])
    partition = log.partition(TOPIC, 0)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            # Its owner tells the end a moment after it has opened it.
            with contextlib.suppress(LogUnavailableError):
                await log.ready(TOPIC)
                return partition
            await asyncio.sleep(0.02)


def truncate(pulsar: Pulsar, namespace: str) -> None:
    """Have Pulsar delete all that the first partition of a test's topic holds."""
    path = f"persistent/{namespace}/{TOPIC}-partition-0"
    # The ledger that is being written is never deleted; an unload ends it.
    pulsar.admin("PUT", f"{path}/unload")
    pulsar.admin("GET", f"{path}/stats")
    pulsar.admin("DELETE", f"{path}/truncate")


async def write(
    pulsar: Pulsar,
    namespace: str,
    payload: bytes,
    sequence_id: int,
    name: str = "ropeway",
) -> None:
    """Put an entry into the topic's first partition, as no node of ours would."""
    client = PulsarClient(pulsar.service_url)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stored(_: Position | None, error: PulsarError | None) -> None:
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    producer = await client.producer(
        f"persistent://{namespace}/{TOPIC}-partition-0",
        name,
        access=Access.SHARED,
        lost=lambda _: None,
    )
    producer.send([payload], sequence_id, stored, EntryMetadata(1))
    await done
    await client.close()


def entries(pulsar: Pulsar, namespace: str) -> int:
    """How many entries were ever put into the topic's first partition."""
    path = f"persistent/{namespace}/{TOPIC}-partition-0/internalStats"
    count: int = pulsar.admin("GET", path)["entriesAddedCounter"]
    return count
