"""What holds everybody up on a node that does all of its work under half its load.

    $ python -m benchmarks.pauses
    $ python -m benchmarks.pauses --minutes 60 --timers 1000000

A node with a tier in a directory of the same disk. First as many messages as wanted are
sent that are all due at the same moment, two minutes into the run. Then it gets half of
the sends a second that it can take: an open load, which does not wait for answers.
Meanwhile another client pops them and acknowledges each, and one asks for a heartbeat
or pulls, in turn. The first table says how long sends took by the clock, which depends
on what else the machine does; the second one how often the node's event loop was held
up for more than 20 ms of CPU, which does not, by what it did then. What compaction
holds up is measured by `benchmarks.compaction`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import held, load, overload, requests, table
from benchmarks.offering import QUEUES, TOPIC, Load, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_MS = 20
"""What is aimed at."""
CONNECTIONS = 64
BODY_BYTES = 1024
STEP_S = 10.0
"""Latencies are kept in steps of so many seconds."""
DUE_S = 120.0
CAPACITY_S = 3.0
POPS = f"pop topic={TOPIC} pull=32 queues={QUEUES} ms=86400000"
"""What another client does, one request at a time."""


class Server(NamedTuple):
    """Ropeway, running."""

    port: int
    held: Path
    """See `held`."""


@contextmanager
def serving(directory: str | None) -> Iterator[Server]:
    """Ropeway with a tier, which writes down when it is held up."""
    with tempfile.TemporaryDirectory(dir=directory) as data:
        settings, file = Path(data) / "ropeway.toml", Path(data) / "held"
        settings.write_text(
            f'data = "{data}/node"\n[tier]\nurl = "file://{data}/store"\n'
            'level = "FORCE"\ncommit_ms = 5000\n'
        )
        words = "benchmarks.held", file, str(MOST_MS), "serve"
        with overload.started(*words, "--config", settings) as (port, _):
            yield Server(port, file)


def measure(server: Server, minutes: float, timers: int) -> Counter[int]:
    """Offer half of what it takes; returns sends by tenths of a millisecond."""
    seconds = minutes * 60
    due_s = min(DUE_S, seconds / 2)
    requests.create_topic(server.port, "timed", QUEUES)
    took: Counter[int] = Counter()
    sender = Load(server.port, CONNECTIONS, BODY_BYTES)
    pops = load.Running("load", server.port, POPS)
    try:
        rate = overload.capacity(sender, min(CAPACITY_S, seconds)) / 2
        if timers:
            # Till then they are all there: a timed message costs less than five sends.
            due_ms = int((time.time() + due_s + timers / rate * 2.5) * 1000)
            load.run(
                "load",
                server.port,
                f"send topic=timed connections=8 window=64 queues={QUEUES} "
                f"count={timers} ms=3600000 due_ms={due_ms}",
            )
        for _ in range(max(1, round(seconds / STEP_S))):
            (outcome,) = sender.offer(Phase(rate, min(STEP_S, seconds)))
            took.update(int(one * 10_000) for one in outcome.accepted_s)
            took[-1] += outcome.offered - len(outcome.accepted_s)
    finally:
        pops.stop()
        sender.close()
    return took


def latencies(took: Counter[int]) -> str:
    """The table of what sends took."""
    refused = took.pop(-1, 0)
    count, seen, cells = took.total(), 0, []
    parts = [0.5, 0.99, 0.999, 1]
    for tenths, some in sorted(took.items()):
        seen += some
        while parts and seen >= parts[0] * count:
            cells.append(f"{tenths / 10:,.1f}")
            del parts[0]
    headings = ("sends", "not accepted", "p50 ms", "p99 ms", "p99.9 ms", "most ms")
    return table.table(headings, [(f"{count:,}", f"{refused:,}", *cells)])


def pauses(path: Path) -> str:
    """The table of what held the loop up, the longest first."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for one in held.read(path):
        found[" < ".join(one.stack[:4]) or "many short things"].append(one.ms)
    rows = [
        (what, f"{len(ms)}", f"{max(ms):,.0f}", f"{sum(ms):,.0f}")
        for what, ms in sorted(found.items(), key=lambda item: -max(item[1]))
    ]
    headings = ("what it did", "times", "most, CPU ms", "together, CPU ms")
    return table.table(headings, rows or [(f"nothing above {MOST_MS} ms", "0", "", "")])


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--timers", type=int, default=200_000, help="due at once")
    parser.add_argument("--directory", help="where the log goes")
    given = parser.parse_args()
    with serving(given.directory) as server:
        took = measure(server, given.minutes, given.timers)
        print(latencies(took), pauses(server.held), sep="\n\n")


if __name__ == "__main__":
    main()
