"""Logs to damage: filling one, finding its blocks, flipping a bit, opening it again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.storage.file import FileLog, FileLogSettings, open_log
from ropeway.storage.file.block import MAGIC
from tests.contracts.log import TOPIC, begin, read_all, record

if TYPE_CHECKING:
    from pathlib import Path

SMALL = FileLogSettings(segment_bytes=1 << 16, flush="sync", tail_bytes=0)
SKIP = FileLogSettings(
    segment_bytes=1 << 16, flush="sync", tail_bytes=0, on_damage="skip"
)


def fill(directory: Path, settings: FileLogSettings, *blocks: int) -> list[list[str]]:
    """Append blocks of so many records; what each one holds."""
    written: list[list[str]] = []

    async def main() -> None:
        log = open_log(directory, settings)
        await log.create(TOPIC, [0, 1])
        partition = log.partition(TOPIC, 0)
        for count in blocks:
            words = [f"{partition.next_offset + i:03}" for i in range(count)]
            records = [record(word, 1, [f"key-{word}"]) for word in words]
            await begin(partition, *records)
            written.append(words)
        await log.close()

    asyncio.run(main())
    return written


def reopen(directory: Path, settings: FileLogSettings) -> tuple[FileLog, list[str]]:
    """Open, read everything, append one more and read it, close."""

    async def main() -> tuple[FileLog, list[str]]:
        log = open_log(directory, settings)
        try:
            partition = log.partition(TOPIC, 0)
            found = await read_all(partition)
            end = partition.end
            assert await begin(partition, record("more")) == end
            assert await read_all(partition, end) == ["more"]
            return log, found
        finally:
            await log.close()

    return asyncio.run(main())


def places(path: Path) -> list[int]:
    """Where the blocks of a segment begin, and where the last one ends."""
    data = path.read_bytes()
    found = []
    at = 0
    while data[at : at + 4] == MAGIC:
        found.append(at)
        at += int.from_bytes(data[at + 12 : at + 16], "little")
    return [*found, at]


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def unseal(directory: Path) -> None:
    """Take the indexes away, as when a process ends before it has made them."""
    for path in directory.glob("*.index"):
        path.unlink()
