"""A compacted topic begins where it is told, and so do its compacted records."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.contracts.beginnings import AT, BeginningContract
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import closing, compacted, send, stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.compaction.log import CompactedLog
    from ropeway.storage.compaction.partition import CompactedPartition


class TestBeginnings(BeginningContract):
    @pytest.fixture
    def open_log(self, tmp_path: Path) -> Callable[[], Awaitable[CompactedLog]]:
        async def again() -> CompactedLog:
            log = compacted(tmp_path)
            if TOPIC in log.topics():
                await log.compact(TOPIC)
            return log

        return again


def test_compaction_begins_where_the_topic_does(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            await log.create(TOPIC, [0], begins={0: AT})
            partition: CompactedPartition = log.partition(TOPIC, 0)  # type: ignore[assignment]
            await log.compact(TOPIC)
            await send(partition, ["a=1", "b=1", "a=2"])
            await log.compact(TOPIC)
            await send(partition, ["b=2"])
            (status,) = await log.compact(TOPIC)
            assert status.clean_end == AT + 4
            assert await stored(partition) == {AT + 2: "a=2", AT + 3: "b=2"}
            found = await log.latest(TOPIC, "a")
            assert found is not None
            assert found.offset == AT + 2
        async with closing(compacted(tmp_path)) as log:
            partition = log.partition(TOPIC, 0)  # type: ignore[assignment]
            assert await stored(partition) == {AT + 2: "a=2", AT + 3: "b=2"}

    asyncio.run(main())
