"""A partition of a queue that has moved: what is in it says another queue id.

Messages name the queue that they were stored in, and some clients believe that rather
than the queue that they read: Java's by pop, and consumers that commit by message. So
the id is put right on the way out. Queues that never moved are read without this.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ropeway.gateway.wire.record_rewrite import all_parts
from ropeway.storage.wrapper import WrappedPartition

if TYPE_CHECKING:
    from ropeway.storage.api import Chunk, Filter, Partition

_QUEUE = struct.Struct(">i")
_QUEUE_AT = 12
"""The id is outside of what checksums cover: MessageDecoder.java, RocketMQ 5.3.4."""


class Renumbered(WrappedPartition):
    """A partition, whose records say a queue id that they are told.

    Args:
        inner: Does all of the work; see `storage.api.Partition`.
        queue_id: The id.
    """

    def __init__(self, inner: Partition, queue_id: int) -> None:
        super().__init__(inner)
        self.queue_id = queue_id
        self.offset_at = inner.offset_at
        self.store_time = inner.store_time

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there."""
        return self.inner.first

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
