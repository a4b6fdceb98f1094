"""One partition of the embedded log, as it is appended to; see `reader`, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import structlog

from ropeway.storage.api import (
    MAX_OFFSET,
    LogBusyError,
    LogLimitError,
)
from ropeway.storage.file.block import LENGTH, WAITING_KEY_BYTES, add_up
from ropeway.storage.file.file_config import BLOCK_BYTES, MAX_RECORD_BYTES
from ropeway.storage.file.reader import ReadPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import Done, LogError, RecordParts
    from ropeway.storage.file.block import Run
    from ropeway.storage.file.reader import Sources
    from ropeway.storage.file.writer import Writer

_log = structlog.get_logger()


class FilePartition(ReadPartition):
    """A partition, made when it is first asked for."""

    __slots__ = ("_writer", "key_seed", "next_offset", "run")

    def __init__(
        self, topic: str, number: int, ordinal: int, writer: Writer, sources: Sources
    ) -> None:
        super().__init__(topic, number, ordinal, sources)
        self.key_seed = key_seed(topic)
        self.next_offset = 0
        self.run: Run[Any] | None = None
        """Its part of the block that collects."""
        self._writer = writer

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
        self.appended_bytes += size
        writer.block_bytes += size
        if writer.block_bytes > BLOCK_BYTES:
            writer.close_block()

    def answer(self, run: Run[Any], error: LogError | None = None) -> None:
        """Tell the callers of a run's appends what has become of them."""
        offset = run.base_offset
        for records, _, done in run.appends:
            try:
                if error is None:
                    done(offset, None)
                else:
                    done(-1, error)
            except Exception:  # noqa: BLE001 - one caller's fault must not reach others
                _log.exception("a callback of an append failed")
            offset += len(records)

    def _refuse(self) -> None:
        if self.gone:
            raise self.deleted()
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
