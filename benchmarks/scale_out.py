"""What a second node brings: two brokers on one Pulsar and one ZooKeeper, against one.

    $ python -m benchmarks.scale_out
    $ python -m benchmarks.scale_out --write
    $ python -m benchmarks.scale_out --rounds 1 --seconds 0.5

It starts a ZooKeeper, a Pulsar, a deployment of one node and one of two, each with a
place of its own there, and gives both the same load in turn: two load generators
(`load.c`), which the one node has both and of two nodes each has one. A run of three
rounds takes about two minutes.

All share the machine's cores: where there are not several for each process, messages a
second say little, and CPU a message, of the nodes and of Pulsar, is the figure to look
at: it says what the same work costs when it is spread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import counters, load, pulsar_servers, table
from tests import builds
from tests.system.cluster import Cluster
from tests.system.pulsar import Pulsar
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = (1, 2)
GENERATORS = 2
LOADS = (
    "send size=128 connections=64",
    "send size=128 window=256",
    "send size=1024 window=256",
)


class Measured(NamedTuple):
    """One load on one deployment, in one round."""

    rate: float
    """Messages a second, of all generators together."""
    nodes_us: float
    """CPU a message of all nodes together."""
    pulsar_us: float


class Deployment(NamedTuple):
    """Nodes that run, and the Pulsar beneath them."""

    cluster: Cluster
    pulsar: Pulsar

    @property
    def ports(self) -> list[int]:
        """Where each generator's node listens."""
        nodes = self.cluster.nodes
        return [nodes[one % len(nodes)].broker_port for one in range(GENERATORS)]

    def cpu_s(self) -> tuple[float, float]:
        """CPU time so far, of the nodes and of Pulsar."""
        nodes = sum(counters.cpu_s(one.broker_pid) for one in self.cluster.nodes)
        return nodes, counters.cpu_s(self.pulsar.pid)


@contextmanager
def deployed() -> Iterator[dict[int, Deployment]]:
    """A deployment for each number of nodes, all with empty data."""
    builds.cache().mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(dir=builds.cache(), prefix="bench-")
        folder = Path(stack.enter_context(made))
        pulsar = Pulsar(
            folder / "pulsar", journal_sync=True, java=pulsar_servers.PULSAR_JAVA
        )
        zookeeper = ZooKeeper(folder / "zookeeper")
        for server in (pulsar, zookeeper):
            stack.callback(server.kill)
            server.start()
        found: dict[int, Deployment] = {}
        for count in NODES:
            cluster = Cluster(
                folder / f"nodes-{count}",
                pulsar,
                zookeeper.address,
                brokers=[f"broker-{number}" for number in range(count)],
                session_ms=pulsar_servers.SESSION_MS,
            )
            stack.callback(cluster.kill)
            cluster.start()
            found[count] = Deployment(cluster, pulsar)
        yield found


def measure(on: Deployment, what: str, seconds: float) -> Measured:
    """Have all generators load at the same time, each a topic of its own."""
    words = f"{what} ms={round(seconds * 1000)}"
    nodes_s, pulsar_s = on.cpu_s()
    running = [
        load.Running("load", port, f"{words} topic=bench_{number}")
        for number, port in enumerate(on.ports)
    ]
    reports = [one.report() for one in running]
    nodes_after_s, pulsar_after_s = on.cpu_s()
    messages = sum(one.messages for one in reports)
    if errors := sum(one.errors for one in reports):
        print(f"{what}: {errors} requests were refused", file=sys.stderr)
    return Measured(
        messages / max(one.seconds for one in reports),
        (nodes_after_s - nodes_s) * 1e6 / messages,
        (pulsar_after_s - pulsar_s) * 1e6 / messages,
    )


def run(given: argparse.Namespace) -> str:
    """All rounds, as what goes into the page."""
    results: dict[tuple[str, int], list[Measured]] = {}
    with deployed() as deployments:
        for on in deployments.values():
            for what in LOADS:
                measure(on, what, given.warm_up / len(LOADS))
        for number in range(given.rounds):
            order = NODES if number % 2 == 0 else NODES[::-1]
            for what in LOADS:
                for count in order:
                    found = measure(deployments[count], what, given.seconds)
                    results.setdefault((what, count), []).append(found)
                    print(
                        f"{time.strftime('%H:%M:%S')} round {number + 1} {what}: "
                        f"{count} nodes {found.rate:,.0f} msg/s, "
                        f"{found.nodes_us:.2f} + {found.pulsar_us:.2f} us CPU/msg",
                        file=sys.stderr,
                    )
    return report(results, given)


def report(
    results: dict[tuple[str, int], list[Measured]], given: argparse.Namespace
) -> str:
    """Medians, and ratios of the same round."""
    rows = []
    for what in LOADS:
        alone = results[what, NODES[0]]
        for count in NODES:
            rounds = results[what, count]
            pairs = list(zip(rounds, alone, strict=True))
            rows.append(
                [
                    what,
                    str(count),
                    f"{statistics.median(one.rate for one in rounds):,.0f}",
                    table.spread([one.rate / first.rate for one, first in pairs]),
                    table.spread([one.nodes_us for one in rounds]),
                    table.spread(
                        [one.nodes_us / first.nodes_us for one, first in pairs]
                    ),
                    table.spread([one.pulsar_us for one in rounds]),
                ]
            )
    headings = [
        *("load", "nodes", "messages/s", "of one node's", "us CPU/message, nodes"),
        *("of one node's", "us CPU/message, Pulsar"),
    ]
    how = f"{given.rounds} rounds, {given.seconds:g} s a load."
    figures = table.table(headings, rows)
    return f"{table.circumstances()} {how}\n\n{figures}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="a load and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=float, default=9.0, help="s a deployment")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/performance.md"
    )
    given = parser.parse_args()
    text = run(given)
    print(text)
    if given.write:
        table.write("scale-out", text)


if __name__ == "__main__":
    main()
