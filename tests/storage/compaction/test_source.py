"""Records with their offsets, also behind gaps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from ropeway.storage.api import Chunk
from ropeway.storage.compaction.source import read
from tests.storage.compaction.logs import record

if TYPE_CHECKING:
    from ropeway.storage.api import Partition


class Gappy:
    """A partition of which some records are gone."""

    def __init__(self, offsets: list[int]) -> None:
        self._offsets = offsets

    async def read(self, offset: int, max_count: int, max_bytes: int) -> Chunk:
        del max_bytes
        found = [one for one in self._offsets if one >= offset][:max_count]
        data = [record(str(one)).data for one in found]
        return Chunk(data, len(found), found[-1] + 1)


def test_each_record_has_its_own_offset() -> None:
    async def main() -> None:
        partition = cast("Partition", Gappy([0, 1, 2, 5, 6, 9]))
        seen: list[tuple[int, str]] = []
        offset = 0
        while offset < 9:
            found = await read(partition, offset, 9, 4)
            texts = bytes(found.data)
            seen += [
                (found.first + at, texts[4 + 5 * at :][:1].decode())
                for at in range(len(texts) // 5)
            ]
            offset = found.next_offset
        assert seen == [(n, str(n)) for n in (0, 1, 2, 5, 6)]

    asyncio.run(main())
