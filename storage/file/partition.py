"""One partition of the embedded log: its ends, its appends, its readers' door."""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from ropeway.storage.api import (
    MAX_OFFSET,
    LogBusyError,
    LogLimitError,
    NoSuchPartitionError,
)
from ropeway.storage.file.block import WAITING_KEY_BYTES, add_up
from ropeway.storage.file.file_config import BLOCK_BYTES, MAX_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.api import Chunk, Done, Filter, RecordParts
    from ropeway.storage.file.block import Run
    from ropeway.storage.file.index import Span
    from ropeway.storage.file.reader import Reader
    from ropeway.storage.file.segment import Segment
    from ropeway.storage.file.writer import Writer

LENGTH = Struct(">i")
"""How a stored message begins: its own size."""


class FilePartition:
    """A partition, made when it is first asked for."""

    __slots__ = (
        "_bases",
        "_reader",
        "_segments",
        "_writer",
        "end",
        "gone",
        "key_seed",
        "next_offset",
        "number",
        "ordinal",
        "run",
        "topic",
        "watchers",
    )

    def __init__(
        self,
        topic: str,
        number: int,
        ordinal: int,
        writer: Writer,
        reader: Reader,
    ) -> None:
        self.topic = topic
        self.number = number
        self.ordinal = ordinal
        self.key_seed = key_seed(topic)
        self.end = 0
        self.next_offset = 0
        self.run: Run | None = None
        """Its part of the block that collects."""
        self.gone = False
        self.watchers: dict[Callable[[], None], None] = {}
        self._writer = writer
        self._reader = reader
        self._bases: list[int] = []
        self._segments: list[Segment] = []

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there."""
        while self._segments and self._segments[0].gone:
            del self._segments[0], self._bases[0]
        return self._bases[0] if self._bases else self.end

    def enter(self, segment: Segment, base_offset: int) -> None:
        """Know that a segment has records from this offset on."""
        self._bases.append(base_offset)
        self._segments.append(segment)

    def locate(self, offset: int) -> tuple[int, Segment, Span] | None:
        """An offset, or the next one there is; the segment that has it; its span."""
        at = max(bisect_right(self._bases, offset) - 1, 0)
        while at < len(self._segments):
            segment = self._segments[at]
            if not segment.gone:
                span = segment.index.span(self.ordinal)
                assert span is not None
                if offset < span.base_offset + span.records:
                    return max(offset, span.base_offset), segment, span
            at += 1
        return None

    @property
    def last_end(self) -> int:
        """`end`: it is always open."""
        return self.end

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Store records after all earlier ones; see `storage.api`."""
        writer = self._writer
        if writer.refusal is not None or self.gone:
            self._refuse()
        size, keys = add_up(records, MAX_RECORD_BYTES)
        if size < 0:
            _refuse_records(records)
        base = self.next_offset
        after = base + len(records)
        if after > MAX_OFFSET + 1:
            raise LogLimitError(
                f"{self.topic}/{self.number} would end at offset {after - 1}; "
                f"the last is {MAX_OFFSET}"
            )
        waiting = writer.waiting_bytes + size + keys * WAITING_KEY_BYTES
        if waiting > writer.limit_bytes:
            raise LogBusyError(
                f"busy: {writer.waiting_bytes} bytes wait for the disk; "
                f"allowed: {writer.limit_bytes}"
            )
        writer.waiting_bytes = waiting
        run = self.run
        if run is None:
            run = self.run = writer.open_run(self)
        run.appends.append((records, store_ms, done))
        run.count += after - base
        self.next_offset = after
        writer.block_bytes += size
        if writer.block_bytes > BLOCK_BYTES:
            writer.close_block()

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk | None:
        """Read from memory alone; see `storage.api`."""
        if self.gone:
            self._refuse()
        return self._reader.read_now(self, offset, max_count, max_bytes, filter)

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - the contract's name
    ) -> Chunk:
        """Read records from an offset on; see `storage.api`."""
        if self.gone:
            self._refuse()
        return await self._reader.read(self, offset, max_count, max_bytes, filter)

    async def offset_at(self, time_ms: int, *, upper: bool = False) -> int:
        """Find an offset by store time; see `storage.api`."""
        if self.gone:
            self._refuse()
        return await self._reader.offset_at(self, time_ms, upper=upper)

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored; see `storage.api`."""
        if self.gone:
            self._refuse()
        return await self._reader.store_time(self, offset)

    def watch(self, grown: Callable[[], None]) -> None:
        """Call `grown` each time `end` has moved."""
        if self.gone:
            self._refuse()
        self.watchers[grown] = None

    def unwatch(self, grown: Callable[[], None]) -> None:
        """Stop calling it."""
        self.watchers.pop(grown, None)

    def _refuse(self) -> None:
        if self.gone:
            raise NoSuchPartitionError(
                f"partition {self.number} of topic {self.topic} was deleted"
            )
        refusal = self._writer.refusal
        assert refusal is not None
        # A new one each time: an exception keeps every frame it was raised through.
        raise type(refusal)(str(refusal))


def key_seed(topic: str) -> int:
    """Where the hash of a topic's keys begins."""
    return crc32(topic.encode())


def _refuse_records(records: Sequence[RecordParts]) -> None:
    for data, _, _ in records:
        size = len(data)
        if not LENGTH.size <= size <= MAX_RECORD_BYTES:
            raise LogLimitError(
                f"record of {size} bytes; allowed: {LENGTH.size} to {MAX_RECORD_BYTES}"
            )
        if LENGTH.unpack_from(data)[0] != size:
            raise LogLimitError(
                f"record of {size} bytes says it has {LENGTH.unpack_from(data)[0]}; "
                "a stored message begins with its own size"
            )
