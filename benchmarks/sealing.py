"""What it would cost to keep the embedded log's own segments as sealed ones.

    $ python -m benchmarks.sealing
    $ python -m benchmarks.sealing --megabytes 16 --partitions 1 100

The log writes records of all partitions in the order in which they come. Then what a
tier does makes sealed segments of them, one a partition, in a folder of the same disk:
what that takes is what sealing would take, and what reads of it take is what reads
would take. CPU is that of the process, by the message; bytes are those that it gives
the kernel, by those of the messages; files are what has to be opened, and synced.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from benchmarks import table
from benchmarks.compaction import written
from benchmarks.segments import append, cpu_us, read_all
from ropeway.storage.api import Record
from ropeway.storage.file import FileLogSettings, open_log
from ropeway.storage.tiered.log import open_log as open_tier
from ropeway.storage.tiered.posix import PosixProvider
from ropeway.storage.tiered.tier_config import TieredSettings

if TYPE_CHECKING:
    from ropeway.storage.api import Log

TOPIC = "bench"
MIB = 1 << 20
HOUR_MS = 3_600_000
PARTITIONS = 1000
"""Of one topic."""
SIZE = 300
AT_ONCE = 16
"""Messages of a partition that come together."""
READ = 16
"""Partitions that are read, where there are more."""


async def measure(folder: Path, partitions: int, total: int) -> tuple[str, ...]:
    """A row of the table."""
    # All of it stays in the log's own segments, too.
    settings = FileLogSettings(segment_bytes=128 * MIB, retention_ms=None)
    files = open_log(folder / "log", settings)
    where = [
        (f"{TOPIC}-{number // PARTITIONS}", number % PARTITIONS)
        for number in range(partitions)
    ]
    for topic in {topic for topic, _ in where}:
        await files.create(topic, [number for one, number in where if one == topic])
    provider = PosixProvider(folder / "store")
    whole = TieredSettings(
        level="FORCE", commit_bytes=total, buffer_bytes=4 * total, commit_ms=HOUR_MS
    )
    tier = await open_tier(files, provider, folder / "tier", whole)
    batch = [Record(SIZE.to_bytes(4, "big") + bytes(SIZE - 4), 7, ())] * AT_ONCE
    rounds = -(-total // (SIZE * AT_ONCE * partitions))
    count = rounds * AT_ONCE * partitions
    wrote = written()

    async def fill() -> int:
        for _ in range(rounds):
            for one in where:
                await append(files.partition(*one), batch, 0)
        await files.flush()
        return count

    async def seal() -> int:
        # All that came becomes one segment a partition.
        while await tier.dispatcher.round():
            pass
        await tier.dispatch()
        return count

    appended = await cpu_us(fill)
    appended_bytes = written() - wrote
    began = time.monotonic()
    sealed = await cpu_us(seal)
    took_s = time.monotonic() - began
    sealed_bytes = written() - wrote - appended_bytes
    made = sum(1 for one in (folder / "store").rglob("*") if one.is_file())
    each = rounds * AT_ONCE
    some = where[:: max(partitions // READ, 1)]

    reads = []
    for log in (files, tier):

        async def read(log: Log = log) -> int:
            for one in some:
                await read_all(log.partition(*one), each)
            return len(some) * each

        reads.append(min([await cpu_us(read) for _ in range(3)]))
    await tier.close()
    size = count * SIZE
    return (
        f"{partitions:,}",
        f"{appended:.2f}",
        f"{sealed:.2f}",
        f"{appended_bytes / size:.2f}",
        f"{sealed_bytes / size:.2f}",
        f"{made:,}",
        f"{took_s:.1f}",
        *(f"{one:.2f}" for one in reads),
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument(
        "--partitions", type=int, nargs="+", default=[1, 8, 1000, 10_000]
    )
    given = parser.parse_args()
    rows = []
    for partitions in given.partitions:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), partitions, given.megabytes * MIB)
            rows.append(uvloop.run(found))
    headings = (
        *("partitions", "append, us", "seal, us", "bytes appended", "bytes sealed"),
        *("files", "sealing, s", "read own, us", "read sealed, us"),
    )
    print(table.circumstances())
    print(table.table(headings, rows))


if __name__ == "__main__":
    main()
