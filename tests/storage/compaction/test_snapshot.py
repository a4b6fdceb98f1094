"""What one round left, over several files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.storage.compaction.offset_map import digest
from ropeway.storage.compaction.snapshot import Snapshot
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import closing, compacted, partition_of, send

if TYPE_CHECKING:
    from pathlib import Path


def test_files_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n}={n}@{n}" for n in range(1500)])
            await log.compact(TOPIC)
            found = partition.clean.now
            assert len(found.files) > 3
            ends = [one.end for one in found.files]
            assert ends == [one.first for one in found.files[1:]] + [1500]
            assert (found.records, found.newest_ms) == (1500, 1499)
            for number in range(0, 1500, 113):
                assert found.first_after(number) == number
                assert found.store_time(number) == number
                last = found.last_before(number)
                assert last == (number - 1 if number else None)
                newest = found.find(digest(b"key-%d" % number))
                assert newest is not None
                assert newest.offset == number
            assert found.first_after(1500) is None
            # One read goes on over files, as far as it may.
            read = found.read(0, (1500, 1 << 20), None)
            assert (read.records, read.offset) == (1500, 1500)

    asyncio.run(main())


def test_an_empty_one_has_nothing() -> None:
    empty = Snapshot((), 7)
    assert (empty.records, empty.data_bytes, empty.due_ms) == (0, 0, 0)
    assert empty.read(3, (32, 1000), None).offset == 7
    assert empty.store_time(3) is None
    assert empty.first_after(0) is None
    assert empty.last_before(7) is None
    assert empty.find(bytes(16)) is None
