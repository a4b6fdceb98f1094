"""CPU of Ropeway's Pulsar client and of Pulsar's own for an entry, on one broker.

    $ python -m benchmarks.pulsar_client

Prints microseconds of CPU of this process for each entry sent and received. The broker
is a Pulsar of its own on 127.0.0.1, started and stopped here.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pulsar as native
import uvloop

from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.commands import Access
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.system.pulsar import Pulsar

JAVA = ["-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=768m", "-XX:+UseG1GC"]
TOPIC = "persistent://public/bench/{}"
SIZES = {128: 20_000, 65536: 3_000}
"""Bytes of an entry, and how many are sent."""
WINDOW = 500


def report(what: str, size: int, count: int, cpu_s: float, wall_s: float) -> None:
    print(
        f"{what:24} {size:6} B  {cpu_s / count * 1e6:7.1f} us CPU"
        f"  {count / wall_s:8.0f} /s"
    )


def measured(run: Callable[[], None]) -> tuple[float, float]:
    """CPU of this process and time that something takes, in seconds."""
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu_s, time.perf_counter() - wall_s


async def send_ours(url: str, topic: str, size: int, count: int) -> None:
    client = PulsarClient(url)
    producer = await client.producer(topic, "ours", access=Access.SHARED, lost=fail)
    changed = asyncio.Event()

    def done(_where: object, error: object) -> None:
        assert error is None
        changed.set()

    payload = [bytes(size)]
    now_ms = int(time.time() * 1000)
    for number in range(count):
        while producer.pending >= WINDOW:
            changed.clear()
            await changed.wait()
        producer.send(payload, number, done, EntryMetadata(now_ms))
    while producer.pending:
        changed.clear()
        await changed.wait()
    await client.close()


async def read_ours(url: str, topic: str, count: int) -> None:
    client = PulsarClient(url)
    came = 0
    finished = asyncio.Event()

    def receive(entry) -> None:
        nonlocal came
        came += len(entry.payload) > 0
        if came == count:
            finished.set()

    await client.reader(topic, "earliest", received=receive, lost=fail, permits=count)
    await finished.wait()
    await client.close()


def send_theirs(url: str, topic: str, size: int, count: int) -> None:
    client = quiet(url)
    producer = client.create_producer(
        topic,
        batching_enabled=False,
        block_if_queue_full=True,
        max_pending_messages=WINDOW,
    )
    payload = bytes(size)
    for _ in range(count):
        producer.send_async(payload, lambda *_: None)
    producer.flush()
    client.close()


def read_theirs(url: str, topic: str, count: int) -> None:
    client = quiet(url)
    reader = client.create_reader(topic, native.MessageId.earliest)
    for _ in range(count):
        assert reader.read_next(60_000).data()
    client.close()


def quiet(url: str) -> native.Client:
    return native.Client(url, logger=native.ConsoleLogger(native.LoggerLevel.Error))


def fail(error: Exception) -> None:
    raise error


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ropeway-") as folder:
        server = Pulsar(Path(folder), java=JAVA)
        try:
            server.start()
            server.make_namespace("public/bench")
            compare(server.service_url)
        finally:
            server.kill()


def compare(url: str) -> None:
    for size, count in SIZES.items():
        ours, theirs = TOPIC.format(f"ours-{size}"), TOPIC.format(f"theirs-{size}")
        runs: dict[str, Callable[[], None]] = {
            "Ropeway sends": partial(in_loop, send_ours, url, ours, size, count),
            "pulsar-client sends": partial(send_theirs, url, theirs, size, count),
            "Ropeway receives": partial(in_loop, read_ours, url, ours, count),
            "pulsar-client receives": partial(read_theirs, url, theirs, count),
        }
        for what, run in runs.items():
            report(what, size, count, *measured(run))


def in_loop(program: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
    uvloop.run(program(*args))


if __name__ == "__main__":
    main()
