"""What popping costs: server CPU of a message that is popped and acknowledged.

    $ python -m benchmarks.pop
    $ python -m benchmarks.pop --rounds 1 --messages 20000 --ropeway-only

The load (`load.c`) pops from any queue, acknowledges each message by a request of its
own, as Java's client does, and pops again when all are answered; in another case it
changes the time of each instead. The broker is RocketMQ's with its buffer of hand-outs,
which is its faster way.

Then, on Ropeway alone, as many messages as wanted are in hand at once: what is looked
at is the memory that takes, and the CPU time of seconds in which nothing is due.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import load, requests, table
from benchmarks.servers import BROKER_JAVA, Server, ropeway, running
from tests.system.rocketmq import RocketMQ

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.cases import Flush

QUEUES = 8
BATCH = 100
MOST_CPU = 0.4
MOST_MIB = 300.0
LOADS = {
    "32 a pop, 1 connection": "pull=32 connections=1",
    "32 a pop, 16 connections": "pull=32 connections=16",
    "1 a pop, 64 connections": "pull=1 connections=64",
    "32 a pop, kept for longer": "pull=32 connections=1 keep_ms=120000",
}


class Cost(NamedTuple):
    """What a message cost, in one round."""

    rate: float
    cpu_us: float


def rocketmq(directory: Path, flush: Flush) -> RocketMQ:
    """The broker with its buffer of hand-outs."""
    return RocketMQ(
        directory,
        sync_flush=flush == "sync",
        broker_java=BROKER_JAVA,
        settings={"enablePopBufferMerge": "true"},
    )


def measure(server: Server, topic: str, words: str, messages: int) -> Cost:
    """Send messages, and pop them."""
    batches = f"batch size=128 window=4 ms=600000 batch={BATCH}"
    filling = f"{batches} count={messages // BATCH} topic={topic} queues={QUEUES}"
    load.run("load", server.port, filling)
    before = server.cpu_s()
    report = load.run(
        "load",
        server.port,
        f"pop {words} topic={topic} count={messages} ms=60000",
    )
    cpu_s = server.cpu_s() - before
    if report.errors:
        raise SystemExit(f"{server.name}: {report.errors} refused")
    return Cost(report.messages / report.seconds, cpu_s * 1e6 / report.messages)


def compare(servers: Sequence[Server], rounds: int, messages: int) -> str:
    """CPU of a message, side by side."""
    rows = []
    for number, (name, words) in enumerate(LOADS.items()):
        costs: dict[str, list[Cost]] = {}
        for server in servers:
            for one in range(rounds + 1):
                topic = f"pop-{number}-{one}"
                requests.create_topic(server.port, topic, QUEUES)
                with server.alone(list(servers)):
                    cost = measure(server, topic, words, messages)
                # The first round warms up.
                if one:
                    costs.setdefault(server.name, []).append(cost)
        ours = [one.cpu_us for one in costs["Ropeway"]]
        theirs = [one.cpu_us for one in costs.get("RocketMQ", [])]
        ratios = [one / two for one, two in zip(ours, theirs, strict=False)]
        rates = [
            f"{statistics.median(one.rate for one in costs[key]):,.0f}"
            if key in costs
            else "-"
            for key in ("Ropeway", "RocketMQ")
        ]
        rows.append(
            (
                name,
                *rates,
                table.spread(ours),
                table.spread(theirs),
                table.spread(ratios),
                table.at_most(MOST_CPU, ratios),
            )
        )
    headings = (
        "popped and acknowledged",
        "Ropeway/s",
        "RocketMQ/s",
        "Ropeway, us CPU",
        "RocketMQ, us CPU",
        "ratio",
        "target",
    )
    return table.table(headings, rows)


def in_hand(server: Server, count: int, seconds: float) -> str:
    """Memory and idle CPU with messages in hand."""
    queues = max(QUEUES, count // 8000)
    requests.create_topic(server.port, "hands", queues)
    filling = f"batch size=128 window=4 ms=600000 batch={BATCH} count={count // BATCH}"
    load.run("load", server.port, f"{filling} topic=hands queues={queues}")
    time.sleep(1)
    before = server.memory().anonymous_mib
    report = load.run(
        "load",
        server.port,
        f"pop idle=1 pull=32 connections=4 topic=hands count={count} ms=120000 "
        "invisible_ms=86000000",
    )
    most = server.memory().anonymous_mib - before
    # Until all of it has gone to the log.
    time.sleep(2 * seconds)
    grown = server.memory().anonymous_mib - before
    began = server.cpu_s()
    time.sleep(seconds)
    idle = (server.cpu_s() - began) / seconds * 100
    rows = [
        ("memory, MiB more, at the end of popping", f"{most:.0f}", ""),
        (
            "memory, MiB more, when all is in the log",
            f"{grown:.0f}",
            table.at_most(MOST_MIB, [most, grown]),
        ),
        ("CPU, % of a core, while nothing is due", f"{idle:.1f}", ""),
    ]
    return table.table((f"{report.messages:,} messages in hand", "", "target"), rows)


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=50_000, help="of each round")
    parser.add_argument("--in-hand", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of doing nothing")
    parser.add_argument("--ropeway-only", action="store_true")
    given = parser.parse_args()
    makes = [ropeway] if given.ropeway_only else [ropeway, rocketmq]
    with ExitStack() as stack:
        servers = [stack.enter_context(running(make)) for make in makes]
        print(compare(servers, given.rounds, given.messages), flush=True)
    with running(ropeway) as server:
        print(in_hand(server, given.in_hand, given.seconds), flush=True)


if __name__ == "__main__":
    main()
