"""The embedded log is trimmed, and gives the disk back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.file import FileLog, FileLogSettings, open_log
from ropeway.storage.file.catalog import Catalog
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.contracts.trim import TrimContract
from tests.storage.file.test_expiry import Clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

SETTINGS = FileLogSettings(segment_bytes=1 << 16)


class TestTrim(TrimContract):
    @pytest.fixture
    def open_log(self, tmp_path: Path) -> Callable[[], Awaitable[FileLog]]:
        async def again() -> FileLog:
            return open_log(tmp_path, SETTINGS)

        return again


def test_segments_of_which_nothing_is_left_go_at_any_age(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS, Clock())
        await log.create(TOPIC, [0, 1])
        busy, quiet = log.partition(TOPIC, 0), log.partition(TOPIC, 1)
        for at in range(6):
            await begin(busy, record(f"{at}" * 30_000))
        await begin(quiet, record("quiet"))
        await log.trim(TOPIC, {0: 5})
        assert (await log.expire(0)).segments == 2
        assert (busy.first, quiet.first) == (5, 0)
        assert (await log.expire(0)).segments == 0
        assert await read_all(quiet) == ["quiet"]
        await log.close()
        log = open_log(tmp_path, SETTINGS)
        assert log.partition(TOPIC, 0).first == 5
        await log.close()

    asyncio.run(main())


def test_a_segment_with_records_of_others_stays(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS, Clock())
        await log.create(TOPIC, [0, 1])
        busy, quiet = log.partition(TOPIC, 0), log.partition(TOPIC, 1)
        await begin(quiet, record("quiet"))
        for at in range(6):
            await begin(busy, record(f"{at}" * 30_000))
        await log.trim(TOPIC, {0: 5})
        assert (await log.expire(0)).segments == 0
        await log.trim(TOPIC, {1: 1})
        assert (await log.expire(0)).segments == 2
        await log.close()

    asyncio.run(main())


def test_a_disk_that_does_not_take_it_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("a"), record("b"))
        with monkeypatch.context() as broken:

            def fail(catalog: Catalog) -> None:
                if catalog.trimmed:
                    raise OSError(5, "it is broken")

            broken.setattr(Catalog, "sync", fail)
            with pytest.raises(LogUnavailableError, match="cannot trim"):
                await log.trim(TOPIC, {0: 1})
        assert await read_all(partition) == ["a", "b"]
        await log.close()

    asyncio.run(main())
