"""Compacted topics on Pulsar: Pulsar compacts them, and they are read compacted.

Pulsar goes by its messages' keys, so such a topic is of entry format "pulsar". What
there is of a round is Pulsar's: that it survives a crash, that readers see the old or
the new, that what is not compacted yet is kept whatever retention says. Ropeway asks
for it, on the node that leads, and says with each reader that it wants the compacted
topic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import (
    Filter,
    Found,
    LogError,
    LogUnavailableError,
    NoSuchPartitionError,
)
from ropeway.storage.compaction_api import ROW, CompactionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.storage.api import EntryFormat
    from ropeway.storage.compaction_api import Describer
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.ownership import Ownership
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.read_ahead import Readers
    from ropeway.storage.pulsar.topic_names import Names

LOOK_EVERY_S = 60.0
_POLL_S = 0.2
_READ_COUNT = 1024
_READ_BYTES = 4 * 1024 * 1024

_log = structlog.get_logger()


class _Progress:
    """What is known of a partition's compaction since this node opened it."""

    def __init__(self) -> None:
        self.clean_end = 0
        self.clean_records = 0
        self.clean_bytes = 0
        self.problem: str | None = None


class PulsarCompaction:
    """See `storage.compaction_api.Compaction`.

    Args:
        admin: Asks Pulsar to compact.
        readers: Those of a topic that is compacted from now on begin anew.
        partitions: Tells those of a topic.
        names: Knows the one name of a topic that may have several.
        ownership: Knows whether this node is the one that asks.
    """

    entry_format: EntryFormat = "pulsar"

    def __init__(
        self,
        admin: Admin,
        readers: Readers,
        partitions: Callable[[str], Iterable[PulsarPartition]],
        names: Names,
        ownership: Ownership,
    ) -> None:
        self.topics: set[str] = set()
        """Those that are compacted, by their canonical names."""
        self._admin = admin
        self._readers = readers
        self._partitions = partitions
        self._canonical = names.canonical
        self._ownership = ownership
        self._progress: dict[PulsarPartition, _Progress] = {}
        self._describer: Describer | None = None
        self._task: asyncio.Task[None] | None = None
        self._dirty_ratio = 0.5

    def start(self, describer: Describer, dirty_ratio: float) -> None:
        """Ask from time to time from now on.

        Args:
            describer: Reads keys.
            dirty_ratio: What share of a partition has to be new.
        """
        self._describer = describer
        self._dirty_ratio = dirty_ratio
        self._task = asyncio.get_running_loop().create_task(self._run())

    def keep_last(self, topic: str, *, compacted: bool) -> None:
        """Say whether a topic is compacted; see `storage.compaction_api`."""
        topic = self._canonical(topic)
        if compacted == (topic in self.topics):
            return
        if compacted:
            self.topics.add(topic)
        else:
            self.topics.discard(topic)
        for partition in self._partitions(topic):
            partition.compacted = compacted
            self._readers.forget(partition)

    def forget(self, topic: str) -> None:
        """Know nothing more of a topic: it was deleted."""
        self.topics.discard(topic)
        for partition in [one for one in self._progress if one.topic == topic]:
            del self._progress[partition]

    async def compact(self, topic: str) -> list[CompactionStatus]:
        """Have Pulsar compact all that the topic has by now."""
        for partition in self._of(topic):
            await self._compact(partition)
        return await self.status(topic)

    async def status(self, topic: str) -> list[CompactionStatus]:
        """How far compaction is, as far as this node has asked for it."""
        found = []
        for partition in self._of(topic):
            progress = self._progress.setdefault(partition, _Progress())
            found.append(
                CompactionStatus(
                    number=partition.number,
                    clean_end=progress.clean_end,
                    end=partition.end,
                    clean_records=progress.clean_records,
                    clean_bytes=progress.clean_bytes,
                    problem=progress.problem,
                )
            )
        return found

    async def latest(self, topic: str, key: str) -> Found | None:
        """The newest record with a key, by reading what the topic has, compacted."""
        describer = self._describer
        assert describer is not None, "not started"
        wanted = key.encode()

        def accept(record: bytes | memoryview) -> bool:
            return describer.key(record)[0] == wanted

        newest: tuple[int, Found] | None = None
        for partition in self._of(topic):
            offset = partition.first
            while offset < partition.end:
                chunk = await partition.read(
                    offset, _READ_COUNT, _READ_BYTES, Filter(accept=accept)
                )
                for piece in chunk.data:
                    data = _last(bytes(piece))
                    _, _, store_ms, *_ = ROW.unpack(describer.rows(data))
                    if newest is None or store_ms >= newest[0]:
                        newest = store_ms, Found(chunk.next_offset - 1, data)
                offset = chunk.next_offset
        return None if newest is None else newest[1]

    def _of(self, topic: str) -> list[PulsarPartition]:
        if self._canonical(topic) not in self.topics:
            raise NoSuchPartitionError(f"topic {topic} is not compacted")
        return sorted(self._partitions(topic), key=lambda one: one.number)

    async def _compact(self, partition: PulsarPartition) -> None:
        """One round of Pulsar's, waited for."""
        end = partition.end
        name = partition.full_name
        # What was begun before may end before our end, and how it ended is no matter.
        await self._ended(name)
        await self._admin.compact(name)
        state, problem = await self._ended(name)
        if state == "ERROR":
            raise LogUnavailableError(f"{name}: Pulsar could not compact it: {problem}")
        progress = self._progress.setdefault(partition, _Progress())
        progress.clean_end = end
        progress.clean_records, progress.clean_bytes = await self._admin.compacted(name)
        progress.problem = None
        # What readers have at hand is from before.
        self._readers.forget(partition)

    async def _ended(self, name: str) -> tuple[str, str]:
        """How the last round of a partition ended, and its problem; waits for it."""
        while True:
            state, problem = await self._admin.compaction(name)
            if state != "RUNNING":
                return state, problem
            await asyncio.sleep(_POLL_S)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if not self._ownership.follows:
                await self.look()

    async def look(self) -> None:
        """Have each partition compacted of which enough is new."""
        for topic in list(self.topics):
            for partition in list(self._partitions(topic)):
                if partition.appender is None:
                    continue
                progress = self._progress.setdefault(partition, _Progress())
                dirty = partition.end - max(progress.clean_end, partition.first)
                whole = dirty + progress.clean_records
                if dirty <= 0 or dirty < self._dirty_ratio * whole:
                    continue
                try:
                    await self._compact(partition)
                except LogError as error:
                    progress.problem = str(error)
                    _log.warning("not compacted", reason=str(error))
                except Exception as error:  # noqa: BLE001 - the others are compacted
                    progress.problem = "a fault of Ropeway; the log says more"
                    _log.error("not compacted", exc_info=error)

    async def close(self) -> None:
        """Ask for nothing more; what Pulsar has begun goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def _last(records: bytes) -> bytes:
    """The last of records that stand back to back, each beginning with its size."""
    at = 0
    while (after := at + int.from_bytes(records[at : at + 4], "big")) < len(records):
        at = after
    return records[at:]
