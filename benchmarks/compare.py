"""Ropeway beside RocketMQ 5.5.0's broker: the same load on both, in turns.

    $ python -m benchmarks.compare
    $ python -m benchmarks.compare --write
    $ python -m benchmarks.compare --rounds 1 --seconds 0.5 single pull
    $ python -m benchmarks.compare --ropeway-only single
    $ python -m benchmarks.compare --rust PATH/rocketmq-broker-rust single

It starts both by itself; with `--rust`, the broker in Rust as a third (`rust_broker`).
In each round each case runs on one and then on the other, while those that wait are
stopped; ratios are Ropeway's figure by the other's of the same round. Words select the
cases that have one of them in their names.

CPU is that of the server process with all its threads, kernel included: the figure to
compare, since load and server share the machine. RocketMQ's name server is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import cases, load, resources, rounds, servers, table
from benchmarks.java_load import JavaLoad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.cases import Case, Flush
    from benchmarks.resources import Resources
    from benchmarks.rounds import Result
    from benchmarks.servers import Server

WARM_UP = (
    "send connections=64",
    "send window=256",
    "batch size=1024",
    "pull connections=4",
)
CLIENT_PART = 4
"""Clients are warm after this part of what a server needs."""
HEADINGS = (
    *("case", "Ropeway msg/s", "RocketMQ msg/s", "ratio", "target"),
    *("Ropeway us CPU/msg", "RocketMQ us CPU/msg", "CPU ratio", "CPU target"),
    *("Ropeway p50 / p99 us", "RocketMQ p50 / p99 us"),
)


RUST = "RocketMQ-Rust"
RUST_HEADINGS = (
    *("case", f"{RUST} msg/s", "Ropeway / it", "us CPU/msg", "Ropeway / it"),
    "p50 / p99 us",
)

Results = dict["Case", dict[str, list["Result"]]]


def compare(
    given: argparse.Namespace, chosen: list[Case]
) -> tuple[Results, dict[str, Resources]]:
    """Run everything, the cases of one kind of flush after those of the other."""
    results: Results = {case: {} for case in chosen}
    used: dict[str, Resources] = {}
    kinds: list[Flush] = ["async", "sync"]
    with JavaLoad() as java:
        for flush in kinds:
            phase = [case for case in chosen if case.flush == flush]
            if not phase:
                continue
            with ExitStack() as stack:
                running = start(given, flush, stack)
                if flush == "async":
                    used = resources.at_start(running, given.rounds, given.seconds)
                warm_up(running, given.warm_up)
                warm_up_clients(running, phase, java, given.warm_up)
                for number in range(given.rounds):
                    # What comes second has the warmer clients: each one in turn.
                    order = running if number % 2 == 0 else running[::-1]
                    for case in phase:
                        for server in order:
                            topic = f"bench_{flush}_{chosen.index(case)}"
                            if case.fill or case.program.startswith(("java", "wake")):
                                topic += f"_{number}"
                            one = rounds.Round(server, case, topic, given.seconds, java)
                            with server.alone(running):
                                result = rounds.measure(one)
                            results[case].setdefault(server.name, []).append(result)
                            if flush == "async":
                                used[server.name].see(server)
                            progress(number, case, server, result)
                if flush == "async":
                    resources.at_end(used, running, given.seconds)
    return results, used


def start(given: argparse.Namespace, flush: Flush, stack: ExitStack) -> list[Server]:
    """The servers of a phase."""
    makes: list[servers.Make] = [servers.ropeway]
    if not given.ropeway_only:
        makes.append(servers.rocketmq)
    if given.rust:
        makes.append(partial(servers.rust, given.rust))
    return [stack.enter_context(servers.running(make, flush)) for make in makes]


def warm_up(running: list[Server], seconds: float) -> None:
    """Let the JVM compile what the cases use."""
    ms = round(seconds * 1000 / len(WARM_UP))
    for server in running:
        with server.alone(running):
            for words in WARM_UP:
                load.run("load", server.port, f"{words} topic=bench_warm ms={ms}")


def warm_up_clients(
    running: list[Server], phase: list[Case], java: JavaLoad, seconds: float
) -> None:
    """The same for the JVM of the clients."""
    used = {case.program: case for case in phase if case.program.startswith("java")}
    for program, case in used.items():
        for server in running:
            topic = f"bench_warm_{program[5:]}"
            with server.alone(running):
                rounds.measure(
                    rounds.Round(server, case, topic, seconds / CLIENT_PART, java)
                )


def progress(number: int, case: Case, server: Server, result: Result) -> None:
    """Say what was measured; a run takes minutes."""
    print(
        f"{time.strftime('%H:%M:%S')} round {number + 1} {case.name}: {server.name} "
        f"{result.rate:,.0f} msg/s, {result.cpu_us:.2f} us CPU/msg",
        file=sys.stderr,
    )


def rows(results: Results) -> Iterator[list[str]]:
    """The table of cases, medians and ratios."""
    for case, by_server in results.items():
        ours = by_server["Ropeway"]
        theirs = by_server.get("RocketMQ", [])
        rate = ratios([one.rate for one in ours], [one.rate for one in theirs])
        cpu = ratios([one.cpu_us for one in ours], [one.cpu_us for one in theirs])
        target = case.target
        yield [
            case.name,
            middle([one.rate for one in ours], ",.0f"),
            middle([one.rate for one in theirs], ",.0f"),
            table.spread(rate),
            table.at_least(target and target.least_rate, rate),
            middle([one.cpu_us for one in ours], ".2f"),
            middle([one.cpu_us for one in theirs], ".2f"),
            table.spread(cpu),
            table.at_most(target and target.most_cpu, cpu),
            waits(ours),
            waits(theirs),
        ]


def rust_rows(results: Results) -> Iterator[list[str]]:
    """The table of the third server, in rounds of the same run."""
    for case, by_server in results.items():
        ours, theirs = by_server["Ropeway"], by_server[RUST]
        yield [
            case.name,
            middle([one.rate for one in theirs], ",.0f"),
            table.spread(
                ratios([one.rate for one in ours], [one.rate for one in theirs])
            ),
            middle([one.cpu_us for one in theirs], ".2f"),
            table.spread(
                ratios([one.cpu_us for one in ours], [one.cpu_us for one in theirs])
            ),
            waits(theirs),
        ]


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Round by round; nothing where there is nothing to compare with."""
    return [our / their for our, their in zip(ours, theirs, strict=False)]


