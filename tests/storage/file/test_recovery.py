"""Recovery: every cut, every flipped byte, damage in the middle, kill -9."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.file import FileLogSettings, open_log, verify
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.storage.file.damage import SKIP, SMALL, fill, flip, places, reopen
from tests.storage.file.descriptors import open_below

if TYPE_CHECKING:
    from pathlib import Path


def only_segment(directory: Path) -> Path:
    """The one segment file."""
    (path,) = directory.glob("*.log")
    return path


def copy(source: Path, target: Path) -> Path:
    """A log to damage."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return only_segment(target)


@pytest.mark.slow
def test_a_cut_at_every_byte_of_the_last_blocks_keeps_the_whole_ones(
    tmp_path: Path,
) -> None:
    blocks = fill(tmp_path / "whole", SMALL, 3, 1, 2)
    starts = places(only_segment(tmp_path / "whole"))
    for cut in range(starts[1], starts[-1]):
        path = copy(tmp_path / "whole", tmp_path / "cut")
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(cut)
            file.truncate(size)
        log, found = reopen(tmp_path / "cut", SMALL)
        kept = sum(start <= cut for start in starts[1:])
        assert found == [word for words in blocks[:kept] for word in words]
        torn = cut - starts[kept]
        # A cut through zeros at a block's end leaves less than was cut.
        (dropped,) = log.recovery.dropped or [None]
        assert (dropped is None) == (torn == 0)
        if dropped is not None:
            assert dropped.position == starts[kept]
            assert dropped.bytes <= torn
            kept_bytes = (tmp_path / "cut" / dropped.file).read_bytes()
            assert len(kept_bytes) == dropped.bytes
        assert verify(tmp_path / "cut").problems == []


def test_a_file_that_ends_early_is_a_torn_end_too(tmp_path: Path) -> None:
    blocks = fill(tmp_path / "whole", SMALL, 3, 1)
    starts = places(only_segment(tmp_path / "whole"))
    for cut in (starts[1] + 1, starts[1] + 63, starts[2] - 1, starts[2]):
        path = copy(tmp_path / "whole", tmp_path / "cut")
        with path.open("r+b") as file:
            file.truncate(cut)
        _, found = reopen(tmp_path / "cut", SMALL)
        assert found == blocks[0] + (blocks[1] if cut == starts[2] else [])


