"""What those who send notice of consumers that read old messages from the tier.

    $ python -m benchmarks.tiered_readers
    $ python -m benchmarks.tiered_readers --seconds 2 --rounds 3 --readers 8

One gateway that reads from its tier all that is there (`level = "FORCE"`), more than
its memory for that. A few connections send one message after the other, alone and
beside consumers that pull as fast as they can; in turns.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

from benchmarks import load, requests
from benchmarks.servers import Server, running
from benchmarks.tiered_sends import QUEUES, Tiered, wait_for_tier

SENDS = "send connections=4 size=1024 topic=hot"
FILL = "batch batch=100 size=1024 window=4 ms=600000"
MEGABYTES = 256
COLD = "cold"
COMMIT_MS = 500


def fill(server: Server, megabytes: int) -> None:
    """Have so much in the tier."""
    requests.create_topic(server.port, COLD, QUEUES)
    count = megabytes * 10
    load.run("load", server.port, f"{FILL} topic={COLD} queues={QUEUES} count={count}")
    assert isinstance(server.started, Tiered)
    wait_for_tier(server, server.started.tier, COLD)


def measure(server: Server, readers: int, ms: int) -> tuple[load.Report, float]:
    """Send beside so many readers: what the sends were like, messages read a second."""
    reading = None
    if readers:
        words = f"pull connections={readers} topic={COLD} queues={QUEUES} ms={ms}"
        reading = load.Running("load", server.port, words)
    sent = load.run("load", server.port, f"{SENDS} queues={QUEUES} ms={ms}")
    if reading is None:
        return sent, 0.0
    found = reading.report()
    return sent, found.messages / found.seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    given = parser.parse_args()
    ms = round(given.seconds * 1000)
    found: dict[int, list[tuple[load.Report, float]]] = {0: [], given.readers: []}
    with running(partial(Tiered, level="FORCE", commit_ms=COMMIT_MS)) as server:
        requests.create_topic(server.port, "hot", QUEUES)
        fill(server, given.megabytes)
        for number in range(given.rounds + 1):
            for readers, reports in found.items():
                report = measure(server, readers, ms)
                if number:
                    reports.append(report)
    print("| cold readers | sends/s | p50 us | p99 us | read from the tier, msg/s |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for readers, reports in found.items():
        sends = statistics.median(one.messages / one.seconds for one, _ in reports)
        p50 = statistics.median(one.p50_us or 0 for one, _ in reports)
        p99 = statistics.median(one.p99_us or 0 for one, _ in reports)
        read = statistics.median(rate for _, rate in reports)
        print(f"| {readers} | {sends:,.0f} | {p50:,.0f} | {p99:,.0f} | {read:,.0f} |")


if __name__ == "__main__":
    main()
