"""What a log that stands before another one leaves to it, and so its partitions.

What is written goes straight to the inner log: its `append` is called without a step in
between, and so are `overdue_ms` and `waiting_bytes`. See `storage.api` for what each of
them promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from ropeway.storage.api import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ropeway.storage.api import Done, EntryFormat, Numbering, Partition, RecordParts

L = TypeVar("L", bound=Log)


class WrappedLog(Generic[L]):
    """What is the inner log's alone."""

    def __init__(self, inner: L) -> None:
        self.inner = inner
        self.numbering: Numbering = inner.numbering
        self.overdue_ms: Callable[[], int] = inner.overdue_ms
        self.waiting_bytes: Callable[[], int] = inner.waiting_bytes

    async def create(
        self,
        topic: str,
        partitions: Collection[int],
        entry_format: EntryFormat = "packed",
        generation: int = 0,
        begins: Mapping[int, int] | None = None,
    ) -> None:
        """Make partitions of a topic."""
        await self.inner.create(topic, partitions, entry_format, generation, begins)

    async def ready(self, topic: str, numbers: Collection[int] | None = None) -> None:
        """Return when partitions of a topic are open."""
        await self.inner.ready(topic, numbers)

    def topics(self) -> dict[str, frozenset[int]]:
        """Every topic with the numbers of its partitions."""
        return self.inner.topics()

    async def hosts(self, topic: str, partitions: Collection[int]) -> dict[int, str]:
        """Which machines serve partitions."""
        return await self.inner.hosts(topic, partitions)

    @property
    def misfits(self) -> int:
        """How often a partition ended elsewhere than where it was known to."""
        return self.inner.misfits

    async def flush(self) -> None:
        """Return when all that was appended before is durable."""
        await self.inner.flush()


class WrappedPartition:
    """What is the inner partition's alone."""

    __slots__ = ("append", "inner", "number", "topic", "unwatch", "watch")

    def __init__(self, inner: Partition) -> None:
        self.inner = inner
        self.topic = inner.topic
        self.number = inner.number
        self.append: Callable[[Sequence[RecordParts], int, Done], None] = inner.append
        self.watch: Callable[[Callable[[], None]], None] = inner.watch
        self.unwatch: Callable[[Callable[[], None]], None] = inner.unwatch

    @property
    def end(self) -> int:
        """One past the newest record that a reader can see."""
        return self.inner.end

    @property
    def last_end(self) -> int:
        """`end`, or what is known of it."""
        return self.inner.last_end

    @property
    def appended_bytes(self) -> int:
        """Bytes of all records that it was given to append."""
        return self.inner.appended_bytes

    @property
    def next_offset(self) -> int:
        """The offset that the next append will get."""
        return self.inner.next_offset
