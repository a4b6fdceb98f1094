"""What messages with a delivery time cost: CPU of each, and memory of those that wait.

    $ python -m benchmarks.timers
    $ python -m benchmarks.timers --rounds 1 --messages 2000 --waiting 20000

First the server's CPU time for plain sends is compared with that for sends that are to
be delivered seconds later, until all have been. Then as many messages as wanted wait
for a year; what is looked at is the memory they take, the time of a start with them,
and that of a start that has to read all of them from the log again.
"""

from __future__ import annotations

import argparse
import shutil
import time
from typing import TYPE_CHECKING

from benchmarks import load, requests, servers, table

if TYPE_CHECKING:
    from benchmarks.servers import Server

QUEUES = 8
DELAY_MS = 3000
YEAR_MS = 365 * 86_400_000
WARM_UP = 2000
COST_TARGET = 2.5
START_TARGET_S = 10.0
MEMORY_TARGET_MIB = 200.0
DELIVERED_S = 300.0
LOADS = {
    "1 connection, 64 in flight": "connections=1 window=64",
    "64 connections": "connections=64 window=1",
}


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=20_000, help="of each round")
    parser.add_argument("--waiting", type=int, default=1_000_000)
    given = parser.parse_args()
    with servers.running(servers.ropeway) as server:
        print(costs(server, given.rounds, given.messages), flush=True)
    with servers.running(servers.ropeway) as server:
        print(waiting(server, given.waiting), flush=True)


def costs(server: Server, rounds: int, messages: int) -> str:
    """CPU microseconds of a message, plain and timed."""
    rows = []
    for number, (name, words) in enumerate(LOADS.items()):
        topic = f"timed-{number}"
        requests.create_topic(server.port, topic, QUEUES)
        _cost(server, topic, words, WARM_UP, DELAY_MS)
        plain, timed = [], []
        for _ in range(rounds):
            plain.append(_cost(server, topic, words, messages, 0))
            timed.append(_cost(server, topic, words, messages, DELAY_MS))
        ratios = [two / one for one, two in zip(plain, timed, strict=True)]
        rows.append(
            (
                name,
                table.spread(plain),
                table.spread(timed),
                table.spread(ratios),
                table.at_most(COST_TARGET, ratios),
            )
        )
    headings = ("CPU of a message, us", "plain", "timed", "timed / plain", "target")
    return table.table(headings, rows)


def _cost(
    server: Server, topic: str, words: str, messages: int, delay_ms: int
) -> float:
    """CPU microseconds of a message until it is in its queue."""
    stored = _stored(server.port, topic)
    before = server.cpu_s()
    words = f"send {words} topic={topic} queues={QUEUES} count={messages} ms=600000"
    report = load.run("load", server.port, f"{words} delay_ms={delay_ms}")
    # Nobody asks while they wait: that would count, too.
    time.sleep(delay_ms / 1000)
    # A machine that is busy with other things has some refused.
    _until_stored(server.port, topic, stored + report.messages)
    return (server.cpu_s() - before) / report.messages * 1e6


def _until_stored(port: int, topic: str, wanted: int) -> None:
    give_up = time.monotonic() + DELIVERED_S
    while _stored(port, topic) < wanted:
        if time.monotonic() > give_up:
            raise RuntimeError(f"{wanted} messages were not delivered in time")
        time.sleep(0.2)


def _stored(port: int, topic: str) -> int:
    """Messages of all queues of a topic."""
    return sum(requests.end_offset(port, topic, queue_id) for queue_id in range(QUEUES))


def waiting(server: Server, count: int) -> str:
    """Memory and starts with messages that wait."""
    requests.create_topic(server.port, "years", QUEUES)
    load.run("load", server.port, f"send topic=years count={WARM_UP} queues={QUEUES}")
    before = server.memory().anonymous_mib
    report = load.run(
        "load",
        server.port,
        f"send connections=8 window=64 topic=years queues={QUEUES} "
        f"count={count} ms=3600000 delay_ms={YEAR_MS}",
    )
    time.sleep(servers.SETTLE_S * 5)
    grown = server.memory().anonymous_mib - before
    start_s = _start_s(server)
    ready_s = delivered_s(server)
    without_s = _start_s(server, rebuild=True)
    rebuilt_s = delivered_s(server)
    rows = [
        (
            "memory, MiB more",
            f"{grown:.0f}",
            table.at_most(MEMORY_TARGET_MIB, [grown]),
        ),
        ("start, s", f"{start_s:.2f}", table.at_most(START_TARGET_S, [start_s])),
        ("  and a message due then came after, s", f"{ready_s:.2f}", ""),
        (
            "start without the index, s",
            f"{without_s:.2f}",
            table.at_most(START_TARGET_S, [without_s]),
        ),
        ("  and a message due then came after, s", f"{rebuilt_s:.2f}", ""),
    ]
    return table.table((f"{report.messages:,} messages wait", "", "target"), rows)


def _start_s(server: Server, *, rebuild: bool = False) -> float:
    server.started.kill()
    if rebuild:
        shutil.rmtree(server.started.log_files.parent / "timer", ignore_errors=True)
    began = time.monotonic()
    server.started.start()
    return time.monotonic() - began


def delivered_s(server: Server) -> float:
    """How long a message takes that is due almost at once."""
    wanted = _stored(server.port, "years") + 1
    began = time.monotonic()
    load.run(
        "load",
        server.port,
        f"send topic=years queues={QUEUES} count=1 delay_ms=1",
    )
    _until_stored(server.port, "years", wanted)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
