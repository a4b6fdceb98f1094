"""The files of a partition: names, what is missing, what was altered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.compaction import directory as directories
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import closing, compacted, partition_of, send

if TYPE_CHECKING:
    from pathlib import Path


def made(directory: Path) -> Path:
    """A partition with compacted files; its directory."""

    async def main() -> None:
        async with closing(compacted(directory)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n}={'x' * 50}" for n in range(700)])
            await log.compact(TOPIC)
            assert len(partition.clean.now.files) > 1

    asyncio.run(main())
    return directory / "compaction" / TOPIC / "0"


@pytest.mark.parametrize("topic", ["orders", "%RETRY%group", "a|b", "x%2Fy"])
def test_a_topics_directory_has_its_name(tmp_path: Path, topic: str) -> None:
    assert directories.path_of(tmp_path, topic, 3) == tmp_path / topic / "3"


@pytest.mark.parametrize("suffix", ["manifest", ".data", ".index"])
def test_a_file_that_is_cut_short_is_named(tmp_path: Path, suffix: str) -> None:
    path = next(one for one in made(tmp_path).iterdir() if one.name.endswith(suffix))
    path.write_bytes(path.read_bytes()[: 20 if suffix == ".index" else -2])
    with pytest.raises(LogDamagedError, match=path.name):
        directories.open_snapshot(path.parent)


@pytest.mark.parametrize("suffix", [".data", ".index"])
def test_a_file_that_is_missing_is_named(tmp_path: Path, suffix: str) -> None:
    path = next(one for one in made(tmp_path).iterdir() if one.name.endswith(suffix))
    path.unlink()
    with pytest.raises(LogDamagedError, match=f"{path.name} is missing"):
        directories.open_snapshot(path.parent)


@pytest.mark.parametrize("suffix", [".data", ".index"])
def test_what_was_altered_is_found_by_the_next_round(
    tmp_path: Path, suffix: str
) -> None:
    path = next(one for one in made(tmp_path).iterdir() if one.name.endswith(suffix))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n}=new" for n in range(0, 700, 2)])
            with pytest.raises(LogDamagedError, match="not what was written"):
                await log.compact(TOPIC)
            assert (await log.status(TOPIC))[0].clean_end == 700

    asyncio.run(main())


def test_files_that_are_ahead_of_the_log_are_refused(tmp_path: Path) -> None:
    made(tmp_path)
    for one in (tmp_path / "log").iterdir():
        one.unlink()

    async def main() -> None:
        # The log is another one, and has the topic by now.
        log = compacted(tmp_path / "other")
        await log.create(TOPIC, [0])
        await log.close()
        (tmp_path / "compaction").rename(tmp_path / "other" / "compaction")
        async with closing(compacted(tmp_path / "other")) as log:
            with pytest.raises(LogError, match="of different times; restore both"):
                log.partition(TOPIC, 0)

    asyncio.run(main())
