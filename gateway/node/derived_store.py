"""Derived stores: what a fold of a partition's records has made, kept in RocksDB.

Laws:

* The log is the truth. A store has the fold of its source's records up to a checkpoint,
  and nothing else; whatever becomes of it, it is made again from the log.
* A checkpoint is written together with what the records before it have changed. So a
  kill leaves both or neither, and no record is folded in twice or left out.
* A store is gone on with only if its checkpoint fits the log. One of another log, of
  another version, or ahead of a log that was restored from a backup does not.

    "v"         ->  the format of the store (2)
    "n" source  ->  next offset of the log to read (8), CRC-32 of the record before (4)

Numbers are big endian. The source is empty where a store has one. A store of another
format, newer or older, is emptied when it is opened, and made again from the log.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

import structlog

from ropeway.gateway.node import backoff
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.node.rocks import Rocks
from ropeway.gateway.wire.commands.nodes import DerivedStoreStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import NoReturn

    from ropeway.gateway.node.backoff import Backoff
    from ropeway.gateway.node.index_thread import IndexThread
    from ropeway.gateway.node.rocks import Batch
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import Partition

log = structlog.get_logger(__name__)

CHECKPOINT = b"n"
_FORMAT = b"v"
_CHECKPOINT = struct.Struct(">QI")
_NO_FLOOR = -1


class Checkpoint(NamedTuple):
    """How far a store has followed the log, and which log that was."""

    next_offset: int
    """What is read next."""
    crc: int
    """The CRC-32 of the record before it."""

    async def fits(self, partition: Partition, *, outlived: bool = False) -> bool:
        """Whether a store was made from this log, and goes on within it.

        Args:
            partition: The log.
            outlived: The fold needs nothing that retention has taken: a store that
                ends before all that is left goes on, too.

        Raises:
            LogError: The log cannot be read now.
        """
        if outlived and self.next_offset <= partition.first:
            return True
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

    FORMAT: ClassVar = 1
    """Of the keys and values; another one is made again from the log."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        found = self._get(_FORMAT)
        if found != self._format():
            if not self._is_empty():
                log.warning(
                    "derived store has another format: it is made again",
                    directory=str(directory),
                    found=int.from_bytes(found or b"", "big"),
                    allowed=self.FORMAT,
                )
            self.clear()

    def clear(self) -> None:
        """Forget everything but the format."""
        batch = self._batch()
        self._forget_all(batch)
        batch.put(_FORMAT, self._format())
        self._write(batch)

    def _format(self) -> bytes:
        return self.FORMAT.to_bytes(2, "big")

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


def ends_of(directory: Path) -> dict[bytes, int]:
    """How far each source of a store was folded in; the store is not open.

    Raises:
        OSError: It cannot be read.
    """
    return {
        key[len(CHECKPOINT) :]: Checkpoint(*_CHECKPOINT.unpack(value)).next_offset
        for key, value in Rocks.peek(directory, CHECKPOINT).items()
        if len(value) == _CHECKPOINT.size
    }


def status_of(store: IndexThread[S], lag_records: int) -> DerivedStoreStatus:
    """How a store stands.

    Args:
        store: It may be closed.
        lag_records: What its fold has not read yet.
    """
    return DerivedStoreStatus(
        store=store.name,
        lag_records=lag_records,
        size_bytes=store.size_bytes(),
        rebuilt_ms=store.rebuild.ended_ms,
        rebuild_ms=store.rebuild.took_ms,
    )


async def keep(
    of: str, work: Callable[[bool], Awaitable[None]], waits: Backoff
) -> NoReturn:
    """Have a part work with its store for ever; a lost store is made again.

    Args:
        of: What it is an index of, for people.
        work: Opens the store, and works until something fails or the store is lost;
            is told whether to make it anew.
        waits: Waits where the log, or something unforeseen, is what fails.
    """
    anew = False
    while True:
        try:
            await work(anew)
            anew = False
        except IndexLostError as error:
            log.warning("index is made again", of=of, reason=str(error))
            anew = True
            await asyncio.sleep(backoff.RETRY_S)
        except Exception as error:  # noqa: BLE001 - nobody would begin it again
            anew = False
            await waits.wait(error)


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
    if partition.first < partition.end:
        store.rebuild.begin()
    return None
