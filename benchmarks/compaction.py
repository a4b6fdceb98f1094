"""Compaction of the embedded log: MB a second of input, memory, what it writes.

Run: python -m benchmarks.compaction [--messages 1000000] [--keys 100000] [--body 900]

One partition gets messages whose keys come in random order. Then all of it is compacted
once, unthrottled, in a process of its own, so that its peak memory is compaction's. The
log is in a directory that is deleted afterwards; it needs the messages' size, and what
is left of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from ropeway.common.clock import now_ms
from ropeway.gateway.node.message_keys import MessageKeys
from ropeway.gateway.wire import message, properties
from ropeway.storage.api import Record
from ropeway.storage.compaction.compaction_config import CompactionSettings
from ropeway.storage.compaction.log import CompactedLog
from ropeway.storage.compaction.round import CompactionContext
from ropeway.storage.file import FileLogSettings, open_log

TOPIC = "table"
A_TICK = 1000
MIB = 1 << 20


def opened(directory: Path, map_bytes: int) -> CompactedLog:
    inner = open_log(
        directory / "log", FileLogSettings(retention_ms=None, in_flight_bytes=1 << 30)
    )
    settings = CompactionSettings(
        share=1.0, bytes_per_s=None, min_lag_ms=0, map_bytes=map_bytes
    )
    context = CompactionContext(settings, MessageKeys(), now_ms)
    log = CompactedLog(inner, directory / "compaction", inner.need, context)
    log.keep_last(TOPIC, compacted=True)
    return log


def records(numbers: range, keys: int, body: bytes) -> list[Record]:
    made = []
    host = message.pack_host("127.0.0.1", 9876)
    magic, name = message.topic_field(TOPIC)
    checksum = message.crc(body)
    for number in numbers:
        key = f"key-{random.randrange(keys)}"
        pairs = {properties.KEYS: key, properties.UNIQ_KEY: f"{number:032X}"}
        front = message.Front(
            *(magic, checksum, 0, 0, number, number, 0, number, host, number, host, 0)
        )
        text = properties.dump(pairs).encode()
        data = message.assemble(front, body, name, text)
        made.append(Record(data, 0, ()))
    return made


async def fill(directory: Path, messages: int, keys: int, body: bytes) -> None:
    log = opened(directory, MIB)
    await log.create(TOPIC, [0])
    partition = log.partition(TOPIC, 0)
    for begin in range(0, messages, A_TICK):
        stored = asyncio.get_running_loop().create_future()
        some = records(range(begin, min(begin + A_TICK, messages)), keys, body)
        partition.append(
            some,
            begin,
            lambda _, error, f=stored: (
                f.set_exception(error) if error else f.set_result(None)
            ),
        )
        await stored
    await log.close()


async def compact(directory: Path, map_bytes: int) -> dict[str, float]:
    log = opened(directory, map_bytes)
    log.partition(TOPIC, 0)
    idle_mib = peak_mib = memory_mib()
    written_before = written()
    longest = 0.0

    async def watch() -> None:
        nonlocal longest, peak_mib
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - began - 0.01)
            peak_mib = max(peak_mib, memory_mib())

    watching = asyncio.ensure_future(watch())
    began, cpu = time.perf_counter(), time.process_time()
    (status,) = await log.compact(TOPIC)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    watching.cancel()
    rounds = log.partition(TOPIC, 0).clean.now.generation  # type: ignore[attr-defined]
    read = log.cleaner.last
    assert read is not None
    await log.close()
    return {
        "input_mib": rounds * read.read_bytes / MIB,
        "seconds": seconds,
        "cpu_s": cpu_s,
        "rounds": rounds,
        "left": status.clean_records,
        "left_mib": status.clean_bytes / MIB,
        "written_mib": (written() - written_before) / MIB,
        "idle_mib": idle_mib,
        "peak_mib": peak_mib,
        "longest_stall_ms": longest * 1000,
    }


def memory_mib() -> float:
    """Memory of its own that this process has now, without files it has mapped."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0]) / 1024


def written() -> int:
    """Bytes that this process has given to the disk or its cache."""
    text = Path(f"/proc/{os.getpid()}/io").read_text()
    return int(text.split("wchar:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--body", type=int, default=900, help="1 KiB a message, stored")
    parser.add_argument("--map-mib", type=int, default=64)
    parser.add_argument("--directory", help="on the disk to measure")
    parser.add_argument("--compact", help=argparse.SUPPRESS)
    given = parser.parse_args()
    map_bytes = given.map_mib * MIB
    if given.compact:
        found = uvloop.run(compact(Path(given.compact), map_bytes))
        print(json.dumps(found))
        return
    random.seed(7)
    with tempfile.TemporaryDirectory(dir=given.directory) as name:
        directory = Path(name)
        body = random.randbytes(given.body)
        uvloop.run(fill(directory, given.messages, given.keys, body))
        input_mib = sum(one.stat().st_size for one in directory.glob("log/*.log")) / MIB
        command = [sys.executable, "-m", "benchmarks.compaction"]
        command += ["--compact", name, "--map-mib", str(given.map_mib)]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(output.stdout)
    input_mib = found.pop("input_mib")
    print(f"{given.messages} messages, {given.keys} keys, {input_mib:.0f} MiB")
    print(
        f"{input_mib / found['seconds']:.0f} MiB/s of input, {found['seconds']:.1f} s"
    )
    for name, value in found.items():
        print(f"{name}: {value:.1f}")


if __name__ == "__main__":
    main()
