"""The log on Pulsar: opening it, its topics, and joining its parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ropeway.storage.api import LogUnavailableError, LogUnfitError, NoSuchPartitionError
from ropeway.storage.pulsar import query as queries
from ropeway.storage.pulsar import selftest
from ropeway.storage.pulsar.append_path import drain, let_go
from ropeway.storage.pulsar.beginnings import Beginnings
from ropeway.storage.pulsar.catalog import Catalog
from ropeway.storage.pulsar.cluster import open_cluster
from ropeway.storage.pulsar.compaction import PulsarCompaction
from ropeway.storage.pulsar.end_offsets import EndOffsets
from ropeway.storage.pulsar.hosts import hosts as find_hosts
from ropeway.storage.pulsar.other_brokers import OtherBrokers
from ropeway.storage.pulsar.owner import take
from ropeway.storage.pulsar.ownership import Ownership
from ropeway.storage.pulsar.pack_search import Finder
from ropeway.storage.pulsar.partition import PartitionContext, PulsarPartition
from ropeway.storage.pulsar.read_ahead import Readers
from ropeway.storage.pulsar.release import release
from ropeway.storage.pulsar.state import PulsarState, open_state, state_topic
from ropeway.storage.pulsar.tail import Tail
from ropeway.storage.pulsar.times import Times
from ropeway.storage.pulsar.trim import Floors
from ropeway.storage.pulsar.upkeep import Upkeep, refresh_first
from ropeway.storage.state import never

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ropeway.storage.api import EntryFormat, Found, Numbering
    from ropeway.storage.native import Converter
    from ropeway.storage.offsets import Furthest
    from ropeway.storage.pulsar.cluster import Cluster
    from ropeway.storage.pulsar.owner import Owner
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
    from ropeway.storage.state import Deposed, Held

LostOwnership = Callable[[str, int], None]
"""Called with topic and number when another node has taken a partition over."""


async def open_log(
    settings: PulsarLogSettings,
    *,
    prepare: bool = False,
    owner: Owner | None = None,
    lost_ownership: LostOwnership | None = None,
    converter: Converter | None = None,
) -> PulsarLog:
    """Open the log that Pulsar keeps in the namespaces of the settings.

    Args:
        settings: Where Pulsar is, and which namespaces.
        prepare: Make a missing namespace, and set its policies where they do not fit.
        owner: Whose the namespaces are; None: nobody asks.
        lost_ownership: See `LostOwnership`.
        converter: Of messages in topics that are shared with native clients.

    Raises:
        LogForeignError: A namespace is another cluster's, or has lost all topics; or
            Pulsar is not the one that has the messages.
        PulsarUnfitError: Pulsar lacks something; names the setting.
        LogUnavailableError: It does not answer, or does not permit it.
    """
    cluster = open_cluster(settings, settings.open_s)
    catalog = Catalog(cluster.admin, settings)
    try:
        expected = await take(cluster.admin, catalog, owner, prepare=prepare)
    except BaseException:
        await cluster.close()
        raise
    await cluster.expect(expected)
    return PulsarLog(settings, cluster, catalog, lost_ownership, converter)


class PulsarLog:
    """A log on Pulsar; see `storage.api` for what it promises."""

    numbering: Numbering = "dense"

    def __init__(
        self,
        settings: PulsarLogSettings,
        cluster: Cluster,
        catalog: Catalog,
        lost_ownership: LostOwnership | None,
        converter: Converter | None,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._admin, self._client = admin, client = cluster
        self.pulsar_id = cluster.pulsar_id
        self._catalog = catalog
        self._lost_ownership = lost_ownership
        self._converter = converter
        self._shared: set[str] = set()
        """Topics that native clients write to, too."""
        finder = Finder(client, admin)
        refresh = partial(refresh_first, client, admin)
        self._readers = Readers(client, finder, settings, refresh)
        self._times = Times(finder, self._readers)
        self._ends = EndOffsets()
        self._floors = Floors(self.partition, self._partitions_of)
        self.keep_floors, self.trim = self._floors.keep, self._floors.trim
        self._context = PartitionContext(
            *(Tail(settings.tail_bytes), self._readers, self._times),
            *(settings.positions, self._ends.noted, self._floors.of),
        )
        self._ownership = Ownership(
            *(cluster, self._readers, settings, self._ends),
            *(self._taken, self._deleted),
        )
        self._traffic = self._ownership.traffic
        self._upkeep = Upkeep(
            settings, self._ownership, self._readers, self._open_ones, refresh
        )
        self._partitions: dict[str, dict[int, PulsarPartition]] = {}
        self._beginnings = Beginnings(catalog, self._ends, self._ownership, self)
        self.compaction = PulsarCompaction(
            admin, self._readers, self._partitions_of, catalog.names, self._ownership
        )
        self._closing: asyncio.Task[None] | None = None

    @property
    def generations(self) -> dict[str, int]:
        """By topic the generation that it is known by, where that is not 0."""
        return dict(self._catalog.generations)

    async def create(
        self,
        topic: str,
        partitions: Collection[int],
        entry_format: EntryFormat = "packed",
        generation: int = 0,
        begins: Mapping[int, int] | None = None,
    ) -> None:
        """Make partitions of a topic, and all before them; see `storage.api`."""
        self._refuse_when_closed()
        self._catalog.names.refuse_alias(topic)
        if self._catalog.choose(topic, generation):
            self._forget(topic)
        if entry_format == "packed":
            self._shared.discard(topic)
        else:
            await self._share(topic)
        if self._ownership.follows:
            await self._catalog.find(topic, partitions)
        else:
            await self._beginnings.create(topic, partitions, begins or {}, entry_format)

    async def _share(self, topic: str) -> None:
        if self._converter is None:
            raise LogUnfitError(
                f"topic {topic} cannot be of entry format pulsar: the log was opened "
                "without a converter"
            )
        # Known in any case, so that nothing is ever packed into it.
        self._shared.add(topic)
        await selftest.check_indexes(self._admin)

    async def retention_ms(self) -> int | None:
        """How long messages are kept whose topics name no namespace; None for ever.

        Raises:
            LogUnavailableError: Pulsar does not answer.
        """
        return await selftest.retention_ms(self._admin, self._catalog.spaces[0])

    async def open_state(
        self, broker: str, node: str, deposed: Deposed, held: Held = never
    ) -> PulsarState:
        """Open what the nodes of a broker share, beside the topics without a tenant.

        `held` is what routes know; for the rest see `storage.pulsar.state.open_state`.
        """
        space = self._catalog.spaces[0]
        topic = state_topic(space, broker)
        told = self._ownership.telling(deposed)
        state = await open_state(self._cluster, topic, node, told)
        self._ownership.share(state, held)
        elsewhere = OtherBrokers(self._client, self._admin, space, topic)
        self._ends.keep(state, self._open_ones, elsewhere)
        return state

    async def delete(self, topic: str, generation: int = 0) -> None:
        """Forget a generation of a topic; see `storage.api`."""
        self._refuse_when_closed()
        topic = self._catalog.names.canonical(topic)
        chosen = self._catalog.is_chosen(topic, generation)
        partitions = self._partitions_of(topic) if chosen else []
        async with self._ownership.deleting(partitions):
            # Made again under this name, it begins at 0.
            self.forget_ends(topic, generation)
            await self._ends.flush()
            await self._catalog.delete(topic, generation)
        if chosen:
            self._shared.discard(topic)
            self._floors.forget(topic)
            self._forget(topic)

    def partition(self, topic: str, number: int) -> PulsarPartition:
        """The partition of that name; see `storage.api`."""
        try:
            return self._partitions[topic][number]
        except KeyError:
            return self._make_partition(topic, number)

    def _make_partition(self, topic: str, number: int) -> PulsarPartition:
        self._refuse_when_closed()
        topic = self._catalog.names.canonical(topic)
        if known := self._partitions.get(topic, {}).get(number):
            return known
        count = self._catalog.topics.get(topic, 0)
        if not 0 <= number < count:
            raise NoSuchPartitionError(
                f"no partition {number} of topic {topic}; it has {count}"
            )
        # One name for all of a topic: there may be many.
        siblings = self._partitions.get(topic, {}).values()
        name = next((one.name for one in siblings), None) or self._catalog.name(topic)
        converter = self._converter if topic in self._shared else None
        partition = PulsarPartition(topic, number, name, self._context, converter)
        partition.compacted = topic in self.compaction.topics
        self._partitions.setdefault(topic, {})[number] = partition
        return partition

    def _partitions_of(self, topic: str) -> list[PulsarPartition]:
        topic = self._catalog.names.canonical(topic)
        return list(self._partitions.get(topic, {}).values())

    async def ready(self, topic: str, numbers: Collection[int] | None = None) -> None:
        """Return when partitions of a topic are open; see `storage.api`."""
        self._refuse_when_closed()
        if self._catalog.names.canonical(topic) not in self._catalog.topics:
            raise NoSuchPartitionError(f"no topic {topic}")
        known = self._partitions_of(topic)
        await self._ownership.open(
            one for one in known if numbers is None or one.number in numbers
        )

    def open_early(self) -> None:
        """Begin to open the partitions that are in use; `ready` overtakes.

        For a node that begins to lead: what it opens now, nobody waits for later.
        """
        self._refuse_when_closed()
        self._ownership.open_early(self._ends.in_use(self._every()))

    async def follow(self) -> None:
        """Own no partitions from now on; `ready` opens them for reading alone.

        Nothing is made either: `create` looks whether another node has made it.
        """
        self._ownership.follows = True
        await self.release()

    async def lead(self) -> None:
        """Follow no longer: from now on `ready` and `open_early` take partitions over.

        Consumers' readers stay, for what is stored is the same for both.
        """
        self._ownership.follows = False
        await self._ownership.stop_opening()
        self._ownership.stop_following(self._open_ones())
        for partition in self._every():
            partition.noted_end = -1  # Another leader has noted others since.

    def forget(self, topic: str) -> None:
        """Know nothing more of a topic that is not this broker's any more."""
        topic = self._catalog.names.canonical(topic)
        self._catalog.topics.pop(topic, None)
        self._shared.discard(topic)
        self._forget(topic)

    def compare_with(self, furthest: Furthest) -> None:
        """Know what groups have committed, when partitions are opened."""
        self._ends.compare_with(furthest)

    def forget_ends(self, topic: str, generation: int = 0) -> None:
        """Know no more where a deleted topic ended; nothing where this node follows."""
        self._ends.forget(self._catalog.names.pulsar(topic, generation))

    async def release(self) -> None:
        """Give up all partitions; `ready` opens them again.

        For a node that leads no more: what is on its way is waited for, as long as an
        append may wait, and then of unknown outcome.
        """
        await self._ownership.stop_opening()
        await release(self._every(), self._readers, self._ends, self._settings.wait_ms)

    async def let_go(self, topic: str, number: int) -> None:
        """Give one partition up, and know nothing more of it; another broker gets it.

        What is on its way is waited for, as in `release`. Appends that come meanwhile
        are refused with `NoSuchPartitionError`.
        """
        topic = self._catalog.names.canonical(topic)
        partition = self._partitions.get(topic, {}).pop(number, None)
        if partition is not None:
            partition.gone = True
            await self._ownership.until_opened(partition)
            await release(
                [partition], self._readers, self._ends, self._settings.wait_ms
            )
            partition.watchers.clear()

    def _taken(self, partition: PulsarPartition) -> None:
        if self._lost_ownership is not None:
            self._lost_ownership(partition.topic, partition.number)

    def _deleted(self, partition: PulsarPartition) -> None:
        """A topic is not what it was: gone, or another one of the same name."""
        if self._partitions.get(partition.topic, {}).get(partition.number) != partition:
            return  # Of a generation that nobody knows any more.
        self._forget(partition.topic)
        self._ownership.do(self._catalog.look_for(partition.topic))

    def _forget(self, topic: str) -> None:
        self.compaction.forget(topic)
        for partition in self._partitions.pop(topic, {}).values():
            partition.gone = True
            self._ownership.do(self._ownership.shut(partition, "the topic was deleted"))
            partition.watchers.clear()

    def topics(self) -> dict[str, frozenset[int]]:
        """Every topic with the numbers of its partitions."""
        return {topic: frozenset(range(n)) for topic, n in self._catalog.topics.items()}

    async def hosts(self, topic: str, partitions: Collection[int]) -> dict[int, str]:
        """Where Pulsar's brokers are that serve partitions; see `storage.api`."""
        self._refuse_when_closed()
        name = self._catalog.name(self._catalog.names.canonical(topic))
        return await find_hosts(self._client, name, partitions)

    def overdue_ms(self) -> int:
        """For how long Pulsar has acknowledged nothing at all, if that is too long."""
        traffic = self._traffic
        if not traffic.appenders:
            return 0
        waited_ms = int((time.monotonic() - traffic.heard_at) * 1000)
        return waited_ms if waited_ms > self._settings.wait_ms else 0

    def waiting_bytes(self) -> int:
        """What was appended and is not done takes in memory, about."""
        return self._traffic.waiting_bytes

    @property
    def misfits(self) -> int:
        """How often a partition ended elsewhere than where it was known to."""
        return self._ends.misfits

    async def query(
        self, topic: str, key: str, begin_ms: int, end_ms: int, max_count: int
    ) -> list[Found]:
        """Records of the topic's open partitions with a key; see `storage.api`."""
        self._refuse_when_closed()
        partitions = [one for one in self._partitions_of(topic) if one.appender]
        return await queries.query(
            partitions, self._readers, self._times, key, begin_ms, end_ms, max_count
        )

    async def flush(self) -> None:
        """Return when all that was appended before has been acknowledged."""
        self._refuse_when_closed()
        await drain([one.appender for one in self._open_ones() if one.appender])

    async def close(self) -> None:
        """Wait for what is on its way, give everything up. Twice is fine."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self.compaction.close()
        await self._ends.close()
        await self._upkeep.close()
        appenders = [path for one in self._every() if (path := one.close())]
        await let_go(appenders, "the log was closed", self._settings.outcome_s)
        await self._ownership.close()
        await self._readers.close()
        await self._cluster.close()

    def _every(self) -> list[PulsarPartition]:
        return [one for each in self._partitions.values() for one in each.values()]

    def _open_ones(self) -> list[PulsarPartition]:
        return [one for one in self._every() if one.appender is not None]

    def _refuse_when_closed(self) -> None:
        if self._closing is not None:
            raise LogUnavailableError("the log on Pulsar is closed")
