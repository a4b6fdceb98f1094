"""Writing compacted files: one after the other, each whole."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.file import open_file
from ropeway.storage.compaction.writer import Writer
from ropeway.storage.sealed.columns import ROW
from ropeway.storage.sealed.layout import Whose

if TYPE_CHECKING:
    from pathlib import Path


WHOSE = Whose("orders", 3)


def test_a_full_file_is_followed_by_another_one(tmp_path: Path) -> None:
    async def main() -> Writer:
        with ThreadPoolExecutor(1) as threads:
            writer = Writer(Disk(), threads, tmp_path, 5, 4096, WHOSE)
            for offset in range(100):
                data, due_ms = (100).to_bytes(4, "big") + bytes(96), offset % 2 * 9000
                writer.add(data, ROW.pack(offset, 100, 0, offset, due_ms, bytes(16)))
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
        again = open_file(tmp_path, made.name, WHOSE, made.end)
        about = again.index.about
        assert about == made.index.about
        assert (about.due_ms, about.most_ms) == (9000, made.end - 1)
        blocks = again.blocks(0, again.index.blocks)
        assert sum(len(block.data) for block in blocks) == about.data_bytes


def test_without_records_there_is_no_file(tmp_path: Path) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as threads:
            writer = Writer(Disk(), threads, tmp_path, 1, 4096, WHOSE)
            await writer.end_file()
            writer.give_up()
            assert not writer.made

    asyncio.run(main())
    assert not list(tmp_path.iterdir())
