"""What Pulsar has offloaded of topics by itself, and having it offload more.

Pulsar moves a topic's closed ledgers to a store of its own, as its policies or an
administrator say, and serves them as any others. Here that is only shown and asked for.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.api import LogError
from ropeway.storage.pulsar.cluster import open_admin
from ropeway.storage.pulsar.topic_names import Names, parse_partition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings

NOT_SET = -1
"""Pulsar's word for a threshold that nobody has set: it offloads nothing by itself."""
RUNNING = "RUNNING"
_LOOK_EVERY_S = 0.5


class Policy(Struct, frozen=True):
    """When Pulsar offloads of a namespace by itself, and where to."""

    namespace: str
    driver: str | None
    """None: no policy names one; the broker's own configuration may."""
    threshold_bytes: int
    """Of a topic, on the bookies; what is more is offloaded. Negative: nothing is."""
    threshold_s: int
    """Likewise by age."""


class PartitionOffload(Struct, frozen=True):
    """One partition."""

    topic: str
    partition: int
    ledgers: int
    offloaded: int
    """Ledgers that are in Pulsar's store; the newest one never is."""
    bytes: int
    offloaded_bytes: int
    status: str
    """Of the last offload that was asked for: NOT_RUN, RUNNING, SUCCESS or ERROR."""
    error: str
    """Why it failed, in Pulsar's words."""


class Offloading:
    """Looks after one cluster's offloads."""

    def __init__(self, admin: Admin, settings: PulsarLogSettings) -> None:
        self._admin = admin
        self._names = Names(settings.tenant, settings.namespace)
        own = f"{settings.tenant}/{settings.namespace}"
        self._spaces = [own, *settings.namespaces]

    async def policies(self) -> list[Policy]:
        """Those of all namespaces that are served."""
        found = []
        for space in self._spaces:
            policies = await self._admin.policies(space) or {}
            given = policies.get("offload_policies") or {}
            found.append(
                Policy(
                    space,
                    given.get("managedLedgerOffloadDriver"),
                    _number(given, "managedLedgerOffloadThresholdInBytes"),
                    _number(given, "managedLedgerOffloadThresholdInSeconds"),
                )
            )
        return found

    async def status(self, topic: str | None = None) -> list[PartitionOffload]:
        """What is offloaded of all topics, or of one.

        Raises:
            LogError: There is no such topic.
            LogUnavailableError: Pulsar does not answer, or does not permit it.
        """
        return [
            await self._look(*place) for place in sorted(await self._partitions(topic))
        ]

    async def offload(self, topic: str, *, wait: bool) -> list[PartitionOffload]:
        """Have Pulsar offload all closed ledgers of a topic.

        Args:
            topic: RocketMQ's name of it.
            wait: Until Pulsar has done it, or has failed.

        Raises:
            LogError: There is no such topic.
            LogUnavailableError: Pulsar does not answer, or does not permit it.
        """
        for _, _, full_name in await self._partitions(topic):
            ledgers = await self._admin.stored_ledgers(full_name)
            if ledgers:
                await self._admin.offload(full_name, ledgers[-1].ledger_id)
        while True:
            found = await self.status(topic)
            if not wait or all(one.status != RUNNING for one in found):
                return found
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _partitions(self, topic: str | None) -> list[tuple[str, int, str]]:
        """Topic, number and full name of partitions; of a topic, its newest ones."""
        found = []
        for space in self._spaces:
            for full_name in await self._admin.topics(space):
                parsed = parse_partition(full_name)
                if parsed is not None:
                    name, number = parsed
                    found.append((self._names.rocketmq(name), number, full_name, name))
        if topic is not None:
            wanted = self._names.canonical(topic)
            found = [one for one in found if one[0] == wanted]
            if not found:
                raise LogError(f"there is no topic {topic}")
            newest = max(one[3].generation for one in found)
            found = [one for one in found if one[3].generation == newest]
        return [one[:3] for one in found]

    async def _look(self, topic: str, number: int, full_name: str) -> PartitionOffload:
        ledgers = await self._admin.stored_ledgers(full_name)
        status, error = await self._admin.offload_status(full_name)
        away = [one for one in ledgers if one.is_offloaded]
        return PartitionOffload(
            topic,
            number,
            len(ledgers),
            len(away),
            sum(one.bytes for one in ledgers),
            sum(one.bytes for one in away),
            status,
            error,
        )


def _number(policies: dict[str, object], name: str) -> int:
    found = policies.get(name)
    return found if isinstance(found, int) else NOT_SET


@asynccontextmanager
async def open_offloading(settings: PulsarLogSettings) -> AsyncIterator[Offloading]:
    """Look after the offloads of the cluster that the settings name."""
    admin = open_admin(settings)
    try:
        yield Offloading(admin, settings)
    finally:
        await admin.close()
