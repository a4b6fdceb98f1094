"""What growth costs Ropeway: queues, connections, stored messages, consumer groups.

    $ python -m benchmarks.growth
    $ python -m benchmarks.growth --write
    $ python -m benchmarks.growth --rounds 1 --seconds 0.5 --most 10000 queues groups

Each kind of growth is measured at several sizes, in turns, each size on a server of its
own; CPU and waiting are compared with those of the smallest size in the same round.
`--most` leaves out what is larger. Words select kinds.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import servers, table
from benchmarks.growing import KINDS, Figures, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.servers import Server

MOST_RATIO = 1.3
"""Of CPU a message, to the smallest size."""
MOST_START_S = 5.0
FILES = 25_000
"""File descriptors of the server and of the load: 10,000 connections, and room."""
WARM_PART = 4
"""The warm-up takes a part of a work's time."""
HEADINGS = (
    *("growth", "work", "size", "us CPU", "CPU to the smallest", "target"),
    *("p50 / p99 us", "p50 to the smallest", "start after kill, s"),
)


class Place(NamedTuple):
    """One size of one kind of growth."""

    kind: Kind
    size: int


Found = dict[tuple[Place, str], list["Figures"]]


def measure(given: argparse.Namespace, kind: Kind) -> tuple[Found, dict[Place, float]]:
    """All sizes of one kind, in turns; and the starts after a kill."""
    found: Found = {}
    starts: dict[Place, float] = {}
    with ExitStack() as stack:
        grown: dict[Place, Server] = {}
        for size in kind.sizes:
            if size <= given.most:
                place = Place(kind, size)
                server = stack.enter_context(servers.running(servers.ropeway))
                kind.grow(server, size)
                if kind.restarts:
                    starts[place] = restart(server)
                    say(place, f"start after a kill {starts[place]:.2f} s")
                grown[place] = server
        for place, server in grown.items():
            list(kind.work(server, place.size, given.seconds / WARM_PART))
        for _ in range(given.rounds):
            for place, server in grown.items():
                with server.alone(list(grown.values())):
                    for work, figures in kind.work(server, place.size, given.seconds):
                        found.setdefault((place, work), []).append(figures)
                        say(place, f"{work} {figures.cpu_us:.2f} us CPU")
    return found, starts


def restart(server: Server) -> float:
    """Kill it as `kill -9` does, and start it with what it has; returns the seconds."""
    server.started.kill()
    began = time.monotonic()
    server.started.start()
    return time.monotonic() - began


def say(place: Place, text: str) -> None:
    """Say what was measured; a run takes minutes."""
    print(
        f"{time.strftime('%H:%M:%S')} {place.size:,} {place.kind.name}: {text}",
        file=sys.stderr,
    )


def rows(found: Found, starts: dict[Place, float]) -> Iterator[list[str]]:
    """The table's rows, the sizes of one work one below the other."""
    smallest: dict[str, list[Figures]] = {}
    for (place, work), figures in sorted(found.items(), key=lambda item: item[0][1]):
        first = smallest.setdefault(work, figures)
        cpu = _ratios([one.cpu_us for one in figures], [one.cpu_us for one in first])
        p50 = _ratios([one.p50_us for one in figures], [one.p50_us for one in first])
        start = starts.get(place)
        middle = Figures(*map(statistics.median, zip(*figures, strict=True)))
        yield [
            place.kind.name,
            work,
            f"{place.size:,}",
            f"{middle.cpu_us:.2f}",
            table.spread(cpu),
            table.at_most(None if figures is first else MOST_RATIO, cpu),
            f"{middle.p50_us:,.0f} / {middle.p99_us:,.0f}",
            table.spread(p50),
            "-" if start is None else f"{start:.2f}",
        ]


def _ratios(these: list[float], those: list[float]) -> list[float]:
    return [this / that for this, that in zip(these, those, strict=True)]


def report(given: argparse.Namespace, kinds: list[Kind]) -> str:
    """Measure, and lay out what goes into the page."""
    head = f"{table.circumstances()} {given.rounds} rounds, {given.seconds:g} s a work."
    lines: list[list[str]] = []
    slowest = 0.0
    for kind in kinds:
        found, starts = measure(given, kind)
        lines += rows(found, starts)
        slowest = max([slowest, *starts.values()])
    text = f"{head}\n\n{table.table(HEADINGS, lines, names=2)}"
    if slowest:
        kept = table.at_most(MOST_START_S, [slowest])
        text += f"\n\nThe longest start after a kill took {slowest:.2f} s ({kept})."
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of the names of kinds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="a work and round")
    parser.add_argument("--most", type=int, default=10_000_000, help="largest size")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/performance.md"
    )
    given = parser.parse_args()
    if given.write and given.words:
        parser.error("--write makes whole tables, so it takes no words")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    words = given.words
    kinds = [k for k in KINDS if not words or any(word in k.name for word in words)]
    if not kinds:
        raise SystemExit(f"no kind of growth is named so; allowed: {KINDS}")
    text = report(given, kinds)
    print(text)
    if given.write:
        table.write("growth", text)


if __name__ == "__main__":
    main()
