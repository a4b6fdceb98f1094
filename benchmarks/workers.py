"""What a second worker brings: messages a second and server CPU a message, 1 against 2.

    $ python benchmarks/workers.py
    $ python benchmarks/workers.py --seconds 1 --rounds 3

Each worker has a load generator (`load.c`) of its own. They share the machine's cores
with the workers: where there are not two for each worker, messages a second say little,
and CPU a message, of the workers without their supervisor, is the figure to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remoting import HERE, STOP_S, Server, build, cache, load

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADS = (
    "send size=128 connections=64",
    "send size=128 window=256",
)


@contextmanager
def serving(workers: int) -> Iterator[list[Server]]:
    """So many workers, with empty logs on a disk."""
    with tempfile.TemporaryDirectory(dir=cache()) as data:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gateway.cli.main", "serve", "--data", data),
                *("--listen", "127.0.0.1:0", "--workers", str(workers)),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE.parent)},
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
                Server(f"broker-{number}", port, pid(data, number), "async")
                for number, port in enumerate(ports)
            ]
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)


def pid(data: str, number: int) -> int:
    """The process that has a worker's log."""
    return int(Path(data, f"broker-{number}", "log", "lock").read_text())


def measure(program: Path, servers: list[Server], what: str) -> tuple[float, float]:
    """Load all at the same time: messages a second, CPU microseconds a message."""
    before = sum(one.cpu_s() for one in servers)
    # A topic for each worker: one that all share needs an administrator.
    loads = [
        subprocess.Popen(
            [program, str(one.port), *what.split(), f"topic=bench-{one.name}"],
            stdout=subprocess.PIPE,
        )
        for one in servers
    ]
    reports = [json.loads(one.communicate()[0]) for one in loads]
    cpu_us = (sum(one.cpu_s() for one in servers) - before) * 1e6
    messages = sum(one["messages"] for one in reports)
    return messages / max(one["seconds"] for one in reports), cpu_us / messages


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="a load and round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    program = build()
    print(f"{os.cpu_count()} cores")
    print("| load | workers | messages/s | us CPU/message |")
    print("| --- | ---: | ---: | ---: |")
    with serving(1) as one, serving(2) as two:
        for what in LOADS:
            results: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
            for server in [*one, *two]:
                load(program, server, f"{what} ms=500 topic=bench-{server.name}")
            for _ in range(given.rounds):
                for servers in (one, two):
                    done = measure(
                        program, servers, f"{what} ms={given.seconds * 1000:.0f}"
                    )
                    results[len(servers)].append(done)
            for count, rounds in results.items():
                rate, cpu_us = map(statistics.median, zip(*rounds, strict=True))
                print(f"| {what} | {count} | {rate:,.0f} | {cpu_us:.1f} |")


if __name__ == "__main__":
    main()
