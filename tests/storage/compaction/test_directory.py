"""The files of a partition: names, what is missing, what was altered."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.compaction import directory as directories
from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.compaction.disk import Disk
from ropeway.storage.compaction.verify import verify
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import closing, compacted, partition_of, send
from tests.storage.compaction.test_crashes import DiedError, DyingDisk
from tests.storage.sealed.test_version_1 import as_it_was

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
        directories.open_snapshot(Disk(), path.parent)


@pytest.mark.parametrize("suffix", [".data", ".index"])
def test_a_file_that_is_missing_is_named(tmp_path: Path, suffix: str) -> None:
    path = next(one for one in made(tmp_path).iterdir() if one.name.endswith(suffix))
    path.unlink()
    with pytest.raises(LogDamagedError, match=f"{path.name} is missing"):
        directories.open_snapshot(Disk(), path.parent)


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
    async def main() -> None:
        log = compacted(tmp_path)
        await log.create(TOPIC, [0])
        await log.close()
        shutil.copytree(tmp_path / "log", tmp_path / "other" / "log")
        await asyncio.to_thread(made, tmp_path)
        (tmp_path / "compaction").rename(tmp_path / "other" / "compaction")
        async with closing(compacted(tmp_path / "other")) as log:
            with pytest.raises(LogError, match="of different times; restore both"):
                log.partition(TOPIC, 0)

    asyncio.run(main())


def test_files_of_another_log_are_refused_though_they_are_not_ahead(
    tmp_path: Path,
) -> None:
    made(tmp_path)
    made(tmp_path / "other")
    shutil.rmtree(tmp_path / "other" / "compaction")
    (tmp_path / "compaction").rename(tmp_path / "other" / "compaction")

    async def main() -> None:
        async with closing(compacted(tmp_path / "other")) as log:
            with pytest.raises(LogError, match=r"manifest is of .* of different logs"):
                log.partition(TOPIC, 0)

    asyncio.run(main())


def test_a_manifest_of_before_says_of_no_log_until_the_next_swap(
    tmp_path: Path,
) -> None:
    path = made(tmp_path)
    known = manifests.load(path / "manifest")
    assert known is not None
    assert known.identity
    before = msgspec.structs.replace(known, identity=0)
    (path / "manifest").write_bytes(manifests.dump(before))

    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, ["more=1"])
            await log.compact(TOPIC)

    asyncio.run(main())
    now = manifests.load(path / "manifest")
    assert now is not None
    assert now.identity == known.identity


def of_version_1(path: Path) -> dict[str, bytes]:
    """Make a partition's files what version 1 would have made; how they were."""
    before = {}
    for one in path.glob("*.index"):
        before[one.name] = one.read_bytes()
        one.write_bytes(as_it_was(before[one.name]))
    manifest = manifests.load(path / "manifest")
    assert manifest is not None
    before["manifest"] = manifests.dump(manifest)
    old = msgspec.structs.replace(manifest, version=1)
    (path / "manifest").write_bytes(manifests.dump(old))
    return before


def test_files_of_version_1_are_checked_as_they_are(tmp_path: Path) -> None:
    path = made(tmp_path)
    of_version_1(path)
    before = {one: one.read_bytes() for one in path.iterdir()}
    found = verify(tmp_path / "compaction")
    assert (found.records, found.problems) == (700, [])
    assert {one: one.read_bytes() for one in path.iterdir()} == before


def test_files_of_version_1_become_todays_wherever_a_process_ends(
    tmp_path: Path,
) -> None:
    path = made(tmp_path)
    before = of_version_1(path)
    step = 0
    while True:
        disk = DyingDisk(step)
        try:
            directories.open_snapshot(disk, path)
        except DiedError:
            step += 1
            continue
        break
    assert step > len(before), "each file takes some steps"
    snapshot = directories.open_snapshot(DyingDisk(-1), path)
    assert snapshot.records == 700
    directories.clear_up(Disk(), path, snapshot)
    names = {one.name for one in path.iterdir() if one.suffix != ".data"}
    assert names == before.keys()
    for name, data in before.items():
        assert (path / name).read_bytes() == data
    assert verify(tmp_path / "compaction").problems == []


def test_a_damaged_index_of_version_1_is_named(tmp_path: Path) -> None:
    path = made(tmp_path)
    of_version_1(path)
    one = min(path.glob("*.index"))
    data = bytearray(one.read_bytes())
    data[-1] ^= 1
    one.write_bytes(data)
    with pytest.raises(LogDamagedError, match=f"{one.name}: .*restore the file"):
        directories.open_snapshot(Disk(), path)
    assert any(str(one) in line for line in verify(tmp_path / "compaction").problems)
