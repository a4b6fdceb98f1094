"""One compacted file: reading from anywhere, by time, by key, with limits."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.file import (
    ColdError,
    CompactedFile,
    fetch_hot,
    open_file,
)
from ropeway.storage.compaction.layout import ENTRY
from ropeway.storage.compaction.offset_map import digest
from ropeway.storage.compaction.writer import Writer
from tests.storage.compaction.logs import record

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 300
END = 1000


def text_of(number: int) -> str:
    return f"key-{number}={'x' * (number % 7)}"


@pytest.fixture
def file(disk_path: Path) -> CompactedFile:
    """A file with every third offset, stored at ten times its offset."""

    async def main() -> str:
        with ThreadPoolExecutor(1) as threads:
            writer = Writer(Disk(), threads, disk_path, 1, 1 << 20)
            for number in range(COUNT):
                offset = number * 3
                one = record(text_of(number))
                entry = ENTRY.pack(
                    *(offset, writer.place, len(one.data), number % 4),
                    *(offset * 10, 0, digest(b"key-%d" % number)),
                )
                writer.add(one.data, entry, offset * 10, 0)
            await writer.end_file()
            return writer.made[0].name

    return open_file(disk_path, asyncio.run(main()), END)


def texts(pieces: list[tuple[memoryview, int]]) -> list[str]:
    found = []
    for view, count in pieces:
        at = 0
        for _ in range(count):
            size = int.from_bytes(view[at : at + 4], "big")
            found.append(bytes(view[at + 4 : at + size]).decode())
            at += size
        assert at == len(view)
    return found


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 190, 191, 192, 193, 896, 897, 898, 999])
def test_a_read_begins_with_the_next_record_there_is(
    file: CompactedFile, offset: int
) -> None:
    found = file.read(offset, 1000, 1 << 20, None, 4096)
    numbers = range(-(-offset // 3), COUNT)
    assert texts(found.pieces) == [text_of(number) for number in numbers]
    assert (found.looked, found.next_offset) == (len(numbers), END)


def test_a_read_ends_at_each_of_its_limits(file: CompactedFile) -> None:
    assert file.read(4, 2, 1 << 20, None, 4096).next_offset == 10
    found = file.read(4, 100, 20, None, 4096)
    assert texts(found.pieces) == [text_of(2)]
    assert found.next_offset == 7
    found = file.read(4, 100, 1 << 20, {9}, 70)
    assert (found.pieces, found.looked, found.next_offset) == ([], 70, 214)
    found = file.read(0, 100, 1 << 20, {1, 2}, 4096)
    wanted = [number for number in range(COUNT) if number % 4 in (1, 2)][:100]
    assert texts(found.pieces) == [text_of(number) for number in wanted]
    assert found.next_offset == wanted[-1] * 3 + 1


def test_records_are_found_by_time_by_offset_and_by_key(file: CompactedFile) -> None:
    for offset in range(0, 900, 7):
        entry = file.at_time(offset * 10)
        following = -(-offset // 3) * 3
        assert (entry and entry.offset) == (following if following < 900 else None)
        if offset:
            assert file.before(offset).offset == (offset - 1) // 3 * 3
        exact = file.entry_at(offset)
        assert (exact and exact.offset) == (None if offset % 3 else offset)
    for number in (0, 63, 64, 299):
        found = file.find(digest(b"key-%d" % number))
        assert found is not None
        assert file.record(found)[4:].decode() == text_of(number)
    assert file.find(digest(b"key-300")) is None


def test_what_is_in_memory_is_read_without_waiting(
    file: CompactedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = file.read(3, 10, 1 << 20, None, 99)
    assert file.read(3, 10, 1 << 20, None, 99, fetch_hot) == waiting

    def cold(*_: object) -> int:
        raise BlockingIOError

    for preadv in (cold, lambda *_: 0):
        monkeypatch.setattr(os, "preadv", preadv)
        with pytest.raises(ColdError):
            file.read(3, 10, 1 << 20, None, 99, fetch_hot)
