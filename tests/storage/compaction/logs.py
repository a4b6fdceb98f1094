"""Compacted logs for tests: records are `key=value@time`, of no log's own form."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

from ropeway.storage.api import Record
from ropeway.storage.compaction.compaction_config import CompactionSettings
from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.log import CompactedLog
from ropeway.storage.compaction.offset_map import digest
from ropeway.storage.compaction.round import CompactionContext
from ropeway.storage.compaction_api import KEYED, ROW, TOMBSTONE
from ropeway.storage.file import FileLog, FileLogSettings, open_log
from tests.contracts.log import TOPIC, begin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from ropeway.storage.compaction.partition import CompactedPartition

SETTINGS = CompactionSettings(
    file_bytes=1 << 12, share=1.0, bytes_per_s=None, min_lag_ms=0
)


class Describer:
    """Reads `key=value@time`; there is no key without `=`."""

    def key(self, record: bytes | memoryview) -> tuple[bytes | None, bool]:
        key, found, value = bytes(record[4:]).partition(b"=")
        if not found:
            return None, False
        return key, value.partition(b"@")[0] == b""

    def rows(self, records: bytes | memoryview) -> bytes:
        view, found, at = memoryview(records), b"", 0
        while at < len(view):
            size = int.from_bytes(view[at : at + 4], "big")
            record = view[at : at + size]
            key, is_tombstone = self.key(record)
            time = bytes(record[4:]).partition(b"@")[2]
            found += ROW.pack(
                size,
                size,
                int(time or 1000),
                KEYED * (key is not None) + TOMBSTONE * is_tombstone,
                bytes(16) if key is None else digest(key),
            )
            at += size
        return found


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


def record(text: str) -> Record:
    """A record that is found by its key, with its size for a tag."""
    data = text.encode()
    data = struct.pack(">i", 4 + len(data)) + data
    return Record(data, len(data), text.partition("=")[0].split())


def compacted(
    directory: Path,
    settings: CompactionSettings = SETTINGS,
    clock: Callable[[], int] | None = None,
    disk: Disk | None = None,
    file_settings: FileLogSettings | None = None,
) -> CompactedLog:
    """The log in a directory, its topic compacted."""
    inner: FileLog = open_log(
        directory / "log", file_settings or FileLogSettings(segment_bytes=1 << 16)
    )
    context = CompactionContext(settings, Describer(), clock or Clock(), disk or Disk())
    log = CompactedLog(inner, directory / "compaction", inner.need, context)
    log.keep_last(TOPIC, compacted=True)
    return log


async def partition_of(log: CompactedLog, number: int = 0) -> CompactedPartition:
    """The topic's partition, made where it is missing."""
    await log.create(TOPIC, [number])
    return log.partition(TOPIC, number)  # type: ignore[return-value]


async def send(
    partition: CompactedPartition, texts: Sequence[str], store_ms: int = 1000
) -> None:
    """Append, each as it says or at `store_ms`."""
    for begun in [
        begin(
            partition,
            record(text),
            store_ms=int(text.partition("@")[2] or store_ms),
        )
        for text in texts
    ]:
        await begun


async def stored(partition: CompactedPartition, offset: int = 0) -> dict[int, str]:
    """What is left from an offset on, found by reading on as consumers do."""
    found: dict[int, str] = {}
    while offset < partition.end:
        chunk = await partition.read(offset, 1, 1 << 20)
        assert chunk.next_offset > offset, "a read must move on"
        if chunk.records:
            found[chunk.next_offset - 1] = bytes(chunk.data[0])[4:].decode()
        offset = chunk.next_offset
    return found


@contextlib.asynccontextmanager
async def closing(log: CompactedLog) -> AsyncIterator[CompactedLog]:
    """A log that is closed at the end."""
    try:
        yield log
    finally:
        await log.close()


def run(test: Callable[[CompactedLog], Awaitable[None]], log: CompactedLog) -> None:
    """Run a test on a log that was made outside of any loop."""

    async def main() -> None:
        async with closing(log):
            await test(log)

    asyncio.run(main())
