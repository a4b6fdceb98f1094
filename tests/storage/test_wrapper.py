"""What stands before a log leaves all to it that is not its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.storage.file import FileLogSettings, open_log
from ropeway.storage.wrapper import WrappedLog, WrappedPartition
from tests.contracts.log import TOPIC, record

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_and_known_is_the_inner_logs(tmp_path: Path):
    async def main() -> None:
        inner = open_log(tmp_path, FileLogSettings())
        log = WrappedLog(inner)
        await log.create(TOPIC, [0, 1])
        await log.ready(TOPIC)
        assert log.topics() == inner.topics() == {TOPIC: {0, 1}}
        assert log.numbering == inner.numbering
        partition = WrappedPartition(inner.partition(TOPIC, 1))
        assert (partition.topic, partition.number) == (TOPIC, 1)
        stored = asyncio.get_running_loop().create_future()
        partition.append([record("a")], 1, lambda *_: stored.set_result(None))
        assert partition.next_offset == 1
        await stored
        await log.flush()
        assert (partition.end, log.overdue_ms()) == (1, 0)
        assert await log.hosts(TOPIC, [0]) == await inner.hosts(TOPIC, [0])
        await inner.close()

    asyncio.run(main())
