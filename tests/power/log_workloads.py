"""What is done to an embedded log before its power is cut, and what has to be there.

Records say which they are: `partition-offset-`, and some bytes. Marks:

    there P N    partition P has all before offset N, and keeps it
    first P N    partition P may have dropped what is before offset N
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.storage.api import NoSuchPartitionError
from ropeway.storage.file import FileLog, FileLogSettings, open_log
from ropeway.storage.file.segments import Segments
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.power.recorded import kill, mark
from tests.storage.file.damage import flip, places

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PLACE = "data/log"
SYNC = FileLogSettings(
    segment_bytes=1 << 16, flush="sync", tail_bytes=0, retention_bytes=1 << 16
)
ASYNC = FileLogSettings(
    segment_bytes=1 << 16, flush_interval_ms=3_600_000, tail_bytes=0
)
BIG = 20_000
"""Three of these fill a segment."""


async def append(log: FileLog, number: int, sizes: Sequence[int]) -> None:
    """Append records of so many bytes to a partition, each in a block of its own."""
    partition = log.partition(TOPIC, number)
    for size in sizes:
        text = f"{number}-{partition.next_offset}-{'x' * size}"
        await begin(partition, record(text))


def mark_ends(log: FileLog) -> None:
    """Promise all that is visible."""
    for number in log.topics()[TOPIC]:
        mark(f"there {number} {log.partition(TOPIC, number).end}")


async def with_sync(directory: Path) -> None:
    """Each append is a promise; segments end, and retention drops some."""
    log = open_log(directory / PLACE, SYNC)
    await log.create(TOPIC, [0, 1])
    for number, size in [(1, 10), (1, 700), *[(0, BIG)] * 7]:
        await append(log, number, [size])
        mark_ends(log)
    for number in (0, 1):
        mark(f"first {number} {log.partition(TOPIC, number).end}")
    assert (await log.expire(0)).segments
    await append(log, 0, [10])
    mark_ends(log)
    await log.close()


async def beginning(directory: Path) -> None:
    """A partition that is told to begin at an offset does, once it was made."""
    log = open_log(directory / PLACE, SYNC)
    await log.create(TOPIC, [0])
    mark("first 1 5000000000")
    await log.create(TOPIC, [0, 1], begins={1: 5_000_000_000})
    mark("there 1 5000000000")
    await append(log, 1, [10])
    mark_ends(log)
    await log.close()


async def with_async(directory: Path) -> None:
    """Only what was flushed is a promise."""
    log = open_log(directory / PLACE, ASYNC)
    await log.create(TOPIC, [0, 1])
    for sizes in ([10, 700, BIG], [BIG] * 3, [BIG, 10, 10]):
        await append(log, 1, [20])
        await append(log, 0, sizes)
        await log.flush()
        mark_ends(log)
        await append(log, 1, [BIG, 10])
        await append(log, 0, [BIG] * 3)
    kill()  # the last flush would make all durable


async def killed(directory: Path) -> None:
    """A process that is killed before it has synced anything, or ended a segment."""
    Segments._seal = lambda *_: None  # type: ignore[method-assign]
    log = open_log(directory / PLACE, ASYNC)
    await log.create(TOPIC, [0, 1])
    await append(log, 1, [10])
    await append(log, 0, [BIG] * 7)
    kill()


async def opened_again(directory: Path) -> None:
    """What readers can see is a promise, from the moment of opening on."""
    log = open_log(
        directory / PLACE, msgspec.structs.replace(SYNC, retention_bytes=None)
    )
    mark_ends(log)
    await append(log, 0, [10, BIG, 10])
    await log.create(TOPIC, [2])
    await append(log, 2, [10])
    mark_ends(log)
    await log.close()


def torn(directory: Path) -> None:
    """A log of segments that were not sealed, with a torn block in the first one."""
    paths = _fill(directory)
    *_, last, _ = places(paths[0])
    flip(paths[0], last + 70)


def hole(directory: Path) -> None:
    """The same, with zeros in place of the first segment's last block."""
    paths = _fill(directory)
    *_, last, end = places(paths[0])
    with paths[0].open("r+b") as file:
        file.seek(last)
        file.write(bytes(end - last))


def _fill(directory: Path) -> list[Path]:
    async def main() -> None:
        log = open_log(directory / PLACE, ASYNC)
        await log.create(TOPIC, [0, 1])
        await append(log, 1, [10])
        await append(log, 0, [BIG] * 7)
        await log.close()

    asyncio.run(main())
    for path in (directory / PLACE).glob("*.index"):
        path.unlink()
    return sorted((directory / PLACE).glob("*.log"))


def check(directory: Path, marks: list[str]) -> None:
    """Hold what a power cut left against the marks."""
    asyncio.run(_check(directory, marks))


async def _check(directory: Path, marks: list[str]) -> None:
    log = open_log(directory / PLACE, SYNC)
    try:
        for number in (0, 1, 2):
            there = _largest(marks, f"there {number} ")
            may_begin = _largest(marks, f"first {number} ")
            try:
                partition = log.partition(TOPIC, number)
            except NoSuchPartitionError:
                assert not there, f"partition {number} is gone"
                continue
            first, end = partition.first, partition.end
            assert end >= there, f"{number}: ends at {end}, {there} were promised"
            assert first <= may_begin, f"{number}: begins at {first}"
            found = [text.split("-")[:2] for text in await read_all(partition, first)]
            assert found == [[f"{number}", f"{at}"] for at in range(first, end)]
    finally:
        await log.close()


def _largest(marks: list[str], front: str) -> int:
    return max(
        (int(one.removeprefix(front)) for one in marks if one.startswith(front)),
        default=0,
    )
