"""What Ropeway does with more than it can take, with slow readers, and a slow disk.

    $ python -m benchmarks.overload
    $ python -m benchmarks.overload --seconds 1 --markdown

It starts Ropeway, finds out how many sends a second it takes, and offers it 0.5, 1 and
2 times as many: an open load, which does not wait for answers. Then it offers half
again, at once, and looks how long it takes until sends notice nothing any more: until
of 100 sends 99 are accepted within 200 ms. Slow readers are connections, one for ten
senders, that pull 4 MiB again and again and never read. On the slow disk each write
and each sync takes half a second longer.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.offering import Load, Outcome, Phase, pull

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
CONNECTIONS = 64
SLOW_READERS = 6
BODY_BYTES = 1024
IN_FLIGHT = 2048
"""Sends that wait for an answer when finding out what it takes."""
PULLS = 64
SLOW_MS = 500
WARM_S = 1.0
CALM_S = 2.0
"""For so long half is offered afterwards."""
STOP_S = 30
HEADINGS = [
    *("load", "offered/s", "accepted/s", "refused", "p50 ms", "p99 ms", "max ms"),
    *("others p50 ms", "others max ms", "RSS MiB", "recovers in s"),
]


class Server(NamedTuple):
    """Ropeway, running."""

    port: int
    pid: int
    slow_disk: Path
    """While this file is there, its disk is slow."""

    def rss_mib(self) -> int:
        """Memory that it has now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s*(\d+) kB", status)
        return int(found[1]) // 1024 if found else 0


@contextmanager
def started(*words: str | Path) -> Iterator[tuple[int, int]]:
    """A module that becomes Ropeway, until the end of a block; its port and process."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words, "--listen", "127.0.0.1:0"],
        cwd=HERE.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"127\.0\.0\.1:(\d+)", line):
                yield int(found[1]), process.pid
                break
        else:
            raise SystemExit("Ropeway has not started")
    finally:
        process.terminate()
        process.communicate(timeout=STOP_S)


@contextmanager
def serving(flush: str, directory: str | None) -> Iterator[Server]:
    """Ropeway on a free port, with an empty log, and a disk that can be slowed."""
    with tempfile.TemporaryDirectory(dir=directory) as data:
        slow = Path(data) / "slow"
        words = "benchmarks.slow_disk", slow, str(SLOW_MS), "serve"
        with started(*words, "--data", f"{data}/node", "--flush", flush) as (port, pid):
            yield Server(port, pid, slow)


@contextmanager
def loading(server: Server) -> Iterator[Load]:
    """Connections that are warm, and a topic."""
    load = Load(server.port, CONNECTIONS, BODY_BYTES)
    try:
        load.offer(Phase(2000, WARM_S), in_flight=1)
        load.offer(Phase(1e6, WARM_S), in_flight=IN_FLIGHT)
        yield load
    finally:
        load.close()


@contextmanager
def slow_readers(server: Server) -> Iterator[None]:
    """Connections that ask for much and read nothing."""
    lazy = [
        socket.create_connection(("127.0.0.1", server.port))
        for _ in range(SLOW_READERS)
    ]
    for one in lazy:
        one.sendall(pull(0, count=1024) * PULLS)
    try:
        yield
    finally:
        for one in lazy:
            one.close()


def capacity(load: Load, seconds: float) -> float:
    """Sends a second that it takes when no more are in flight than it can hold."""
    (outcome,) = load.offer(Phase(1e6, seconds), in_flight=IN_FLIGHT)
    return len(outcome.accepted_s) / seconds


def row(name: str, outcome: Outcome, phase: Phase, *more: str) -> list[str]:
    """A row of the table."""
    return [
        name,
        f"{outcome.offered / phase.seconds:,.0f}",
        f"{len(outcome.accepted_s) / phase.seconds:,.0f}",
        f"{(outcome.refused + outcome.failed) / max(outcome.offered, 1):.0%}",
        *(_ms(outcome.accepted_s, part) for part in (0.5, 0.99, 1)),
        *(_ms(outcome.others_s, part) for part in (0.5, 1)),
        *more,
    ]


def _ms(ascending_s: list[float], part: float) -> str:
    if not ascending_s:
        return "-"
    at = min(int(len(ascending_s) * part), len(ascending_s) - 1)
    return f"{ascending_s[at] * 1000:,.1f}"


def overload(
    server: Server, load: Load, rate: float, seconds: float, name: str
) -> Iterator[list[str]]:
    """Half, all, and twice of what it can take; and half again."""
    for times in (0.5, 1, 2):
        phase, after = Phase(rate * times, seconds), Phase(rate / 2, CALM_S)
        outcome, calm = load.offer(phase, after)
        yield row(
            f"{name}, {times} x",
            outcome,
            phase,
            f"{server.rss_mib()}",
            f"{calm.calm_after_s:.1f}",
        )


def slow_disk(
    server: Server, load: Load, rate: float, seconds: float, name: str
) -> Iterator[list[str]]:
    """Half of what it can take, while the disk is slow."""
    phase = Phase(rate / 2, seconds)
    server.slow_disk.touch()
    (outcome,) = load.offer(phase)
    rss_mib = server.rss_mib()
    server.slow_disk.unlink()
    (calm,) = load.offer(Phase(rate / 2, CALM_S))
    yield row(name, outcome, phase, f"{rss_mib}", f"{calm.calm_after_s:.1f}")


def table(seconds: float, directory: str | None) -> Iterator[list[str]]:
    """Every row."""
    with serving("async", directory) as server, loading(server) as load:
        rate = capacity(load, seconds)
        yield from overload(server, load, rate, seconds, "sends")
        with slow_readers(server):
            yield from overload(server, load, rate, seconds, "with slow readers")
        yield from slow_disk(server, load, rate, seconds, "slow disk, async, 0.5 x")
    with serving("sync", directory) as server, loading(server) as load:
        rate = capacity(load, seconds)
        yield from overload(server, load, rate, seconds, "sync flush")
        yield from slow_disk(server, load, rate, seconds, "slow disk, sync, 0.5 x")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load")
    parser.add_argument("--directory", help="where the logs go, on the disk to measure")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if given.markdown:
        print(f"| {' | '.join(HEADINGS)} |\n|---|{'---:|' * (len(HEADINGS) - 1)}")
    else:
        print("  ".join(HEADINGS))
    for cells in table(given.seconds, given.directory):
        print(
            f"| {' | '.join(cells)} |" if given.markdown else "  ".join(cells),
            flush=True,
        )


if __name__ == "__main__":
    main()
