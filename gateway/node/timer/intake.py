"""From the system topic to the index: reading on, or everything that still counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.derived_store import checkpoint_after, resume
from ropeway.gateway.node.fold import chunks_from
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.node.timer.pending_timers import RECALL, waiting_in

if TYPE_CHECKING:
    from ropeway.gateway.node.index_thread import IndexThread
    from ropeway.storage.api import Chunk, Partition

_SLACK_MS = 3_600_000
"""How much further back a fresh index begins than a message can wait unvisited: a
recall can stand just before the message that it cancels, stored again."""


class Intake:
    """Reads the system topic into the index.

    Args:
        partition: The system topic's.
        index: What is filled.
        window_ms: A message is visited so long after it was stored, at the latest.
    """

    def __init__(
        self, partition: Partition, index: IndexThread[Index], window_ms: int
    ) -> None:
        self._partition = partition
        self._index = index
        self._window_ms = window_ms
        self._done_offset = 0
        self.next_offset = 0
        """What is read next. All before it that counts is in the index."""

    async def begin(
        self, done_ms: int, done_offset: int, nothing_before: int = 0
    ) -> int:
        """Find out where to go on.

        Args:
            done_ms: Until then all messages were visited
            done_offset: that are before this one. Later ones may be late.
            nothing_before: Nothing that is before this one waits any more. Whoever
                found that had read all that any index was made from by then.

        Returns:
            Until when all messages were visited that the index has.

        Raises:
            LogError: The topic cannot be read now.
            IndexLostError: The index cannot be used.
        """
        partition = self._partition
        self._done_offset = done_offset
        if nothing_before > partition.end:
            nothing_before = 0  # The topic was made again.
        known = await resume(self._index, partition, nothing_before)
        if known is not None:
            self.next_offset = known
            return await self._index.run(Index.sweep, done_ms, done_offset)
        start = await partition.offset_at(done_ms - self._window_ms - _SLACK_MS)
        start = max(min(start, done_offset), nothing_before)
        self.next_offset = max(start, partition.first)
        return done_ms

    async def catch_up(self, done_ms: int) -> int:
        """Read on to the end.

        Args:
            done_ms: Until then all messages were visited.

        Returns:
            Until when they were, with what was read: earlier, where some of it is late.

        Raises:
            LogError: The topic cannot be read now.
            IndexLostError: The index cannot be used.
        """
        async for chunk in chunks_from(self._partition, self.next_offset):
            if chunk.records:
                done_ms = await self._take(chunk, done_ms)
            self.next_offset = chunk.next_offset
        return done_ms

    async def _take(self, chunk: Chunk, done_ms: int) -> int:
        entries = []
        recalled = []
        for piece in chunk.data:
            waiting, last_at = waiting_in(piece)
            for offset, store_ms, size, due_ms, queue_id, identity in waiting:
                if queue_id == RECALL:
                    recalled.append((due_ms, identity))
                    continue
                visit_ms = min(due_ms, store_ms + self._window_ms)
                if visit_ms <= done_ms:
                    if offset < self._done_offset:
                        continue
                    done_ms = visit_ms - 1
                entries.append((visit_ms, offset, due_ms, size, queue_id, identity))
        checkpoint = checkpoint_after(memoryview(piece)[last_at:], chunk.next_offset)
        await self._index.run(Index.add, entries, recalled, checkpoint)
        return done_ms
