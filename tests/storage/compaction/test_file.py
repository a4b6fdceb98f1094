"""One compacted file: reading from anywhere, by time, by key, with limits."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import Filter, LogDamagedError
from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.file import (
    ColdError,
    CompactedFile,
    Fetch,
    fetch_hot,
    open_file,
)
from ropeway.storage.compaction.offset_map import digest
from ropeway.storage.compaction.writer import Writer
from ropeway.storage.sealed.columns import ROW
from ropeway.storage.sealed.layout import Whose
from ropeway.storage.sealed.pick import Pick
from tests.storage.compaction.logs import record

if TYPE_CHECKING:
    from pathlib import Path

WHOSE = Whose("orders", 3)
COUNT = 300
END = 1000


def text_of(number: int) -> str:
    return f"key-{number}={'x' * (number % 7)}"


@pytest.fixture
def file(disk_path: Path) -> CompactedFile:
    """A file with every third offset, stored at ten times its offset."""

    async def main() -> str:
        with ThreadPoolExecutor(1) as threads:
            writer = Writer(Disk(), threads, disk_path, 1, 1 << 20, WHOSE)
            for number in range(COUNT):
                offset = number * 3
                one = record(text_of(number))
                row = ROW.pack(
                    *(offset, len(one.data), number % 4, offset * 10, 0),
                    digest(b"key-%d" % number),
                )
                writer.add(one.data, row)
            await writer.end_file()
            return writer.made[0].name

    return open_file(disk_path, asyncio.run(main()), WHOSE, END)


def read(
    file: CompactedFile,
    offset: int,
    limits: tuple[int, int] = (1000, 1 << 20),
    wanted: Filter | None = None,
    fetch: Fetch = os.pread,
) -> tuple[Pick, list[str]]:
    """A read, and the texts that it found."""
    pick = Pick(offset, limits, wanted)
    file.read(pick, fetch)
    data, found = b"".join(pick.chunk().data), []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4:size].decode())
        data = data[size:]
    assert len(found) == pick.records
    return pick, found


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 190, 191, 192, 193, 896, 897, 898, 999])
def test_a_read_begins_with_the_next_record_there_is(
    file: CompactedFile, offset: int
) -> None:
    pick, found = read(file, offset)
    numbers = range(-(-offset // 3), COUNT)
    assert found == [text_of(number) for number in numbers]
    assert (pick.looked, pick.offset) == (len(numbers), END)


def test_a_read_ends_at_each_of_its_limits(file: CompactedFile) -> None:
    assert read(file, 4, (2, 1 << 20))[0].offset == 10
    pick, found = read(file, 4, (100, 20))
    assert found == [text_of(2)]
    assert pick.offset == 7
    pick, found = read(file, 4, (100, 1 << 20), Filter({9}, None, 70))
    assert (found, pick.looked, pick.offset) == ([], 70, 214)
    pick, found = read(file, 0, (100, 1 << 20), Filter({1, 2}))
    wanted = [number for number in range(COUNT) if number % 4 in (1, 2)][:100]
    assert found == [text_of(number) for number in wanted]
    assert pick.offset == wanted[-1] * 3 + 1


def test_records_are_found_by_time_by_offset_and_by_key(file: CompactedFile) -> None:
    for offset in range(0, 900, 7):
        following = -(-offset // 3) * 3
        wanted = following if following < 900 else None
        assert file.at_time(offset * 10) == wanted
        if offset:
            assert file.before(offset) == (offset - 1) // 3 * 3
        assert file.store_time(offset) == (None if offset % 3 else offset * 10)
    for number in (0, 63, 64, 299):
        found = file.find(digest(b"key-%d" % number))
        assert found is not None
        assert (found.offset, found.store_ms) == (number * 3, number * 30)
        assert found.data[4:].decode() == text_of(number)
    assert file.find(digest(b"key-300")) is None


def test_what_is_in_memory_is_read_without_waiting(
    file: CompactedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, waiting = read(file, 3, (10, 1 << 20))
    assert read(file, 3, (10, 1 << 20), None, fetch_hot)[1] == waiting

    def cold(*_: object) -> int:
        raise BlockingIOError

    for preadv in (cold, lambda *_: 0):
        monkeypatch.setattr(os, "preadv", preadv)
        with pytest.raises(ColdError):
            read(file, 3, (10, 1 << 20), None, fetch_hot)


@pytest.mark.parametrize("suffix", [".data", ".index"])
def test_whatever_byte_is_altered_no_read_gives_another_record(
    file: CompactedFile, suffix: str
) -> None:
    path = file.data_path if suffix == ".data" else file.index_path
    whole = path.read_bytes()
    _, wanted = read(file, 0)
    for at in range(file.index.head_bytes * (suffix == ".index"), len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LogDamagedError, match=f"{path.name}: .*restore the file"):
            read(file, 0)
    path.write_bytes(whole)
    assert read(file, 0)[1] == wanted


def test_an_index_of_another_segment_is_refused(
    file: CompactedFile, disk_path: Path
) -> None:
    other = f"{9:020}-1"
    for suffix in (".data", ".index"):
        data = (disk_path / f"{file.name}{suffix}").read_bytes()
        (disk_path / f"{other}{suffix}").write_bytes(data)
    for name, whose in [(other, WHOSE), (file.name, Whose("orders", 4))]:
        with pytest.raises(LogDamagedError, match="another segment than it does"):
            open_file(disk_path, name, whose, END)
