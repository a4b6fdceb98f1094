"""Which topics there are: a copy of what Pulsar's own metadata says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from storage.api import MAX_PARTITIONS, LogError, LogLimitError, LogUnavailableError
from storage.pulsar.names import Names, parse_partition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from storage.pulsar.admin import Admin
    from storage.pulsar.names import PulsarName
    from storage.pulsar.settings import PulsarLogSettings

LOOK_AGAIN_S = (0.0, 0.2, 1.0, 3.0)
"""When to ask whether a topic is gone: Pulsar deletes its partitions first."""

_log = structlog.get_logger()


class Catalog:
    """The partitioned topics of the namespaces that a log serves.

    Args:
        admin: Where they are made and deleted.
        settings: Which namespaces.
    """

    def __init__(self, admin: Admin, settings: PulsarLogSettings) -> None:
        self._admin = admin
        self.names = Names(settings.tenant, settings.namespace)
        own = f"{settings.tenant}/{settings.namespace}"
        self.spaces = list(dict.fromkeys((own, *settings.namespaces)))
        """Each `tenant/namespace`."""
        self.topics: dict[str, int] = {}
        """How many partitions each has, by RocketMQ's name in its shortest form."""

    async def load(self, spaces: Iterable[str]) -> None:
        """Copy what there is in some namespaces: one request each."""
        for space in spaces:
            for full in await self._admin.topics(space):
                parsed = parse_partition(full)
                if parsed is not None:
                    topic = self.names.rocketmq(parsed[0])
                    count = max(self.topics.get(topic, 0), parsed[1] + 1)
                    self.topics[topic] = count

    async def create(self, topic: str, partitions: Collection[int]) -> None:
        """Make partitions from 0 up to the largest number; see `storage.api`."""
        for number in partitions:
            if not 0 <= number < MAX_PARTITIONS:
                raise LogLimitError(
                    f"partition {number} of topic {topic}; "
                    f"allowed: 0 to {MAX_PARTITIONS - 1}"
                )
        name = self.name(topic)
        count = max(partitions, default=-1) + 1
        if self.topics.get(topic, 0) < count:
            await self._admin.create(name, count)
            self.topics[topic] = max(count, await self._admin.partitions(name))

    async def find(self, topic: str, partitions: Collection[int]) -> None:
        """See that another node has made partitions.

        Raises:
            LogUnavailableError: It has not.
        """
        count = max(partitions, default=-1) + 1
        if self.topics.get(topic, 0) < count:
            known = await self._admin.partitions(self.name(topic))
            if known < count:
                raise LogUnavailableError(
                    f"topic {topic} has {known} partitions in Pulsar; {count} are "
                    "looked for"
                )
            self.topics[topic] = known

    async def delete(self, topic: str) -> None:
        """Forget a topic, in Pulsar, too."""
        await self._admin.delete(self.name(topic))
        self.topics.pop(topic, None)

    async def look_for(self, topic: str) -> None:
        """Forget a topic if Pulsar no longer has it."""
        for wait_s in LOOK_AGAIN_S:
            await asyncio.sleep(wait_s)
            try:
                if not await self._admin.partitions(self.name(topic)):
                    self.topics.pop(topic, None)
                    return
            except LogError as error:
                _log.warning("cannot tell whether a topic is gone", reason=str(error))

    def name(self, topic: str) -> PulsarName:
        """A topic's name in Pulsar.

        Raises:
            LogUnavailableError: Its namespace is not served here.
        """
        name = self.names.pulsar(topic)
        space = f"{name.tenant}/{name.namespace}"
        if space not in self.spaces:
            raise LogUnavailableError(
                f"topic {topic} is in the namespace {space}; served: "
                f"{', '.join(self.spaces)}; `namespaces` adds others"
            )
        return name
