"""Which topics there are: a copy of what Pulsar's own metadata says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.beginnings import refuse_impossible
from ropeway.storage.pulsar.terms import LAST_OFFSET
from ropeway.storage.pulsar.topic_names import Names, parse_partition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
    from ropeway.storage.pulsar.topic_names import PulsarName

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
        self.generations: dict[str, int] = {}
        """Which generation of each that is, where it is not 0; the newest at first."""

    async def load(self, spaces: Iterable[str]) -> None:
        """Copy what there is in some namespaces: one request each.

        Of several generations of a topic the newest is taken, until `choose` is called.
        """
        for space in spaces:
            for full in await self._admin.topics(space):
                parsed = parse_partition(full)
                if parsed is None:
                    continue
                name, number = parsed
                topic = self.names.rocketmq(name)
                if name.generation > self.generations.get(topic, 0):
                    self.choose(topic, name.generation)
                if name.generation == self.generations.get(topic, 0):
                    self.topics[topic] = max(self.topics.get(topic, 0), number + 1)

    def choose(self, topic: str, generation: int) -> bool:
        """Know a topic by another generation; whether it is another one."""
        if self.generations.get(topic, 0) == generation:
            return False
        self.topics.pop(topic, None)
        self.generations[topic] = generation
        return True

    def is_chosen(self, topic: str, generation: int) -> bool:
        """Whether a topic is known by this generation."""
        return self.generations.get(topic, 0) == generation

    async def create(self, topic: str, partitions: Collection[int]) -> None:
        """Make partitions from 0 up to the largest number; see `storage.api`."""
        refuse_impossible(topic, partitions, {}, LAST_OFFSET)
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

    async def delete(self, topic: str, generation: int) -> None:
        """Forget a generation of a topic, in Pulsar, too."""
        await self._admin.delete(self.name(topic, generation))
        if self.is_chosen(topic, generation):
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

    def name(self, topic: str, generation: int | None = None) -> PulsarName:
        """A topic's name in Pulsar.

        Args:
            topic: Its one name among RocketMQ's.
            generation: The one that it is known by, where it is None.

        Raises:
            LogUnavailableError: Its namespace is not served here.
        """
        if generation is None:
            generation = self.generations.get(topic, 0)
        name = self.names.pulsar(topic, generation)
        space = f"{name.tenant}/{name.namespace}"
        if space not in self.spaces:
            raise LogUnavailableError(
                f"topic {topic} is in the namespace {space}; served: "
                f"{', '.join(self.spaces)}; `namespaces` adds others"
            )
        return name
