"""Writing compacted files: one after the other, each whole."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.file import open_file
from ropeway.storage.compaction.layout import ENTRY
from ropeway.storage.compaction.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path


def test_a_full_file_is_followed_by_another_one(tmp_path: Path) -> None:
    async def main() -> Writer:
        with ThreadPoolExecutor(1) as threads:
            writer = Writer(Disk(), threads, tmp_path, 5, 4096)
            for offset in range(100):
                data, due_ms = (100).to_bytes(4, "big") + bytes(96), offset % 2 * 9000
                entry = ENTRY.pack(
                    offset, writer.place, 100, 0, offset, due_ms, bytes(16)
                )
                writer.add(data, entry, offset, due_ms)
                await writer.breathe()
            await writer.end_file()
            await writer.end_file()
            return writer

    writer = asyncio.run(main())
    assert writer.written == 10_000
    assert [one.name for one in writer.made] == [
        f"{first:020}-5" for first in (0, 41, 82)
    ]
    for made in writer.made:
        again = open_file(tmp_path, made.name, made.end)
        assert again.index.dump() == made.index.dump()
        assert again.index.due_ms == 9000
        assert again.index.newest_ms == made.end - 1
        view = again.read_groups(0, len(again.index.firsts))
        assert len(view) == again.index.data_bytes


def test_without_records_there_is_no_file(tmp_path: Path) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as threads:
            writer = Writer(Disk(), threads, tmp_path, 1, 4096)
            await writer.end_file()
            writer.give_up()
            assert not writer.made

    asyncio.run(main())
    assert not list(tmp_path.iterdir())
