"""Ropeway on Pulsar, beside its embedded log, Pulsar's own clients, and RoP's figures.

    $ python -m benchmarks.on_pulsar
    $ python -m benchmarks.on_pulsar --write
    $ python -m benchmarks.on_pulsar --rounds 1 --seconds 0.5 single pulsar-client
    $ python -m benchmarks.on_pulsar --journal async

It starts everything by itself: a ZooKeeper, a Pulsar, a Ropeway on them, and one on the
embedded log. In each round each case runs on one Ropeway and then on the other, and
Pulsar's own clients send to the same Pulsar; differences and ratios are those of one
round. Nothing is stopped meanwhile: a gateway that stands still loses its place.
Words select the cases, senders and cold reads that have one of them in their names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import (
    load,
    pulsar_cases,
    pulsar_cold,
    pulsar_rounds,
    pulsar_senders,
    pulsar_servers,
    pulsar_tables,
    servers,
    table,
)
from benchmarks.pulsar_cases import BATCHES, LATENCY, PIPELINED

if TYPE_CHECKING:
    from benchmarks.cases import Case
    from benchmarks.pulsar_cold import Cold
    from benchmarks.pulsar_rounds import Measured
    from benchmarks.pulsar_servers import Deployment
    from benchmarks.pulsar_tables import Rounds
    from benchmarks.servers import Server

WARM_UP = ("send connections=64", "send window=256", "batch size=1024", "pull")
SIZES = (128, 1024)
ONE_BY_ONE, EACH, BATCHED, PERF = (
    "pulsar-client, waits for each, {} B",
    "pulsar-client, not batched, {} B",
    "pulsar-client, batched, {} B",
    "pulsar-perf, batched, {} B",
)
PAIRS = [
    pair
    for size in SIZES
    for pair in (
        (EACH.format(size), PIPELINED[size], pulsar_tables.LEAST_OF_ONE_BY_ONE),
        (BATCHED.format(size), PIPELINED[size], None),
        (BATCHED.format(size), BATCHES[size], None),
        (PERF.format(size), PIPELINED[size], None),
        (PERF.format(size), BATCHES[size], pulsar_tables.LEAST_OF_PERF),
    )
]
WAITS = [(LATENCY[size], ONE_BY_ONE.format(size)) for size in SIZES]

Sender = Callable[["Deployment", str, float], "Measured"]


def all_senders(folder: Path) -> dict[str, Sender]:
    """Pulsar's own clients, by name; each sends to a topic for so many seconds."""
    found: dict[str, Sender] = {}
    for size in SIZES:
        found[ONE_BY_ONE.format(size)] = partial(_one_by_one, size)
        found[EACH.format(size)] = partial(_window, size, batched=False)
        found[BATCHED.format(size)] = partial(_window, size, batched=True)
        found[PERF.format(size)] = partial(_perf, size, folder)
    return found


def _one_by_one(size: int, on: Deployment, topic: str, seconds: float) -> Measured:
    return pulsar_senders.send_one_by_one(on.pulsar, topic, size, seconds)


def _window(
    size: int, on: Deployment, topic: str, seconds: float, *, batched: bool
) -> Measured:
    return pulsar_senders.send_window(on.pulsar, topic, size, seconds, batched=batched)


def _perf(
    size: int, folder: Path, on: Deployment, topic: str, seconds: float
) -> Measured:
    return pulsar_senders.perf(on.pulsar, topic, size, seconds, folder)


COLD: dict[str, Callable[[Deployment, int], Cold]] = {
    "cold, all from offset 0": pulsar_cold.from_the_beginning,
    "cold, half of it from a random offset": pulsar_cold.from_anywhere,
}


