"""What is looked at from time to time: late packs, idle readers, retention."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import LogError
from ropeway.storage.pulsar.end_search import ends
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import scan

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.ownership import Ownership
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
    from ropeway.storage.pulsar.read_ahead import Readers

NOTHING = -1
"""The oldest ledger of a topic in which there is no entry at all."""

LOOK_S = 0.25
"""How often late packs are looked for."""

REFRESHES_A_S = 5.0
"""Partitions whose oldest records are looked for in a second, at most: each look is a
request to the admin REST, 2.5 ms of CPU of Pulsar. 300 that are written to are each
looked at once a minute. Readers notice by themselves what is gone."""

IDLE_A_ROUND = 30
"""Of those that are idle, so many are looked at in an interval: 10,000 in six hours.
Before, looks were most of what they cost Pulsar."""

_log = structlog.get_logger()


async def refresh_first(
    client: PulsarClient, admin: Admin, partition: PulsarPartition
) -> None:
    """Find the oldest record anew, after retention or somebody may have deleted some.

    Raises:
        LogError: Pulsar does not tell.
    """
    if partition.compacted:
        oldest, _ = await ends(client, partition)
        if oldest is not None:
            partition.trim(oldest.pack.base_offset, oldest.position.ledger)
        return
    end = partition.end_offset
    ledgers = await admin.ledgers(partition.name, partition.number)
    filled = [one for one in ledgers if one[1]]
    if not filled:
        partition.trim(end, NOTHING)
    elif filled[0][0] != partition.oldest_ledger:
        start = Position(filled[0][0], 0)
        last = Position(filled[-1][0], filled[-1][1] - 1)
        found = await scan(client, partition, start, last, lambda one: one.tells)
        if found is not None and found.tells:
            partition.trim(found.pack.base_offset, found.position.ledger)


def is_idle(partition: PulsarPartition) -> bool:
    """Whether Pulsar will hardly have deleted records since the last look.

    It deletes whole ledgers, and not the one that is written to, until that is some
    hours old.
    """
    if partition.end_offset == partition.looked_end:
        return True
    newest = partition.positions.floor(partition.end_offset)
    return newest is not None and newest.ledger == partition.oldest_ledger


class Upkeep:
    """What an open log does now and then, in tasks.

    Args:
        settings: How patient to be.
        ownership: Opens partitions anew, and closes what nobody reads.
        readers: Those that may be idle.
        partitions: Tells which are open now.
        refresh: Finds a partition's oldest record anew.
    """

    def __init__(
        self,
        settings: PulsarLogSettings,
        ownership: Ownership,
        readers: Readers,
        partitions: Callable[[], list[PulsarPartition]],
        refresh: Callable[[PulsarPartition], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._ownership = ownership
        self._traffic = ownership.traffic
        self._readers = readers
        self._partitions = partitions
        self._refresh = refresh
        self._tasks = [
            asyncio.ensure_future(self._look()),
            asyncio.ensure_future(self._follow_retention(idle=False)),
            asyncio.ensure_future(self._follow_retention(idle=True)),
        ]

    async def close(self) -> None:
        """Stop."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self) -> None:
        idle_s = self._settings.reader_idle_s
        next_idle = time.monotonic() + idle_s
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            try:
                if now >= next_idle:
                    next_idle = now + idle_s
                    self._ownership.close_unused(self._partitions())
                self._give_up(now)
                self._readers.close_idle(now)
            except Exception:  # noqa: BLE001 - nobody would begin it again
                _log.exception("what waits was not looked at")

    def _give_up(self, now: float) -> None:
        """Answer what has waited for too long, and soon where Pulsar refuses it."""
        for appender in list(self._traffic.appenders):
            refused, settings = appender.is_shut_out, self._settings
            timeout_s = settings.wait_ms / 1000 if refused else settings.outcome_s
            if now - appender.oldest_at > timeout_s:
                appender.give_up()

    async def _follow_retention(self, *, idle: bool) -> None:
        """Go round the partitions that are idle, or the others, one at a time."""
        while True:
            partitions = [one for one in self._partitions() if is_idle(one) is idle]
            a_round = min(len(partitions), IDLE_A_ROUND) if idle else len(partitions)
            pause_s = max(
                self._settings.trim_check_s / (a_round + 1), 1 / REFRESHES_A_S
            )
            await asyncio.sleep(pause_s)
            for partition in partitions:
                if partition.appender is not None:
                    await self._look_at(partition)
                await asyncio.sleep(pause_s)

    async def _look_at(self, partition: PulsarPartition) -> None:
        partition.looked_end = partition.end_offset
        try:
            await self._refresh(partition)
            await self._keep_end(partition)
        except LogError as error:
            _log.warning(
                "cannot tell what retention has deleted",
                partition=partition.full_name,
                reason=str(error),
            )
        except Exception:  # noqa: BLE001 - the others go on
            _log.exception(
                "cannot tell what retention has deleted",
                partition=partition.full_name,
            )

    async def _keep_end(self, partition: PulsarPartition) -> None:
        """Where everything was deleted, let the topic say again where offsets go on.

        A broker does so too, but forgets it some hours after the partition was closed.
        """
        appender = partition.appender
        if partition.oldest_ledger == NOTHING and appender and appender.is_idle:
            await self._ownership.reopen(partition)