@pytest.mark.slow
def test_a_segment_that_goes_on_has_the_room_that_is_configured_now(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        for size in (1 << 16, 1 << 18, 1 << 17):
            log = open_log(tmp_path, FileLogSettings(segment_bytes=size))
            await log.create("t", [0])
            await log.close()
        (segment,) = log._segments.all
        assert segment.capacity == 1 << 18
        assert segment.path.stat().st_size == 1 << 18

    asyncio.run(main())


def test_a_flipped_bit_at_every_byte_of_the_last_block_drops_only_that_block(
    tmp_path: Path,
) -> None:
    blocks = fill(tmp_path / "whole", SMALL, 3, 1, 2)
    starts = places(only_segment(tmp_path / "whole"))
    for at in range(starts[2], starts[3]):
        path = copy(tmp_path / "whole", tmp_path / "bad")
        flip(path, at)
        log, found = reopen(tmp_path / "bad", SMALL)
        assert found == blocks[0] + blocks[1]
        assert [one.position for one in log.recovery.dropped] == [starts[2]]


@pytest.mark.slow
def test_a_flipped_bit_at_every_byte_before_synced_blocks_is_refused_or_skipped(
    tmp_path: Path,
) -> None:
    blocks = fill(tmp_path / "whole", SMALL, 2, 1, 2)
    starts = places(only_segment(tmp_path / "whole"))
    for at in range(starts[1], starts[2]):
        path = copy(tmp_path / "whole", tmp_path / "bad")
        flip(path, at)
        before = path.read_bytes()
        with pytest.raises(LogDamagedError) as refused:
            open_log(tmp_path / "bad", SMALL)
        text = str(refused.value)
        assert str(path) in text
        assert f"place {starts[1]}" in text
        assert "1 whole blocks follow" in text
        assert 'on_damage="skip"' in text
        assert path.read_bytes() == before
        log, found = reopen(tmp_path / "bad", SKIP)
        assert found == blocks[0] + blocks[2]
        assert len(log.recovery.skipped) == 1
        # Once it was accepted, the log opens as any other.
        _, found = reopen(tmp_path / "bad", SMALL)
        assert found == [*blocks[0], *blocks[2], "more"]


def test_skipped_offsets_have_no_record_and_reads_jump_over_them(
    tmp_path: Path,
) -> None:
    fill(tmp_path, SMALL, 2, 3, 2)
    path = only_segment(tmp_path)
    flip(path, places(path)[1] + 70)

    async def main() -> None:
        log = open_log(tmp_path, SKIP)
        partition = log.partition(TOPIC, 0)
        assert (partition.first, partition.end) == (0, 7)
        assert await read_all(partition, 3) == ["005", "006"]
        assert await partition.store_time(3) is None
        assert await partition.store_time(5) == 1000
        assert await log.query(TOPIC, "key-003", 0, 9999, 9) == []
        (hit,) = await log.query(TOPIC, "key-006", 0, 9999, 9)
        assert hit.offset == 6
        await log.close()

    asyncio.run(main())


def test_blocks_that_were_never_synced_are_cut_behind_a_hole(tmp_path: Path) -> None:
    settings = FileLogSettings(segment_bytes=1 << 16, flush_interval_ms=3_600_000)
    blocks = fill(tmp_path, settings, 2, 3, 2)
    path = only_segment(tmp_path)
    starts = places(path)
    with path.open("r+b") as file:  # as after a power cut: one page did not get there
        file.seek(starts[1])
        file.write(bytes(starts[2] - starts[1]))
    log, found = reopen(tmp_path, settings)
    assert found == blocks[0]
    (dropped,) = log.recovery.dropped
    assert dropped.position == starts[1]


def test_bytes_of_a_block_inside_a_record_are_not_taken_for_one(tmp_path: Path) -> None:
    fill(tmp_path / "a", SMALL, 2, 1)
    inner = only_segment(tmp_path / "a").read_bytes()[:1000].decode("latin-1")

    async def main() -> None:
        log = open_log(tmp_path / "b", SMALL)
        await log.create(TOPIC, [0])
        await begin(log.partition(TOPIC, 0), record("good"))
        await begin(log.partition(TOPIC, 0), record(inner))
        await log.close()

    asyncio.run(main())
    path = only_segment(tmp_path / "b")
    flip(path, places(path)[1] + 20)
    _, found = reopen(tmp_path / "b", SMALL)
    assert found == ["good"]


@pytest.mark.parametrize("damage", ["missing", "flipped head", "flipped body", "short"])
def test_an_index_file_is_made_again_from_its_segment(
    tmp_path: Path, damage: str
) -> None:
    blocks = fill(tmp_path, SMALL, *([100] * 40))
    paths = sorted(tmp_path.glob("*.index"))
    assert len(paths) >= 2
    path = paths[0]
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        flip(path, 30 if damage == "flipped head" else path.stat().st_size - 5)
    assert damage == "missing" or len(verify(tmp_path).problems) == 1
    _, found = reopen(tmp_path, SMALL)
    assert found == [word for words in blocks for word in words]
    assert verify(tmp_path).problems == []


def test_a_damaged_record_in_a_sealed_segment_is_refused_or_skipped(
    tmp_path: Path,
) -> None:
    fill(tmp_path, SMALL, *([100] * 40))
    path = min(tmp_path.glob("*.log"))
    flip(path, 64 + 5 * 7 + 3)  # the length of record 5; each has 4 + 3 bytes

    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        partition = log.partition(TOPIC, 0)
        assert (await partition.read(0, 5, 1 << 20)).records == 5
        with pytest.raises(LogDamagedError, match=f"{path}, place {64 + 35}"):
            await partition.read(0, 10, 1 << 20)
        await log.close()
        assert len(verify(tmp_path).problems) == 1
        log = open_log(tmp_path, SKIP)
        chunk = await log.partition(TOPIC, 0).read(0, 10, 1 << 20)
        assert (chunk.records, chunk.next_offset) == (9, 10)
        await log.close()

    asyncio.run(main())


def test_newer_formats_are_named_and_not_touched(tmp_path: Path) -> None:
    fill(tmp_path, SMALL, 1)
    journal = tmp_path / "partitions"
    data = journal.read_bytes()
    from ropeway.storage.file import catalog

    newer = catalog.Header(catalog.VERSION + 1, 1, 0)
    journal.write_bytes(catalog._dump(newer))
    with pytest.raises(LogError, match="has format 3; this program reads up to 2"):
        open_log(tmp_path, SMALL)
    journal.write_bytes(data)
    _, found = reopen(tmp_path, SMALL)
    assert found == ["000"]


def test_a_torn_last_line_of_the_journal_is_dropped(tmp_path: Path) -> None:
    fill(tmp_path, SMALL, 2)
    journal = tmp_path / "partitions"
    whole = journal.read_bytes()
    for extra in (b"0", b"00000000 {", whole.splitlines()[1][:-1]):
        journal.write_bytes(whole + extra)
        _, found = reopen(tmp_path, SMALL)
        assert found[:2] == ["000", "001"]
    # What was there when the file was made anew had been synced.
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1][:-3] + b"!}\n" + lines[1])
    with pytest.raises(LogDamagedError, match="line 2"):
        open_log(tmp_path, SMALL)


