"""Recovery over several segments that have no index yet: what is torn, what damaged."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogDamagedError
from ropeway.storage.file import FileLogSettings, open_log, verify
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.index import HEADER
from ropeway.storage.file.segment import bases, create
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.storage.file.damage import SKIP, SMALL, fill, flip, places, reopen, unseal
from tests.storage.file.descriptors import open_below

if TYPE_CHECKING:
    from pathlib import Path

NEVER_SYNCED = FileLogSettings(
    segment_bytes=1 << 16, flush_interval_ms=3_600_000, tail_bytes=0
)
MANY = [100] * 60


def segments(directory: Path) -> list[Path]:
    """The segment files in order, four or more of them."""
    found = sorted(directory.glob("*.log"))
    assert len(found) >= 4
    return found


def flat(blocks: list[list[str]]) -> list[str]:
    """The records of some blocks."""
    return [word for words in blocks for word in words]


def flip_last_block(path: Path) -> int:
    """Damage the last block of a segment, and say where it began."""
    *_, place, _ = places(path)
    flip(path, place + 70)
    return place


@pytest.mark.parametrize("later", ["sealed", "not sealed", "not sealed, and damaged"])
def test_damage_before_segments_that_were_synced_is_refused(
    tmp_path: Path, later: str
) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    first, *others = segments(tmp_path)
    if later == "sealed":
        first.with_suffix(".index").unlink()
    else:
        unseal(tmp_path)
    place = flip_last_block(first)
    if later == "not sealed, and damaged":
        # In the last of them, only what follows the damage says that it was synced.
        for path in others[:-1]:
            path.unlink()
        flip(others[-1], 70)
    with pytest.raises(LogDamagedError, match=f"{first}, place {place}"):
        open_log(tmp_path, SMALL)
    assert not list(tmp_path.glob("*.dropped-*"))
    if later != "not sealed, and damaged":
        log, found = reopen(tmp_path, SKIP)
        lost = len(places(first)) - 2
        assert found == flat(blocks[:lost] + blocks[lost + 1 :])
        assert log.recovery.skipped == [f"{first}, place {place}"]
        _, found = reopen(tmp_path, SMALL)
        assert len(found) == sum(MANY) - 100 + 1


@pytest.mark.parametrize("torn", [0, 1])
def test_segments_behind_a_torn_end_are_set_aside(tmp_path: Path, torn: int) -> None:
    blocks = fill(tmp_path, NEVER_SYNCED, *MANY)
    unseal(tmp_path)
    paths = segments(tmp_path)
    kept = sum(len(places(path)) - 1 for path in paths[: torn + 1]) - 1
    place = flip_last_block(paths[torn])
    behind = [path.read_bytes().rstrip(b"\0") for path in paths[torn + 1 :]]
    log, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == flat(blocks[:kept])
    dropped = {one.file: one for one in log.recovery.dropped}
    names = [path.with_suffix(".dropped-0").name for path in paths[torn:]]
    assert sorted(dropped) == names
    assert dropped[names[0]].position == int(paths[torn].stem) + place
    for name, data in zip(names[1:], behind, strict=True):
        assert (tmp_path / name).read_bytes().rstrip(b"\0") == data
    assert verify(tmp_path).problems == []
    _, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == [*flat(blocks[:kept]), "more"]


@pytest.mark.parametrize("rolled", [False, True])
def test_a_block_that_begins_where_the_synced_ones_end_may_be_torn(
    tmp_path: Path, rolled: bool
) -> None:
    """Blocks behind it were written when all before it was synced, and no more."""

    async def main() -> None:
        log = open_log(tmp_path, NEVER_SYNCED)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("synced"))
        await log.flush()
        await begin(partition, record("torn"))
        await begin(partition, record("x" * 65_450 if rolled else "behind"))
        await log.close()

    asyncio.run(main())
    unseal(tmp_path)
    first, *others = sorted(tmp_path.glob("*.log"))
    assert len(others) == rolled
    flip(first, places(first)[1] + 70)
    _, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == ["synced"]


def test_segments_without_an_index_get_one_at_the_next_start(tmp_path: Path) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    indexes = {path: path.read_bytes() for path in sorted(tmp_path.glob("*.index"))}
    unseal(tmp_path)
    log, found = reopen(tmp_path, SMALL)
    assert found == flat(blocks)
    assert log.recovery.rebuilt == [str(path) for path in indexes]
    assert {path: path.read_bytes() for path in indexes} == indexes
    assert log.recovery.dropped == log.recovery.skipped == []


def lose_last_block(path: Path) -> int:
    """Leave zeros of the last block of a segment, and say where it began."""
    *_, place, end = places(path)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes(end - place))
    return place


@pytest.mark.parametrize("lost", [0, 1])
def test_a_segment_that_lost_its_end_to_zeros_ends_the_log(
    tmp_path: Path, lost: int
) -> None:
    """It ends as cleanly as a full one: only the next offsets tell that it does not."""
    blocks = fill(tmp_path, NEVER_SYNCED, *MANY)
    unseal(tmp_path)
    paths = segments(tmp_path)
    kept = sum(len(places(path)) - 1 for path in paths[: lost + 1]) - 1
    lose_last_block(paths[lost])
    log, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == flat(blocks[:kept])
    names = [path.with_suffix(".dropped-0").name for path in paths[lost + 1 :]]
    assert sorted(one.file for one in log.recovery.dropped) == names
    _, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == [*flat(blocks[:kept]), "more"]


def test_a_first_segment_of_nothing_but_zeros_ends_the_log(tmp_path: Path) -> None:
    fill(tmp_path, NEVER_SYNCED, *MANY)
    unseal(tmp_path)
    first, *_ = segments(tmp_path)
    first.write_bytes(bytes(first.stat().st_size))
    _, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == []


def test_zeros_in_place_of_synced_blocks_are_refused_or_skipped(tmp_path: Path) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    unseal(tmp_path)
    first, *_ = segments(tmp_path)
    lost = len(places(first)) - 2
    place = lose_last_block(first)
    with pytest.raises(LogDamagedError, match=f"{first}, place {place}"):
        open_log(tmp_path, SMALL)
    log, found = reopen(tmp_path, SKIP)
    assert found == flat(blocks[:lost] + blocks[lost + 1 :])
    assert log.recovery.skipped == [f"{first}, place {place}"]
    _, found = reopen(tmp_path, SMALL)
    assert len(found) == sum(MANY) - 100 + 1


def test_an_empty_file_behind_a_torn_end_is_nothing(tmp_path: Path) -> None:
    """The next segment was being made when the power went."""
    blocks = fill(tmp_path, NEVER_SYNCED, 2, 3)
    (only,) = tmp_path.glob("*.log")
    flip_last_block(only)
    empty = tmp_path / f"{1 << 16:020}.log"
    empty.touch()
    assert verify(tmp_path).segments == 1
    _, found = reopen(tmp_path, NEVER_SYNCED)
    assert found == blocks[0]
    assert not empty.exists()


def test_a_segment_that_lost_all_its_blocks_opens_ever_after(tmp_path: Path) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    first = segments(tmp_path)[0]
    first.with_suffix(".index").unlink()
    *starts, _ = places(first)
    for start in starts:
        flip(first, start + 70)
    _, found = reopen(tmp_path, SKIP)
    assert found == flat(blocks[len(starts) :])
    _, found = reopen(tmp_path, SMALL)
    assert found == [*flat(blocks[len(starts) :]), "more"]


def test_a_segment_that_was_made_ahead_is_made_again_when_it_is_needed(
    tmp_path: Path,
) -> None:
    (words,) = fill(tmp_path, SMALL, 3)
    os.close(create(tmp_path, 1 << 16, 1 << 16).descriptor)
    log, found = reopen(tmp_path, SMALL)
    assert found == words
    assert log.recovery.rebuilt == []
    assert bases(tmp_path) == [0]


def test_both_of_two_torn_ends_are_kept(tmp_path: Path) -> None:
    fill(tmp_path, NEVER_SYNCED, 1, 1)
    (path,) = tmp_path.glob("*.log")
    for number in range(2):
        flip_last_block(path)
        log, _ = reopen(tmp_path, NEVER_SYNCED)
        (dropped,) = log.recovery.dropped
        assert dropped.file == path.with_suffix(f".dropped-{number}").name
    assert len(list(tmp_path.glob("*.dropped-*"))) == 2
    assert open_below(tmp_path) == 0


@pytest.mark.parametrize("sealed", [False, True])
def test_records_of_a_partition_that_is_forgotten_go_to_no_other(
    tmp_path: Path, sealed: bool
) -> None:
    """What the catalog lost keeps its ordinal, as long as the log has records of it."""
    fill(tmp_path, SMALL, *(MANY if sealed else [3]))
    if sealed:  # The last one would be read block by block.
        segments(tmp_path)[-1].unlink()
    catalog = tmp_path / "partitions"
    lines = catalog.read_bytes().splitlines(keepends=True)
    catalog.write_bytes(lines[0])

    async def main() -> None:
        # What was synced is missed, and opened without it only where that is asked for.
        log = open_log(tmp_path, SKIP if sealed else SMALL)
        await log.create("another", [0])
        partition = log.partition("another", 0)
        assert (partition.first, partition.end) == (0, 0)
        assert await begin(partition, record("first")) == 0
        await log.close()

    asyncio.run(main())


@pytest.mark.parametrize("settings", [SMALL, SKIP], ids=["refuse", "skip"])
def test_an_index_that_is_damaged_together_with_its_segment(
    tmp_path: Path, settings: FileLogSettings
) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    first = segments(tmp_path)[0]
    index = first.with_suffix(".index")
    flip(index, index.stat().st_size - 1)
    flip(first, places(first)[1] + 70)

    async def main() -> None:
        log = open_log(tmp_path, settings)
        partition = log.partition(TOPIC, 0)
        try:
            if settings is SMALL:
                with pytest.raises(LogDamagedError, match=f"{first}, place"):
                    await partition.read(0, 1, 1)
            else:
                found = await read_all(partition)
                assert found == flat([blocks[0], *blocks[2:]])
        finally:
            await log.close()

    asyncio.run(main())


def test_keys_are_found_where_an_index_lost_them(tmp_path: Path) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    index = segments(tmp_path)[0].with_suffix(".index")
    data = index.read_bytes()
    fields = HEADER.unpack(data[: HEADER.size])
    keys_at = HEADER.size + 16 * fields[4] + ENTRY.size * fields[9]
    index.write_bytes(data[:keys_at].ljust(len(data), b"\0"))

    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        for word in blocks[0][:10]:
            assert len(await log.query(TOPIC, f"key-{word}", 0, 9999, 9)) == 1
        await log.close()

    asyncio.run(main())


def test_an_index_of_another_segment_is_made_again(tmp_path: Path) -> None:
    blocks = fill(tmp_path, SMALL, *MANY)
    first, second, *_ = sorted(tmp_path.glob("*.index"))
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    log, texts = reopen(tmp_path, SMALL)
    assert texts == flat(blocks)
    assert log.recovery.rebuilt == [str(first), str(second)]
    assert (first.read_bytes(), second.read_bytes()) == (one, other)