class Run:
    """One run of this program.

    Args:
        given: The command line.
        folder: For files that nobody keeps.
    """

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self._given = given
        self.cases = pulsar_cases.chosen(given.words)
        self.senders = {
            name: send
            for name, send in all_senders(folder).items()
            if self._wants(name)
        }
        self.cold = {name: read for name, read in COLD.items() if self._wants(name)}
        self.ours: Rounds = {}
        self.embedded: Rounds = {}
        self.theirs: Rounds = {}
        self.reads: dict[str, list[Cold]] = {}

    def _wants(self, name: str) -> bool:
        words = self._given.words
        return not words or any(word in name for word in words)

    @property
    def is_empty(self) -> bool:
        """Whether no name has one of the words."""
        return not (self.cases or self.senders or self.cold)

    def measure(self, on: Deployment, embedded: Server) -> None:
        """All rounds."""
        for server in (on.gateway, embedded):
            warm_up(server, self._given.warm_up)
        for number in range(self._given.rounds):
            for case in self.cases:
                self._measure_case(number, case, on, embedded)
            for name, send in self.senders.items():
                topic = f"bench-{list(self.senders).index(name)}"
                result = send(on, topic, self._given.seconds)
                self.theirs.setdefault(name, []).append(result)
                progress(number, name, "Pulsar", result)
        if self.cold:
            pulsar_cold.fill(on, self._given.cold_messages)
        for number in range(self._given.rounds):
            for name, read in self.cold.items():
                found = read(on, self._given.cold_messages)
                self.reads.setdefault(name, []).append(found)
                progress(number, name, f"{found.first_ms:.1f} ms,", found.rest)

    def _measure_case(
        self, number: int, case: Case, on: Deployment, embedded: Server
    ) -> None:
        order: list[tuple[Server, int | None, Rounds]] = [
            (on.gateway, on.pulsar.pid, self.ours),
            (embedded, None, self.embedded),
        ]
        topic = f"bench_{self.cases.index(case)}"
        if case.fill:
            topic += f"_{number}"
        for server, pulsar_pid, found in order if number % 2 == 0 else order[::-1]:
            pids = server.pid, pulsar_pid
            result = pulsar_rounds.measure(
                server.port, pids, case, topic, self._given.seconds
            )
            found.setdefault(case.name, []).append(result)
            progress(number, case.name, "Pulsar" if pulsar_pid else "embedded", result)

    def report(self) -> str:
        """All that goes into the page."""
        given = self._given
        how = f"{given.rounds} rounds, {given.seconds:g} s a case"
        lines = [f"{table.circumstances()} {how}; journal: {given.journal}."]
        if self.cases:
            lines += ["", pulsar_tables.cases(self.cases, self.ours, self.embedded)]
            lines += ["", pulsar_tables.rop(self.cases, self.ours)]
        if self.senders:
            lines += ["", pulsar_tables.senders(self.theirs, self.ours, PAIRS)]
            lines += ["", pulsar_tables.latency(self.ours, self.theirs, WAITS)]
        if self.reads:
            lines += ["", pulsar_tables.cold(self.reads)]
        lines += pulsar_tables.refused(self.ours, self.embedded, self.theirs)
        return "\n".join(lines)


def warm_up(server: Server, seconds: float) -> None:
    """Let Pulsar's JVM compile what the cases use."""
    ms = round(seconds * 1000 / len(WARM_UP))
    for words in WARM_UP:
        load.run("load", server.port, f"{words} topic=bench_warm ms={ms}")


def progress(number: int, name: str, where: str, result: Measured) -> None:
    """Say what was measured; a run takes minutes."""
    print(
        f"{time.strftime('%H:%M:%S')} round {number + 1} {name}: {where} "
        f"{result.rate:,.0f} msg/s, {result.own_us:.2f} + {result.pulsar_us:.2f} us "
        f"CPU/msg, p50 {result.p50_us:,.0f} us",
        file=sys.stderr,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="a case and round")
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds a server")
    parser.add_argument("--cold-messages", type=int, default=1_000_000)
    parser.add_argument(
        "--journal",
        choices=("sync", "async"),
        default="sync",
        help="whether a bookie syncs to disk first: sync is bookkeeper.conf's default",
    )
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/performance.md"
    )
    given = parser.parse_args()
    if given.write and given.words:
        parser.error("--write makes whole tables: without words")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Run(given, Path(folder))
        if run.is_empty:
            parser.error(f"nothing has {' or '.join(given.words)} in its name")
        with (
            pulsar_servers.deployed(given.journal) as on,
            servers.running(servers.ropeway) as embedded,
        ):
            run.measure(on, embedded)
    text = run.report()
    print(text)
    if given.write:
        table.write(f"on-pulsar-{given.journal}", text)


if __name__ == "__main__":
    main()
