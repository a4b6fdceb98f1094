"""Checking a closed log: every byte counts, and none is changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.file import FileLogSettings, open_log, verify
from tests.contracts.log import TOPIC, begin, record

if TYPE_CHECKING:
    from pathlib import Path


def fill(directory: Path) -> None:
    async def main() -> None:
        log = open_log(directory, FileLogSettings(segment_bytes=1 << 16))
        await log.create(TOPIC, [0])
        for _ in range(5):
            await begin(log.partition(TOPIC, 0), record("x" * 20_000, 0, ["k"]))
        await log.close()

    asyncio.run(main())


def test_a_whole_log_has_no_problems(tmp_path: Path) -> None:
    fill(tmp_path)
    report = verify(tmp_path)
    assert (report.segments, report.blocks, report.records) == (2, 5, 5)
    assert report.problems == []


def test_each_damaged_file_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    fill(tmp_path)
    segment, index = min(tmp_path.glob("*.log")), min(tmp_path.glob("*.index"))
    for path, at in [(segment, 25_000), (index, 10), (index, 90)]:
        whole = path.read_bytes()
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        damaged = path.read_bytes()
        (problem,) = verify(tmp_path).problems
        assert problem.startswith(str(path))
        assert path.read_bytes() == damaged
        path.write_bytes(whole)
    assert verify(tmp_path).problems == []


def test_a_damaged_journal_is_named_with_its_line(tmp_path: Path) -> None:
    fill(tmp_path)

    async def with_another_topic() -> None:
        log = open_log(tmp_path, FileLogSettings())
        await log.create("another", [0])
        await log.close()

    asyncio.run(with_another_topic())
    path = tmp_path / "partitions"
    whole = path.read_bytes()
    damaged = whole.replace(TOPIC.encode(), TOPIC.encode()[::-1].upper())
    assert damaged != whole
    path.write_bytes(damaged)
    with pytest.raises(LogDamagedError, match="partitions, line 2"):
        verify(tmp_path)
    assert path.read_bytes() == damaged


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no log in"):
        verify(tmp_path)
    assert list(tmp_path.iterdir()) == []
