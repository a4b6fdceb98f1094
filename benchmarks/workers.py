"""What a second worker brings: messages a second and server CPU a message, 1 against 2.

    $ python -m benchmarks.workers
    $ python -m benchmarks.workers --seconds 1 --rounds 3

Each worker has a load generator (`load.c`) of its own. They share the machine's cores
with the workers: where there are not two for each worker, messages a second say little,
and CPU a message, of the workers without their supervisor, is the figure to look at.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import counters, load
from tests import builds

if TYPE_CHECKING:
    from collections.abc import Iterator

STOP_S = 30
LOADS = (
    "send size=128 connections=64",
    "send size=128 window=256",
)


class Worker(NamedTuple):
    """A worker that runs."""

    name: str
    port: int
    pid: int


@contextmanager
def serving(workers: int) -> Iterator[list[Worker]]:
    """So many workers, with empty logs on a disk."""
    builds.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=builds.cache(), prefix="bench-") as data:
        process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "ropeway.gateway.cli.main",
                    "serve",
                    "--data",
                    data,
                ),
                *("--listen", "127.0.0.1:0", "--workers", str(workers)),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
        )
        assert process.stdout is not None
        try:
            ports: list[int] = []
            while len(ports) < workers:
                line = process.stdout.readline()
                if not line:
                    raise SystemExit("Ropeway has not started")
                ports += map(int, re.findall(r"listening on 127\.0\.0\.1:(\d+)", line))
            yield [
                Worker(f"broker-{number}", port, pid(data, number))
                for number, port in enumerate(ports)
            ]
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)


def pid(data: str, number: int) -> int:
    """The process that has a worker's log."""
    return int(Path(data, f"broker-{number}", "log", "lock").read_text())


def measure(workers: list[Worker], what: str) -> tuple[float, float]:
    """Load all at the same time: messages a second, CPU microseconds a message."""
    before = sum(counters.cpu_s(one.pid) for one in workers)
    # A topic for each worker: one that all share needs an administrator.
    loads = [
        load.Running("load", one.port, f"{what} topic=bench-{one.name}")
        for one in workers
    ]
    reports = [one.report() for one in loads]
    cpu_us = (sum(counters.cpu_s(one.pid) for one in workers) - before) * 1e6
    messages = sum(one.messages for one in reports)
    return messages / max(one.seconds for one in reports), cpu_us / messages


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="a load and round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores")
    print("| load | workers | messages/s | us CPU/message |")
    print("| --- | ---: | ---: | ---: |")
    with serving(1) as one, serving(2) as two:
        for what in LOADS:
            results: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
            timed = f"{what} ms={given.seconds * 1000:.0f}"
            for workers in (one, two):
                measure(workers, timed)  # warms up
            for _ in range(given.rounds):
                for workers in (one, two):
                    results[len(workers)].append(measure(workers, timed))
            for count, rounds in results.items():
                rate, cpu_us = map(statistics.median, zip(*rounds, strict=True))
                print(f"| {what} | {count} | {rate:,.0f} | {cpu_us:.1f} |")


if __name__ == "__main__":
    main()
