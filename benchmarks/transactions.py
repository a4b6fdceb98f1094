"""What a transaction costs: server CPU of a half message and its commit, in sends.

    $ python -m benchmarks.transactions
    $ python -m benchmarks.transactions --seconds 1 --rounds 3 --ropeway-only

The load (`load.c`) sends a half message, commits it one-way as soon as it is answered,
as clients do, and goes on; beside it the same load of plain sends. Rounds alternate.
Every transaction is counted again at the end, among the messages of the topic.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import load, requests
from benchmarks.servers import Server, rocketmq, ropeway, running

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SENDS = 3.0
QUEUES = 8
SETTLE_S = 30.0
LOADS = ("connections=1", "connections=64", "window=256")


class Cost(NamedTuple):
    """What one kind of request cost, in one round."""

    rate: float
    cpu_us: float


def measure(server: Server, what: str, words: str, topic: str) -> tuple[Cost, int]:
    """Run a load: its cost, and how many messages it made."""
    before = server.cpu_s()
    report = load.run(
        "load", server.port, f"{what} {words} topic={topic} queues={QUEUES}"
    )
    cpu_s = server.cpu_s() - before
    cost = Cost(report.messages / report.seconds, cpu_s * 1e6 / report.messages)
    return cost, report.messages


def wait_for(server: Server, topic: str, count: int) -> None:
    """Wait until a topic has so many messages.

    Raises:
        SystemExit: It has fewer for too long, or more.
    """
    give_up = time.monotonic() + SETTLE_S
    while True:
        found = sum(
            requests.end_offset(server.port, topic, queue) for queue in range(QUEUES)
        )
        if found == count:
            return
        if found > count or time.monotonic() > give_up:
            raise SystemExit(f"{server.name}: {found} of {count} were committed")
        time.sleep(0.1)


def compare(servers: Sequence[Server], words: str, rounds: int, ms: int) -> None:
    """Print the rows of one load."""
    name = words.replace("=", " ").replace(" ", "-")
    costs: dict[tuple[str, str], list[Cost]] = {}
    for server in servers:
        with server.alone(list(servers)):
            topics = {what: f"{what}-{name}" for what in ("send", "transact")}
            for topic in topics.values():
                requests.create_topic(server.port, topic, QUEUES)
            committed = 0
            for number in range(rounds + 1):
                # The first round warms up.
                for what, topic in topics.items():
                    cost, count = measure(server, what, f"{words} ms={ms}", topic)
                    committed += count * (what == "transact")
                    if number:
                        costs.setdefault((server.name, what), []).append(cost)
            wait_for(server, topics["transact"], committed)
    for server in servers:
        sends, transactions = (
            Cost(*map(statistics.median, zip(*costs[server.name, what], strict=True)))
            for what in ("send", "transact")
        )
        print(
            f"| {words.replace('=', ' ')} | {server.name} | {sends.rate:,.0f} "
            f"| {sends.cpu_us:.1f} | {transactions.rate:,.0f} "
            f"| {transactions.cpu_us:.1f} "
            f"| {transactions.cpu_us / sends.cpu_us:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="a load and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ropeway-only", action="store_true")
    given = parser.parse_args()
    print(f"A transaction may cost {MOST_SENDS} sends of Ropeway's.")
    print(
        "| load | server | sends/s | us CPU/send | transactions/s "
        "| us CPU/transaction | in sends |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    makes = [ropeway] if given.ropeway_only else [ropeway, rocketmq]
    with ExitStack() as stack:
        servers = [stack.enter_context(running(make)) for make in makes]
        for words in LOADS:
            compare(servers, words, given.rounds, round(given.seconds * 1000))


if __name__ == "__main__":
    main()
