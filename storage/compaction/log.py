"""A log with compacted topics: every other topic is the inner log's, and costs nothing.

The files of compacted records are in a directory of their own. What is in them stays
there until its key is sent again; retention deletes the rest, and never what has not
been compacted yet.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.common.reasons import reason_at
from ropeway.storage import private
from ropeway.storage.api import (
    Log,
    LogError,
    LogUnfitError,
    NoSuchPartitionError,
)
from ropeway.storage.compaction import directory as directories
from ropeway.storage.compaction.cleaner import Cleaner
from ropeway.storage.compaction.latest import latest
from ropeway.storage.compaction.partition import Clean, CompactedPartition
from ropeway.storage.failures import unavailable
from ropeway.storage.trim_api import trimmable
from ropeway.storage.wrapper import WrappedLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ropeway.storage.api import EntryFormat, Found, Partition
    from ropeway.storage.compaction.round import CompactionContext
    from ropeway.storage.compaction_api import CompactionStatus

    Need = Callable[[str, int, int | None], None]
    """Tells the inner log from which offset on it has to keep a partition's records,
    whatever its retention says; None where that is no matter any more."""


class CompactedLog(WrappedLog[Log]):
    """See `storage.api.Log` and `storage.compaction_api.Compaction`.

    Args:
        inner: Has all topics, and the newer records of compacted ones.
        directory: Of compacted records; made where it is needed.
        need: Holds up the inner log's retention.
        context: What rounds go by; its threads are this log's to end.
    """

    entry_format: EntryFormat = "packed"

    def __init__(
        self, inner: Log, directory: Path, need: Need, context: CompactionContext
    ) -> None:
        super().__init__(inner)
        self._directory = directory
        private.narrow(directory)
        self._describer = context.describer
        self._need = need
        self._disk = context.disk
        self._threads = context.threads
        self._topics: dict[str, dict[int, CompactedPartition]] = {}
        self._compacted: set[str] = set()
        self.cleaner = Cleaner(inner, context, need)
        self._held: set[tuple[str, int]] = set()
        """What was compacted before, until it is known whether it still is."""
        self._clear_up()

    def _clear_up(self) -> None:
        """Delete what is of deleted topics, and hold up retention for the others.

        Retention may run before the node has said which topics are compacted.
        """
        topics = self.inner.topics()
        directories.remove_strangers(self._disk, self._directory, topics)
        for topic in topics:
            for number in directories.numbers(self._directory, topic):
                path = directories.path_of(self._directory, topic, number)
                self._need(topic, number, directories.clean_end(path))
                self._held.add((topic, number))

    def start(self) -> None:
        """Compact from time to time from now on, until it is closed."""
        self.cleaner.start()

    def keep_last(self, topic: str, *, compacted: bool) -> None:
        """Say whether a topic is compacted; see `storage.compaction_api`."""
        if compacted == (topic in self._compacted):
            return
        if compacted:
            self._compacted.add(topic)
            for partition in self._topics.get(topic, {}).values():
                self.cleaner.add(partition)
        else:
            self._compacted.discard(topic)
            for partition in self._topics.get(topic, {}).values():
                self.cleaner.remove(partition)

    def partition(self, topic: str, number: int) -> Partition:
        """The partition of that name; see `storage.api`."""
        known = self._topics.get(topic)
        if known is not None and number in known:
            return known[number]
        inner = self.inner.partition(topic, number)
        path = directories.path_of(self._directory, topic, number)
        held = (topic, number) in self._held
        self._held.discard((topic, number))
        if topic in self._compacted:
            return self._open_partition(inner, path)
        if not held:
            return inner
        self._need(topic, number, None)
        return self._open_partition(inner, path)

    def _open_partition(self, inner: Partition, path: Path) -> CompactedPartition:
        # A plugin's log may have none.
        identify = getattr(self.inner, "identity", None)
        identity = identify(inner.topic, inner.number) if identify else 0
        try:
            self._disk.make_directory(path)
            snapshot = directories.open_snapshot(self._disk, path, identity)
            directories.clear_up(self._disk, path, snapshot)
        except OSError as error:
            raise LogError(f"cannot open {path}: {reason_at(error)}") from error
        if snapshot.clean_end > inner.end:
            raise LogError(
                f"{path} has records up to offset {snapshot.clean_end - 1}, and the "
                f"log up to {inner.end - 1}: they are of different times; restore both"
            )
        clean = Clean(path, snapshot, self._threads, identity)
        partition = CompactedPartition(inner, clean)
        self._topics.setdefault(inner.topic, {})[inner.number] = partition
        if inner.topic in self._compacted:
            self.cleaner.add(partition)
        else:
            self.cleaner.remove(partition)
        return partition

    async def trim(
        self, topic: str, floors: Mapping[int, int], *, dry_run: bool = False
    ) -> dict[int, int]:
        """Give up the oldest records; see `storage.trim_api`. Not of compacted topics.

        Raises:
            LogUnfitError: The topic is compacted, or was before and has records of it.
        """
        if topic in self._compacted or topic in self._topics:
            raise LogUnfitError(
                f"topic {topic} is compacted, or was, and keeps the last message of "
                "each key; a message without a body deletes its key"
            )
        return await trimmable(self.inner).trim(topic, floors, dry_run=dry_run)

    async def compact(self, topic: str) -> list[CompactionStatus]:
        """Compact all that the topic has by now; see `storage.compaction_api`."""
        partitions = self._of(topic)
        for partition in partitions:
            await self.cleaner.compact(partition)
        return [self.cleaner.status(partition) for partition in partitions]

    async def status(self, topic: str) -> list[CompactionStatus]:
        """How far compaction of each partition is; see `storage.compaction_api`."""
        return [self.cleaner.status(partition) for partition in self._of(topic)]

    async def latest(self, topic: str, key: str) -> Found | None:
        """The newest record with a key; see `storage.compaction_api`."""
        return await latest(self.inner, self._describer, self._of(topic), topic, key)

    def _of(self, topic: str) -> list[CompactedPartition]:
        if topic not in self._compacted:
            raise NoSuchPartitionError(f"topic {topic} is not compacted")
        for number in self.inner.topics().get(topic, ()):
            self.partition(topic, number)
        return [one for _, one in sorted(self._topics.get(topic, {}).items())]

    async def delete(self, topic: str, generation: int = 0) -> None:
        """Forget a topic; see `storage.api`.

        Its records first: a kill in between leaves files of a topic that is not there,
        which the next start deletes.
        """
        await self.inner.delete(topic, generation)
        self._compacted.discard(topic)
        self._held = {one for one in self._held if one[0] != topic}
        for partition in self._topics.pop(topic, {}).values():
            self.cleaner.forget(partition)
        await self.cleaner.idle()
        loop = asyncio.get_running_loop()
        with unavailable(f"cannot delete what was compacted of {topic}"):
            await loop.run_in_executor(
                self._threads, directories.remove, self._disk, self._directory, topic
            )

    async def query(
        self, topic: str, key: str, begin_ms: int, end_ms: int, max_count: int
    ) -> list[Found]:
        """Records that were appended with a key; see `storage.api`.

        Of a compacted topic, what retention has deleted and compaction has kept is
        found by the whole of its KEYS alone.
        """
        return await self.inner.query(topic, key, begin_ms, end_ms, max_count)

    async def close(self) -> None:
        """End compaction, then the inner log. Twice is fine."""
        await self.cleaner.close()
        await self.inner.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._threads.shutdown)
        self._topics.clear()
