"""Derived stores: what a fold of a partition's records has made, kept in RocksDB.

Laws:

* The log is the truth. A store has the fold of its source's records up to a checkpoint,
  and nothing else; whatever becomes of it, it is made again from the log.
* A checkpoint is written together with what the records before it have changed. So a
  kill leaves both or neither, and no record is folded in twice or left out.
* A store is gone on with only if its checkpoint fits the log. One of another log, of
  another version, or ahead of a log that was restored from a backup does not.

    "n" source  ->  next offset of the log to read (8), CRC-32 of the record before (4)

Numbers are big endian. The source is empty where a store has one.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import structlog

from ropeway.gateway.node.rocks import Rocks

if TYPE_CHECKING:
    from ropeway.gateway.node.index_thread import IndexThread
    from ropeway.gateway.node.rocks import Batch
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import Partition

log = structlog.get_logger(__name__)

CHECKPOINT = b"n"
_CHECKPOINT = struct.Struct(">QI")
_NO_FLOOR = -1


class Checkpoint(NamedTuple):
    """How far a store has followed the log, and which log that was."""

    next_offset: int
    """What is read next."""
    crc: int
    """The CRC-32 of the record before it."""

    async def fits(self, partition: Partition) -> bool:
        """Whether a store was made from this log, and goes on within it.

        Raises:
            LogError: The log cannot be read now.
        """
        if not partition.first < self.next_offset <= partition.end:
            return False
        chunk = await partition.read(self.next_offset - 1, 1, 1)
        return chunk.records == 1 and zlib.crc32(chunk.data[0]) == self.crc


def checkpoint_after(last: Buffer, next_offset: int) -> Checkpoint:
    """The checkpoint of a store that has folded in all before an offset.

    Args:
        last: The record before it.
        next_offset: What is read next.
    """
    return Checkpoint(next_offset, zlib.crc32(last))


class DerivedStore(Rocks):
    """Keys and values that a fold has made, and how far it has come."""

    def checkpoint(self, source: bytes = b"") -> Checkpoint | None:
        """How far a source was folded in; None where it is not known.

        A checkpoint of another size is another version's, and says nothing.
        """
        value = self._get(CHECKPOINT + source)
        if value is None or len(value) != _CHECKPOINT.size:
            return None
        return Checkpoint(*_CHECKPOINT.unpack(value))

    @staticmethod
    def _note(batch: Batch, checkpoint: Checkpoint, source: bytes = b"") -> None:
        """Have a checkpoint be written together with what else is in a batch."""
        batch.put(CHECKPOINT + source, _CHECKPOINT.pack(*checkpoint))


S = TypeVar("S", bound=DerivedStore)


async def resume(
    store: IndexThread[S], partition: Partition, floor: int = _NO_FLOOR
) -> int | None:
    """Find where a fold goes on; a store that does not fit the log is emptied.

    Args:
        store: It has one source.
        partition: The source.
        floor: The fold needs nothing before it: a store that ends there has nothing.

    Returns:
        What is read next; None where the store is empty, and the fold begins anew.

    Raises:
        LogError: The log cannot be read now.
        IndexLostError: The store cannot be used.
    """
    known = await store.run(DerivedStore.checkpoint)
    if known is not None and known.next_offset > floor:
        if await known.fits(partition):
            return known.next_offset
        log.warning("index does not fit the log: it is made again", of=store.name)
    await store.run(DerivedStore.clear)
    return None