def middle(values: list[float], form: str) -> str:
    """The median."""
    return format(statistics.median(values), form) if values else "-"


def waits(results: list[Result]) -> str:
    """The medians of p50 and p99."""
    p50 = [one.p50_us for one in results if one.p50_us is not None]
    p99 = [one.p99_us for one in results if one.p99_us is not None]
    return f"{middle(p50, ',.0f')} / {middle(p99, ',.0f')}" if p50 else "-"


def refused(results: Results) -> Iterator[str]:
    """A line for each case with answers that said no."""
    for case, by_server in results.items():
        for name, found in by_server.items():
            if errors := sum(one.errors for one in found):
                yield f"\n{name} refused {errors:,} requests of *{case.name}*."


def report(
    given: argparse.Namespace, results: Results, used: dict[str, Resources]
) -> str:
    """All that goes into the page."""
    lines = [
        f"{table.circumstances()} {given.rounds} rounds, {given.seconds:g} s a case.",
        "",
        table.table(HEADINGS, rows(results)),
        *refused(results),
    ]
    if given.rust:
        lines += ["", table.table(RUST_HEADINGS, rust_rows(results))]
    if used:
        lines += ["", resources.table_of(used)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of the names of cases")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="a case and round")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds a server")
    parser.add_argument("--ropeway-only", action="store_true")
    parser.add_argument("--rust", type=Path, help="rocketmq-broker-rust, built before")
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/performance.md"
    )
    given = parser.parse_args()
    if given.write and (given.words or given.ropeway_only):
        parser.error("--write makes whole tables: without words, and with both servers")
    results, used = compare(given, cases.chosen(given.words))
    text = report(given, results, used)
    print(text)
    if given.write:
        table.write("compare", text)


if __name__ == "__main__":
    main()
