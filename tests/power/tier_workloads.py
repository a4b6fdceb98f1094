"""What is done to a log with a tier before its power is cut, and what has to be there.

A mark `there N` promises all before offset N, on whichever side it is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.storage.file import FileLogSettings
from ropeway.storage.tiered.posix import PosixProvider
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.power.recorded import mark
from tests.storage.tiered.tiers import QUICK, tiered

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.tiered.log import TieredLog

SYNC = FileLogSettings(
    segment_bytes=1 << 16, flush="sync", tail_bytes=0, retention_bytes=1
)
SETTINGS = msgspec.structs.replace(QUICK, commit_records=2, merge_count=2, uploads=1)


async def opened(directory: Path) -> TieredLog:
    """The log, its tier being a directory beside it; both may have to be made."""
    provider = PosixProvider(directory / "far" / "tier")
    return await tiered(directory / "data", provider, SETTINGS, files=SYNC)


async def uploads(directory: Path) -> None:
    """Upload, and have the log drop what is in the tier; again and again."""
    log = await opened(directory)
    await log.create(TOPIC, [0])
    partition = log.partition(TOPIC, 0)
    for _ in range(2):
        for _ in range(4):
            text = f"{partition.next_offset}-{'x' * 2000}"
            await begin(partition, record(text))
            mark(f"there {partition.end}")
        await log.dispatch()
        await log.merge()
        log.inner._writer.roll_if_older(1 << 50, 0)
        await log.inner.expire(1 << 50, log.dispatcher.safe_position)
    await log.close()


def check(directory: Path, marks: list[str]) -> None:
    """Hold what a power cut left against the marks."""
    asyncio.run(_check(directory, marks))


async def _check(directory: Path, marks: list[str]) -> None:
    there = max((int(one.removeprefix("there ")) for one in marks), default=0)
    log = await opened(directory)
    try:
        if TOPIC not in log.topics():
            assert not there, "the topic is gone"
            return
        partition = log.partition(TOPIC, 0)
        assert (partition.first, partition.end >= there) == (0, True)
        found = [text.partition("-")[0] for text in await read_all(partition)]
        assert found == [f"{offset}" for offset in range(partition.end)]
        await log.dispatch()
    finally:
        await log.close()
