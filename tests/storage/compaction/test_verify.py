"""Checking compacted files: every byte of each counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.compaction.verify import verify
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import closing, compacted, partition_of, send

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 150


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Compacted records of a log that was closed."""

    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n}={'x' * 50}" for n in range(COUNT)])
            await log.compact(TOPIC)

    asyncio.run(main())
    return tmp_path / "compaction"


def test_whole_files_have_no_problems(directory: Path) -> None:
    found = verify(directory)
    assert (found.records, found.problems) == (COUNT, [])
    assert found.files == len([*directory.rglob("*.data")])
    assert verify(directory / "nowhere").files == 0


@pytest.mark.parametrize("kind", ["manifest", "*.index", "*.data"])
def test_whatever_byte_is_altered_its_file_is_named(directory: Path, kind: str) -> None:
    path = max(directory.rglob(kind))
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 7):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(data)
        assert any(str(path) in one for one in verify(directory).problems), place
    path.write_bytes(whole)
    assert verify(directory).problems == []


@pytest.mark.parametrize("kind", ["*.index", "*.data"])
def test_a_file_that_is_missing_is_named(directory: Path, kind: str) -> None:
    path = max(directory.rglob(kind))
    path.unlink()
    assert any(str(path) in one for one in verify(directory).problems)


def test_a_newer_version_is_told_from_damage(directory: Path) -> None:
    path = max(directory.rglob("*.index"))
    data = bytearray(path.read_bytes())
    data[8] = 3
    path.write_bytes(data)
    (problem,) = verify(directory).problems
    assert "has format 3; this program reads up to 2: use a newer one" in problem
