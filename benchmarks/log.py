"""What the embedded log costs without a network: CPU microseconds an append, a read.

Run: python -m benchmarks.log [--seconds 1]
"""

from __future__ import annotations

import argparse
import asyncio
import struct
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from ropeway.storage.api import Record
from ropeway.storage.file import FileLogSettings, open_log

if TYPE_CHECKING:
    from ropeway.storage.api import LogError
    from ropeway.storage.file import FileLog
    from ropeway.storage.file.partition import FilePartition

SINGLES = 64
BATCH = 100
READ = 32


def record(size: int) -> Record:
    return Record(struct.pack(">i", size) + bytes(size - 4), 7, ("0123456789ABCDEF",))


class Appender:
    """Appends `a_tick` times, and again when all of them are done."""

    def __init__(
        self,
        partitions: list[FilePartition],
        records: list[Record],
        a_tick: int,
        until: float,
    ) -> None:
        self.partitions = partitions
        self.records = records
        self.a_tick = a_tick
        self.until = until
        self.waiting = 0
        self.appends = 0
        self.ended = asyncio.get_running_loop().create_future()

    def go(self) -> None:
        self.waiting = self.a_tick
        partitions = self.partitions
        for number in range(self.a_tick):
            partition = partitions[number % len(partitions)]
            partition.append(self.records, 1_700_000_000_000, self.done)

    def done(self, _offset: int, error: LogError | None) -> None:
        if error is not None:
            raise error
        self.appends += 1
        self.waiting -= 1
        if not self.waiting:
            if time.monotonic() < self.until:
                self.go()
            else:
                self.ended.set_result(None)


async def appends(
    log: FileLog, name: str, records: list[Record], a_tick: int, seconds: float
) -> None:
    await log.create("bench", range(16))
    partitions = [log.partition("bench", number) for number in range(16)]
    appender = Appender(partitions, records, a_tick, time.monotonic() + seconds)
    cpu, start = time.process_time(), time.monotonic()
    appender.go()
    await appender.ended
    cpu, took = time.process_time() - cpu, time.monotonic() - start
    print(
        f"{name:42} {cpu / appender.appends * 1e6:8.2f} us CPU/append "
        f"{appender.appends / took:10.0f} appends/s"
    )


async def reads(log: FileLog, name: str, seconds: float) -> None:
    partition = log.partition("bench", 0)
    first = max(partition.first, partition.end - 20 * READ)
    count = 0
    cpu, until = time.process_time(), time.monotonic() + seconds
    while not count or time.monotonic() < until:
        offset = first
        while offset < partition.end:
            chunk = partition.read_now(offset, READ, 1 << 20)
            if chunk is None:
                chunk = await partition.read(offset, READ, 1 << 20)
            offset = chunk.next_offset
            count += 1
    cpu = time.process_time() - cpu
    print(f"{name:42} {cpu / count * 1e6:8.2f} us CPU/read of {READ}")


async def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd() / "build") as directory:
        for flush in ("async", "sync"):
            for name, size, batch, a_tick in (
                ("singles of 300 B, 64 a tick", 300, 1, SINGLES),
                ("batches of 100 x 1 KiB, 1 a tick", 1024, BATCH, 1),
            ):
                path = Path(directory) / f"{flush}-{batch}"
                log = open_log(path, FileLogSettings(flush=flush))
                records = [record(size)] * batch
                await appends(log, f"{flush}: {name}", records, a_tick, seconds)
                await reads(log, f"  read_now from the tail, {name[:7]}", seconds / 4)
                await log.close()
                log = open_log(path, FileLogSettings(flush=flush, tail_bytes=0))
                await reads(log, f"  from the page cache, {name[:7]}", seconds / 4)
                await log.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    Path("build").mkdir(exist_ok=True)
    uvloop.run(main(parser.parse_args().seconds))
