"""What is done to a compacted topic before its power is cut, and what has to be there.

A mark `sent N` promises that the last value of each key among the first N is there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.storage.file import FileLogSettings
from tests.contracts.log import TOPIC
from tests.power.recorded import mark
from tests.storage.compaction.logs import (
    SETTINGS,
    closing,
    compacted,
    partition_of,
    send,
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.compaction.log import CompactedLog

SYNC = FileLogSettings(
    segment_bytes=1 << 16, flush="sync", tail_bytes=0, retention_bytes=1
)
ROUNDS = 3
RECORDS = 12
EVERYTHING = [
    f"key-{number * 7 % 10}={number}{'x' * 2000}" for number in range(ROUNDS * RECORDS)
]


def opened(directory: Path) -> CompactedLog:
    """The log in a directory of its own, which may have to be made."""
    return compacted(directory / "data", SETTINGS, file_settings=SYNC)


async def rounds(directory: Path) -> None:
    """Compact, and have the log drop what was compacted; again and again."""
    async with closing(opened(directory)) as log:
        partition = await partition_of(log)
        for end in range(RECORDS, len(EVERYTHING) + 1, RECORDS):
            await send(partition, EVERYTHING[end - RECORDS : end])
            mark(f"sent {end}")
            await log.compact(TOPIC)
            # All that was compacted is in segments that may go now.
            log.inner._writer.roll_if_older(1 << 50, 0)
            await log.inner.expire(1 << 50)


def check(directory: Path, marks: list[str]) -> None:
    """Hold what a power cut left against the marks."""
    asyncio.run(_check(directory, marks))


async def _check(directory: Path, marks: list[str]) -> None:
    sent = max((int(one.removeprefix("sent ")) for one in marks), default=0)
    async with closing(opened(directory)) as log:
        partition = await partition_of(log)
        found = await stored(partition)
        assert all(EVERYTHING[at] == text for at, text in found.items())
        newest = {EVERYTHING[at].partition("=")[0]: at for at in range(sent)}
        # Those that were sent since may have taken the place of any.
        for key, at in newest.items():
            later = range(at, len(EVERYTHING))
            assert any(
                EVERYTHING[one].startswith(f"{key}=") and one in found for one in later
            ), f"{key} is gone"
        await log.compact(TOPIC)
