"""What tiers and compacted topics cost, in CPU, without sockets; as JSON.

    $ python -P benchmarks/segments.py
    $ PYTHONPATH=EARLIER python -P benchmarks/segments.py --only tier

It imports the package alone, so that an earlier version's can be in its place:
`benchmarks.earlier` holds the two against each other. Every figure is the least of a
few, in microseconds of the whole process, kernel included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import struct
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from ropeway.common.clock import now_ms
from ropeway.gateway.node.message_keys import MessageKeys
from ropeway.gateway.wire import message, properties
from ropeway.storage.api import Filter, Record
from ropeway.storage.compaction.compaction_config import CompactionSettings
from ropeway.storage.compaction.log import CompactedLog
from ropeway.storage.compaction.round import CompactionContext
from ropeway.storage.file import FileLogSettings, open_log
from ropeway.storage.tiered.log import open_log as open_tier
from ropeway.storage.tiered.posix import PosixProvider
from ropeway.storage.tiered.tier_config import TieredSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.api import Partition
    from ropeway.storage.tiered.log import TieredLog

TOPIC = "bench"
SMALL = FileLogSettings(segment_bytes=4 << 20)
TIER_BYTES = 48 << 20
ROUNDS = 5
LOOKS = 2000
MESSAGES = 40_000
KEYS = 8000
BATCH = 500
Figures = dict[str, float]


async def cpu_us(work: Callable[[], Awaitable[int]]) -> float:
    """CPU of one of so many things as `work` says that it has done."""
    before = time.process_time()
    count = await work()
    return (time.process_time() - before) / count * 1e6


async def append(partition: Partition, some: list[Record], store_ms: int) -> None:
    """Append, and wait until it is done."""
    done = asyncio.get_running_loop().create_future()
    partition.append(some, store_ms, lambda *_: done.set_result(None))
    await done


async def read_all(partition: Partition, end: int, wanted: Filter | None = None) -> int:
    """Read as a consumer does; how many offsets it went over."""
    offset = 0
    while offset < end:
        chunk = partition.read_now(offset, 32, 1 << 20, wanted)
        if chunk is None:
            chunk = await partition.read(offset, 32, 1 << 20, wanted)
        sum(map(len, chunk.data))
        offset = chunk.next_offset
    return end


async def of_tier(folder: Path, size: int, rounds: int, *, more: bool) -> Figures:
    """Messages of a size that only the tier has."""

    async def opened() -> TieredLog:
        files = open_log(folder / "log", SMALL)
        await files.create(TOPIC, [0])
        provider = PosixProvider(folder / "store")
        return await open_tier(files, provider, folder / "tier", TieredSettings())

    tier = await opened()
    body = struct.pack(">i", size) + bytes(size - 4)
    # One of four has the tag that is asked for.
    batch = [Record(body, at % 4, ()) for at in range(64)]
    ticks = TIER_BYTES // (size * len(batch))
    for tick in range(ticks):
        await append(tier.partition(TOPIC, 0), batch, tick)
    await tier.inner.flush()
    name = f"{size} B"

    async def upload() -> int:
        await tier.dispatch()
        return ticks * len(batch)

    figures = {f"upload to a tier, {name}": await cpu_us(upload)}
    await tier.inner.expire(1 << 50, tier.dispatcher.safe_position)  # type: ignore[attr-defined]
    end = tier.inner.partition(TOPIC, 0).first
    await tier.close()

    async def cold(wanted: Filter | None = None) -> float:
        log = await opened()
        found = await cpu_us(lambda: read_all(log.partition(TOPIC, 0), end, wanted))
        await log.close()
        return found

    reads = [await cold() for _ in range(rounds)]
    figures[f"cold read from a tier, {name}"] = min(reads)
    if more:
        tagged = Filter(frozenset([1]))
        figures[f"cold read with a tag, {name}"] = min(
            [await cold(tagged) for _ in range(rounds)]
        )
        log = await opened()
        times = [random.randrange(end // len(batch)) for _ in range(LOOKS)]

        async def look() -> int:
            for time_ms in times:
                await log.partition(TOPIC, 0).offset_at(time_ms)
            return LOOKS

        await look()
        looks = [await cpu_us(look) for _ in range(rounds)]
        figures["offset by time in a tier"] = min(looks)
        await log.close()
    return figures


def keyed(numbers: range) -> list[Record]:
    """Messages with keys that come in any order."""
    host, body = message.pack_host("127.0.0.1", 9876), bytes(300)
    magic, name = message.topic_field(TOPIC)
    checksum = message.crc(body)
    made = []
    for number in numbers:
        pairs = {
            properties.KEYS: f"key-{random.randrange(KEYS)}",
            properties.UNIQ_KEY: f"{number:032X}",
        }
        front = message.Front(
            *(magic, checksum, 0, 0, number, number, 0, number, host, number, host, 0)
        )
        data = message.assemble(front, body, name, properties.dump(pairs).encode())
        made.append(Record(data, number % 4, ()))
    return made


async def of_compaction(folder: Path, rounds: int) -> Figures:
    """Two rounds of compaction, and reads of what is left."""
    inner = open_log(folder / "log", FileLogSettings(retention_ms=None))
    settings = CompactionSettings(share=1.0, bytes_per_s=None, min_lag_ms=0)
    context = CompactionContext(settings, MessageKeys(), now_ms)
    log = CompactedLog(inner, folder / "compaction", inner.need, context)
    log.keep_last(TOPIC, compacted=True)
    await log.create(TOPIC, [0])
    partition = log.partition(TOPIC, 0)

    async def compact() -> int:
        await log.compact(TOPIC)
        return MESSAGES

    figures: Figures = {}
    for number, name in enumerate(("first", "second")):
        first = number * MESSAGES
        for at in range(first, first + MESSAGES, BATCH):
            await append(partition, keyed(range(at, at + BATCH)), at)
        figures[f"{name} round of compaction, a message"] = await cpu_us(compact)
    end = partition.end

    async def read() -> int:
        await read_all(partition, end)
        return KEYS

    async def read_by_thread() -> int:
        offset = 0
        while offset < end:
            offset = (await partition.read(offset, 32, 1 << 20)).next_offset
        return KEYS

    times = [random.randrange(2 * MESSAGES) for _ in range(LOOKS)]

    async def look() -> int:
        for time_ms in times:
            await partition.offset_at(time_ms)
        return LOOKS

    for name, work in (
        ("compacted records, read at once, a record", read),
        ("compacted records, read by a thread, a record", read_by_thread),
        ("offset by time among compacted records", look),
    ):
        figures[name] = min([await cpu_us(work) for _ in range(rounds)])
    await log.close()
    return figures


async def main(only: str, rounds: int) -> Figures:
    """All figures, or those of one part."""
    random.seed(20)
    figures: Figures = {}
    for _ in range(rounds):
        # Uploads and rounds of compaction are done once in a folder.
        with tempfile.TemporaryDirectory() as folder:
            found: Figures = {}
            if only != "compaction":
                found |= await of_tier(Path(folder, "small"), 300, rounds, more=True)
                found |= await of_tier(Path(folder, "large"), 1024, rounds, more=False)
            if only != "tier":
                found |= await of_compaction(Path(folder, "compacted"), rounds)
        figures = {
            name: min(figure, figures.get(name, figure))
            for name, figure in found.items()
        }
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["all", "tier", "compaction"], default="all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the least counts")
    given = parser.parse_args()
    print(json.dumps(uvloop.run(main(given.only, given.rounds))))
