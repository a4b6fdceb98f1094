"""The embedded log begins partitions where it is told, whatever happens then."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.file import FileLog, FileLogSettings, open_log, verify
from ropeway.storage.file.catalog import Catalog, Header, load
from ropeway.storage.file.segment import bases
from tests.contracts.beginnings import AT, BeginningContract, fill
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.storage.file.damage import unseal
from tests.storage.file.test_expiry import Clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.api import Flush

SETTINGS = FileLogSettings(segment_bytes=1 << 16, retention_ms=1000)


@pytest.mark.parametrize("flush", ["async", "sync"])
@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["files", "memory"])
class TestBeginnings(BeginningContract):
    @pytest.fixture
    def open_log(
        self, disk_path: Path, flush: Flush, tail_bytes: int
    ) -> Callable[[], Awaitable[FileLog]]:
        settings = FileLogSettings(
            flush=flush, segment_bytes=1 << 16, tail_bytes=tail_bytes
        )

        async def again() -> FileLog:
            return open_log(disk_path, settings)

        return again


def ends(directory: Path) -> dict[int, tuple[int, int]]:
    """First offset and end of each partition of a log; it is opened for that."""

    async def main() -> dict[int, tuple[int, int]]:
        log = open_log(directory, SETTINGS)
        numbers = log.topics().get(TOPIC, frozenset())
        found = {number: log.partition(TOPIC, number) for number in numbers}
        await log.close()
        return {number: (one.first, one.end) for number, one in found.items()}

    return asyncio.run(main())


def test_a_kill_behind_any_byte_leaves_it_as_told_or_not_there(tmp_path: Path) -> None:
    """What is cut was not synced, and what is there when `create` returns was."""

    async def main() -> int:
        log = open_log(tmp_path / "log", SETTINGS)
        before = (tmp_path / "log" / "partitions").stat().st_size
        await log.create(TOPIC, [0, 1], begins={0: AT})
        shutil.copytree(tmp_path / "log", tmp_path / "copy")
        await log.close()
        return before

    before = asyncio.run(main())
    journal = tmp_path / "copy" / "partitions"
    whole = journal.read_bytes()
    told = before + len(whole[before:].splitlines(keepends=True)[0])
    for cut in range(before, len(whole) + 1):
        journal.write_bytes(whole[:cut])
        found = ends(tmp_path / "copy")
        assert found == ({0: (AT, AT), 1: (0, 0)} if cut >= told else {})


def test_it_outlives_retention_and_trims(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        log = open_log(tmp_path, SETTINGS, clock)
        await log.create(TOPIC, [0, 1], begins={0: AT, 1: 7})
        partition = log.partition(TOPIC, 0)
        assert await log.trim(TOPIC, {0: AT + 5}) == {0: AT}
        for _ in range(3):
            await begin(partition, record("x" * 40_000))
        clock.now_ms += 2000
        assert (await log.expire(clock.now_ms)).segments
        assert (partition.first, partition.end) == (AT + 3, AT + 3)
        assert (await log.trim(TOPIC, {1: 3})) == {1: 7}
        await log.close()
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0], begins={0: AT})
        partition = log.partition(TOPIC, 0)
        assert (partition.first, partition.end) == (AT + 3, AT + 3)
        await fill(partition, AT + 3, 1)
        assert await log.trim(TOPIC, {0: AT + 4}) == {0: AT + 4}
        assert log.partition(TOPIC, 1).end == 7
        await log.close()

    asyncio.run(main())


def test_a_first_record_in_a_later_segment_is_behind_no_hole(tmp_path: Path) -> None:
    """As after a kill: no segment is sealed, and so each is looked at for holes."""

    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0, 1], begins={0: AT})
        for _ in range(3):
            await begin(log.partition(TOPIC, 1), record("x" * 40_000))
        await fill(log.partition(TOPIC, 0), AT, 3)
        await log.close()
        assert len(bases(tmp_path)) == 3
        unseal(tmp_path)
        log = open_log(tmp_path, SETTINGS)
        assert (log.recovery.dropped, log.recovery.skipped) == ([], [])
        assert len(await read_all(log.partition(TOPIC, 0))) == 3
        await log.close()
        assert verify(tmp_path).problems == []

    asyncio.run(main())


def header(directory: Path) -> Header:
    """The journal's first line."""
    found = load(directory / "partitions", skip=False)
    assert found is not None
    return found._header


def test_older_programs_read_a_journal_until_something_begins_elsewhere(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0, 1], begins={0: 0})
        assert header(tmp_path).version == 1
        await log.create("other", [0], begins={0: 1})
        assert header(tmp_path).version == 2
        await log.create("third", [0], begins={0: 1})
        await log.close()
        log = open_log(tmp_path, SETTINGS)
        assert header(tmp_path).version == 2
        await log.delete("other")
        await log.delete("third")
        await log.close()
        open_log(tmp_path, SETTINGS)._catalog.close()
        assert header(tmp_path).version == 1

    asyncio.run(main())


def test_a_disk_that_fails_is_told_and_it_can_be_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)

        def refuse(_self: Catalog) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Catalog, "sync", refuse)
            with pytest.raises(LogUnavailableError, match="cannot make topic orders"):
                await log.create(TOPIC, [0], begins={0: AT})
        await log.create(TOPIC, [0], begins={0: AT})
        await fill(log.partition(TOPIC, 0), AT, 1)
        await log.close()

    asyncio.run(main())
    assert ends(tmp_path) == {0: (AT, AT + 1)}