CHILD = """
import asyncio, pathlib, struct, sys
from ropeway.storage.api import Record
from ropeway.storage.file import FileLogSettings, open_log

async def main():
    # However slow the disk is, nothing is refused.
    settings = FileLogSettings(flush="sync", segment_bytes=1 << 16, wait_ms=60_000)
    log = open_log(pathlib.Path(sys.argv[1]), settings)
    await log.create("orders", [0])
    partition = log.partition("orders", 0)

    def more():
        text = b"%08d" % partition.next_offset
        data = struct.pack(">i", 4 + len(text)) + text
        partition.append([Record(data, 0, ())], 1000, done)

    def done(offset, error):
        assert error is None
        print(offset, flush=True)
        more()

    for _ in range(8):
        more()
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("wanted", [1, 40, 1500])
def test_kill_9_loses_nothing_that_was_reported_done(
    tmp_path: Path, wanted: int
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    reported = -1
    try:
        for line in child.stdout:
            reported = int(line)
            if reported >= wanted:
                child.kill()
                break
        for line in child.stdout:  # what it said until it died; the last may be torn
            if line.endswith("\n"):
                reported = int(line)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    _, found = reopen(tmp_path, SMALL)
    assert len(found) > reported >= wanted
    assert found == [f"{i:08}" for i in range(len(found))]


def opened_once(directory: Path) -> None:
    """Open a log, which writes its journal anew, and close it."""

    async def main() -> None:
        await open_log(directory, SMALL).close()

    asyncio.run(main())


def test_a_log_that_finds_no_room_for_its_segment_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fill(tmp_path, SMALL, 1)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("ropeway.storage.file.recovery.allocate", full)
        with pytest.raises(LogError, match="No space left"):
            open_log(tmp_path, SMALL)
    assert open_below(tmp_path) == 0
    assert reopen(tmp_path, SMALL)[1] == ["000"]


@pytest.mark.parametrize("journal", ["older", "cut"])
def test_a_journal_that_lacks_what_a_synced_block_needs_is_refused(
    tmp_path: Path, journal: str
) -> None:
    opened_once(tmp_path)
    path = tmp_path / "partitions"
    before = path.read_bytes()
    fill(tmp_path, SMALL, 2, 1, 1)
    assert path.read_bytes().startswith(before)
    path.write_bytes(before if journal == "older" else path.read_bytes()[:-150])
    wanted = r"partitions lacks the topic of records in .*\.log, place 0: "
    with pytest.raises(LogDamagedError, match=wanted + ".*on_damage"):
        open_log(tmp_path, SMALL)
    assert open_below(tmp_path) == 0
    (problem,) = verify(tmp_path).problems
    assert re.match(f".*{wanted}", problem)

    async def goes_on_without() -> None:
        for settings in (SKIP, SMALL):
            log = open_log(tmp_path, settings)
            await log.create(TOPIC, [0, 1])
            await begin(log.partition(TOPIC, 0), record("new"))
            await log.close()
        log = open_log(tmp_path, SMALL)
        assert await read_all(log.partition(TOPIC, 0)) == ["new", "new"]
        await log.close()

    asyncio.run(goes_on_without())


def test_a_journal_that_lost_what_no_synced_block_needs_goes_on(tmp_path: Path) -> None:
    opened_once(tmp_path)
    path = tmp_path / "partitions"
    before = path.read_bytes()
    fill(tmp_path, SMALL, 1)
    path.write_bytes(before)
    assert verify(tmp_path).problems == []
    opened_once(tmp_path)
    # Its ordinals are not given again, and no later opening takes it for damage.
    fill(tmp_path, SMALL, 1, 1)
    assert verify(tmp_path).problems == []
    _, found = reopen(tmp_path, SMALL)
    assert found == ["000", "001"]
