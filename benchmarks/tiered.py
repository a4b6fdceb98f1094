"""What a tier costs: appends with and without it, cold reads beside the provider alone.

Appends: a log alone, and the same log while its tier uploads to a directory, in turns;
both at full speed on one event loop, so that what the tier takes shows in full.
Reads: all of a partition that only the tier has, and the same objects got from the
provider by themselves, in blocks, with as many requests at a time. With `--s3` they are
from an S3 server in a process of its own (moto, in Python: a lower bound).

Run: python -m benchmarks.tiered [--megabytes 512] [--rounds 3] [--compression zstd]
     python -m benchmarks.tiered --s3 --megabytes 64
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import struct
import tempfile
import time
from collections import deque
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from ropeway.storage.api import Record
from ropeway.storage.file import FileLogSettings, open_log
from ropeway.storage.tiered.log import open_log as open_tier
from ropeway.storage.tiered.objects import open_provider
from ropeway.storage.tiered.posix import PosixProvider
from ropeway.storage.tiered.tier_config import BLOCK_BYTES, TieredSettings
from tests.storage.tiered import s3

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Log, Partition
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.log import TieredLog

TOPIC = "bench"
PARTITIONS = 8
SMALL = FileLogSettings(segment_bytes=4 << 20)
"""Of the log that drops what the tier has: in small files, so that little stays."""
A_TICK = 64
"""Appends of one message each that wait for each other, as 64 producers would."""


def record(size: int) -> Record:
    return Record(struct.pack(">i", size) + bytes(size - 4), 7, ("0123456789ABCDEF",))


async def append(log: Log, size: int, total: int) -> float:
    """Append so many bytes, 64 messages a tick; seconds that it took."""
    partitions = [log.partition(TOPIC, number) for number in range(PARTITIONS)]
    one = [record(size)]
    loop = asyncio.get_running_loop()
    start = time.monotonic()
    for _ in range(total // (size * A_TICK)):
        last = loop.create_future()
        waiting = A_TICK

        def done(_offset: int, error: Exception | None) -> None:
            nonlocal waiting
            assert error is None
            waiting -= 1
            if not waiting:
                last.set_result(None)  # noqa: B023 - called before the next one is made

        for number in range(A_TICK):
            partitions[number % PARTITIONS].append(one, 1_700_000_000_000, done)
        await last
    return time.monotonic() - start


async def appends(
    directory: Path, size: int, total: int, settings: TieredSettings
) -> None:
    """Alternate between a log alone and one with a tier; the median of both."""
    rates: dict[str, list[float]] = {"log": [], "log and tier": []}
    cpu_us: dict[str, list[float]] = {"log": [], "log and tier": []}
    for number in range(2 * ROUNDS):
        name = ["log", "log and tier"][number % 2]
        at = directory / f"{size}-{number}"
        files = open_log(at / "log", FileLogSettings())
        await files.create(TOPIC, range(PARTITIONS))
        log: Log = files
        tier: TieredLog | None = None
        if name != "log":
            provider = PosixProvider(at / "store")
            log = tier = await open_tier(files, provider, at / "tier", settings)
            tier.start()
        cpu = time.process_time()
        took = await append(log, size, total)
        rates[name].append(total / size / took)
        if tier is not None:
            uploaded = tier.tier_index.uploaded_bytes
            print(f"  {uploaded >> 20} of {total >> 20} MiB were uploaded meanwhile")
            await tier.dispatch()
        cpu_us[name].append((time.process_time() - cpu) / (total / size) * 1e6)
        await log.close()
    alone, both = (statistics.median(some) for some in rates.values())
    print(
        f"appends of {size:5} B: {alone:9.0f}/s alone, {both:9.0f}/s with a tier: "
        f"{(1 - both / alone) * 100:5.1f} % less"
    )
    alone, both = (statistics.median(some) for some in cpu_us.values())
    print(
        f"  CPU microseconds a message, uploads to their end: {alone:.2f} alone, "
        f"{both:.2f} with a tier: {both - alone:.2f} more"
    )


async def read_all(partition: Partition, end: int) -> int:
    """Read a partition as a consumer does; bytes."""
    offset = got = 0
    while offset < end:
        chunk = partition.read_now(offset, 32, 1 << 20)
        if chunk is None:
            chunk = await partition.read(offset, 32, 1 << 20)
        got += sum(map(len, chunk.data))
        offset = chunk.next_offset
    return got


async def get_all(provider: Provider, at_a_time: int) -> int:
    """Get all data objects, a block a request; bytes."""
    wanted = deque(
        (name, place)
        for name, size in sorted([one async for one in provider.names("")])
        if name.endswith("data")
        for place in range(0, size, BLOCK_BYTES)
    )
    got = 0

    async def some() -> None:
        nonlocal got
        while wanted:
            name, place = wanted.popleft()
            got += len(await provider.get(name, place, BLOCK_BYTES))

    await asyncio.gather(*(some() for _ in range(at_a_time)))
    return got


async def reads(
    directory: Path,
    size: int,
    total: int,
    settings: TieredSettings,
    open_provider: Callable[[Path], Provider],
) -> None:
    """A partition that only the tier has, read by one consumer."""
    at = directory / f"read-{size}"
    files = open_log(at / "log", SMALL)
    await files.create(TOPIC, range(PARTITIONS))
    provider = open_provider(at / "store")
    tier = await open_tier(files, provider, at / "tier", settings)
    one = [record(size)] * 64
    partition = tier.partition(TOPIC, 0)
    for _ in range(total // (size * len(one))):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        partition.append(one, 0, lambda *_: future.set_result(None))  # noqa: B023 - likewise
        await future
    await files.flush()
    start = time.monotonic()
    await tier.dispatch()
    uploaded = tier.tier_index.uploaded_bytes / (time.monotonic() - start) / 1e6
    await files.expire(1 << 50, tier.dispatcher.safe_position)
    end = files.partition(TOPIC, 0).first
    rates: dict[str, list[float]] = {"provider": [], "consumer": []}
    for _ in range(ROUNDS):
        start = time.monotonic()
        got = await get_all(provider, settings.fetches)
        rates["provider"].append(got / (time.monotonic() - start))
        await tier.close()
        files = open_log(at / "log", SMALL)
        provider = open_provider(at / "store")
        tier = await open_tier(files, provider, at / "tier", settings)
        start = time.monotonic()
        got = await read_all(tier.partition(TOPIC, 0), end)
        rates["consumer"].append(got / (time.monotonic() - start))
    await tier.close()
    own, read = (statistics.median(some) / 1e6 for some in rates.values())
    print(
        f"{size:5} B: uploads {uploaded:7.0f} MB/s; cold reads {read:7.0f} MB/s of "
        f"messages, the provider alone "
        f"{own:7.0f} MB/s of objects: {read / own * 100:5.1f} %"
    )


def s3_provider(url: str, _: Path) -> Provider:
    """A bucket, whatever the directory."""
    return open_provider(url)


async def main(megabytes: int, settings: TieredSettings, address: str | None) -> None:
    build = Path.cwd() / "build"
    build.mkdir(exist_ok=True)
    for size in (300, 1024, 4096):
        with tempfile.TemporaryDirectory(dir=build) as directory:
            at, total = Path(directory), megabytes << 20
            if address is None:
                await appends(at, size, total, settings)
                await reads(at, size, total, settings, PosixProvider)
            else:
                in_bucket = partial(s3_provider, s3.url(address, f"{size}"))
                await reads(at, size, total, settings, in_bucket)


ROUNDS = 3

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compression", choices=["none", "zstd"], default="none")
    parser.add_argument("--s3", action="store_true")
    given = parser.parse_args()
    ROUNDS = given.rounds
    chosen = TieredSettings(compression=given.compression)
    with ExitStack() as stack:
        where = None
        if given.s3:
            os.environ.update(s3.CREDENTIALS)
            logs = stack.enter_context(tempfile.TemporaryDirectory())
            where = stack.enter_context(s3.server(Path(logs)))
        uvloop.run(main(given.megabytes, chosen, where))
