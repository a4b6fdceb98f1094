"""What a tier costs those who send: a gateway with one beside a gateway without.

    $ python -m benchmarks.tiered_sends
    $ python -m benchmarks.tiered_sends --seconds 2 --rounds 3

Two gateways on embedded logs, one of them with a tier in a directory of the same disk;
the same load (`load.c`) to each in turn, while the other one is stopped. CPU is counted
twice: while the load runs, and until the tier has all that was sent.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import load, requests
from benchmarks.servers import Server, ropeway, running
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.status import status
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.cases import Flush

MOST_PERCENT = 10.0
QUEUES = 8
SETTLE_S = 300.0
COMMIT_MS = 5000
"""Sooner than by default, so that a round does not wait a minute for its end."""
LOADS = ("send size=128 window=256", "send size=1024 window=256")


class Tiered(Ropeway):
    """Ropeway with a tier beside its data."""

    name = "with"

    def __init__(
        self,
        directory: Path,
        flush: Flush,
        *,
        level: str = "NOT_IN_DISK",
        commit_ms: int = COMMIT_MS,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        settings = directory / "tiered.toml"
        settings.write_text(
            f'[tier]\nurl = "file://{directory / "store"}"\nlevel = "{level}"\n'
            f"commit_ms = {commit_ms}\n"
        )
        options = ["--config", str(settings)]
        super().__init__(directory, sync_flush=flush == "sync", options=options)
        self.tier = directory / "data" / "tier"


class Cost(NamedTuple):
    """What a load cost in one round."""

    rate: float
    cpu_us: float
    """A message, while the load ran."""
    all_us: float
    """Likewise, until all was in the tier."""


def measure(server: Server, topic: str, words: str) -> Cost:
    """Run a load, and wait until nothing of it is left to do."""
    before = server.cpu_s()
    report = load.run("load", server.port, f"{words} topic={topic} queues={QUEUES}")
    during_s = server.cpu_s() - before
    if isinstance(server.started, Tiered):
        wait_for_tier(server, server.started.tier, topic)
    all_s = server.cpu_s() - before
    count = report.messages
    return Cost(count / report.seconds, during_s * 1e6 / count, all_s * 1e6 / count)


def wait_for_tier(server: Server, directory: Path, topic: str) -> None:
    """Wait until a tier has all messages of a topic.

    Raises:
        SystemExit: It has not for too long.
    """
    wanted = sum(
        requests.end_offset(server.port, topic, queue) for queue in range(QUEUES)
    )
    give_up = time.monotonic() + SETTLE_S
    while True:
        metadata = Metadata(directory)
        queues = [one for one in status(metadata).queues if one.topic == topic]
        metadata.close()
        found = sum(one.end for one in queues)
        if found == wanted:
            return
        if time.monotonic() > give_up:
            raise SystemExit(f"the tier has {found} of {wanted} messages")
        time.sleep(0.2)


def compare(servers: list[Server], words: str, rounds: int, ms: int) -> None:
    """Print the row of one load: medians of all rounds but the first."""
    topic = words.replace("=", "-").replace(" ", "-")
    costs: dict[str, list[Cost]] = {server.name: [] for server in servers}
    for server in servers:
        requests.create_topic(server.port, topic, QUEUES)
    for number in range(rounds + 1):
        for server in servers[:: 1 if number % 2 else -1]:
            with server.alone(servers):
                cost = measure(server, topic, f"{words} ms={ms}")
            if number:
                costs[server.name].append(cost)
    alone, both = costs.values()
    less = [
        (1 - two.rate / one.rate) * 100 for one, two in zip(alone, both, strict=True)
    ]
    one, two = map(medians, (alone, both))
    print(
        f"| {words} | {one.rate:,.0f} | {two.rate:,.0f} "
        f"| {statistics.median(less):.1f} [{min(less):.1f} to {max(less):.1f}] "
        f"| {one.cpu_us:.2f} | {two.cpu_us:.2f} | {two.all_us - one.all_us:.2f} |",
        flush=True,
    )


def medians(costs: list[Cost]) -> Cost:
    """Of each figure the median."""
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="a load and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commit-ms", type=int, default=COMMIT_MS)
    given = parser.parse_args()
    tiered = partial(Tiered, commit_ms=given.commit_ms)
    print(f"A tier may cost {MOST_PERCENT:.0f} % of the messages a second.")
    print(
        "| load | msg/s without | with | % less | us CPU/msg without | with "
        "| more, uploads to their end |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with ExitStack() as stack:
        servers = [stack.enter_context(running(make)) for make in (ropeway, tiered)]
        for words in LOADS:
            compare(servers, words, given.rounds, round(given.seconds * 1000))


if __name__ == "__main__":
    main()
