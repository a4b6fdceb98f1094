"""Consumer offsets: the contract. How far each group has read each queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


Furthest = Callable[[str, int], tuple[int, str] | None]
"""Called with topic and partition: the largest offset that a group has committed there,
and the group; None where there is none."""


class Offsets(Protocol):
    """The next offset of every (group, topic, queue id), in memory and kept.

    Reads and writes are memory operations. What was committed is on the medium after
    `flush`, or at most one flush interval later; a crash in between makes consumers
    see messages again, never lose any.
    """

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """The next offset to consume; None where the group never committed one."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the next offset to consume, forwards or backwards."""

    def queues(self, group: str, topic: str) -> dict[int, int]:
        """Queue id to offset of one group on one topic; empty where there is none."""

    def furthest(self, topic: str, queue_id: int) -> tuple[int, str] | None:
        """The largest offset of a queue, and its group; None where there is none."""

    def topics(self, group: str) -> list[str]:
        """Topics on which a group has offsets, sorted."""

    def groups(self) -> Iterator[str]:
        """Every group that has an offset."""

    def groups_of(self, topic: str) -> Collection[str]:
        """Groups that have offsets on a topic, in no order."""

    def forget(
        self,
        *,
        group: str | None = None,
        topic: str | None = None,
        queue_id: int | None = None,
    ) -> None:
        """Drop the offsets of a group, of a topic, or of one on the other.

        With a queue id, those of that queue alone.
        """

    async def flush(self) -> None:
        """Return when all commits so far are on the medium."""

    async def close(self) -> None:
        """Flush and release every resource. Twice is fine."""
