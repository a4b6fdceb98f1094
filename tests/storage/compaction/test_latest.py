"""The newest record of a key, in the log or in compacted files alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.storage.file import FileLogSettings
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import (
    closing,
    compacted,
    partition_of,
    send,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_newest_record_of_a_key_is_found_wherever_it_is(tmp_path: Path) -> None:
    async def main() -> None:
        files = FileLogSettings(segment_bytes=1 << 16, retention_ms=0)
        async with closing(compacted(tmp_path, file_settings=files)) as log:
            one, other = await partition_of(log, 0), await partition_of(log, 1)
            await send(one, [f"key-{n % 200}={n}{'x' * 300}@{n}" for n in range(1000)])
            await send(other, ["both=1@7", "word and more=1@7"])
            await send(one, ["both=2@8", "word=2@8"])

            async def value(key: str) -> str | None:
                found = await log.latest(TOPIC, key)
                return found and found.data[4:].decode().partition("=")[2]

            async def check() -> None:
                assert await value("key-7") == f"807{'x' * 300}@807"
                assert await value("both") == "2@8"
                assert await value("word") == "2@8"
                assert await value("word and more") == "1@7"
                assert await value("nobody's") is None

            await check()
            await log.compact(TOPIC)
            await check()
            expired = await log.inner.expire(1 << 60)
            assert expired.segments > 0
            await check()
            await send(other, ["both=@9"])
            assert await value("both") == "@9"

    asyncio.run(main())
