"""A partition of a queue that has moved: what is in it says another queue id.

Messages name the queue that they were stored in, and some clients believe that rather
than the queue that they read: Java's by pop, and consumers that commit by message. So
the id is put right on the way out. Queues that never moved are read without this.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gateway.wire.moving import all_parts

if TYPE_CHECKING:
    from storage.api import Chunk, Filter, Partition

_QUEUE = struct.Struct(">i")
_QUEUE_AT = 12
"""The id is outside of what checksums cover: MessageDecoder.java, RocketMQ 5.3.4."""


class Renumbered:
    """A partition, whose records say a queue id that they are told.

    Args:
        inner: Does all of the work; see `storage.api.Partition`.
        queue_id: The id.
    """

    def __init__(self, inner: Partition, queue_id: int) -> None:
        self.inner = inner
        self.queue_id = queue_id
        self.append = inner.append
        self.offset_at = inner.offset_at
        self.store_time = inner.store_time
        self.watch = inner.watch
        self.unwatch = inner.unwatch

    @property
    def topic(self) -> str:
        """The topic it belongs to."""
        return self.inner.topic

    @property
    def number(self) -> int:
        """Its number within the topic."""
        return self.inner.number

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there."""
        return self.inner.first

    @property
    def end(self) -> int:
        """One past the newest record that a reader can see."""
        return self.inner.end

    @property
    def last_end(self) -> int:
        """`end`, or what is known of it while the partition is not open."""
        return self.inner.last_end

    @property
    def next_offset(self) -> int:
        """The offset that the next `append` will get."""
        return self.inner.next_offset

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - RocketMQ's own word
    ) -> Chunk | None:
        """Read from memory alone."""
        chunk = self.inner.read_now(offset, max_count, max_bytes, filter)
        return None if chunk is None else self._put_right(chunk)

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - RocketMQ's own word
    ) -> Chunk:
        """Read records from an offset on."""
        return self._put_right(
            await self.inner.read(offset, max_count, max_bytes, filter)
        )

    def _put_right(self, chunk: Chunk) -> Chunk:
        return chunk._replace(data=[self._renumber(piece) for piece in chunk.data])

    def _renumber(self, piece: bytes | memoryview) -> bytes:
        data = bytearray(piece)
        for parts in all_parts(piece):
            _QUEUE.pack_into(data, parts.at + _QUEUE_AT, self.queue_id)
        return bytes(data)
