"""This version beside an earlier one: CPU of the same work, in turns.

    $ git worktree add EARLIER COMMIT
    $ (cd EARLIER && python -c "from setuptools import setup; setup()" build_ext -i)
    $ python -m benchmarks.earlier EARLIER
    $ python -m benchmarks.earlier EARLIER segments pop --pairs 3

Words select cases that have one of them in their names. What is compared is one figure
of each version and the median of the ratios of pairs, with the least and the most: on a
machine that does other things as well a ratio says more than a figure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import cases, counters, load, pop, requests, table, timers
from benchmarks.many_topics import Connections, asked_by_all, sending, until_done
from benchmarks.servers import Server, ropeway
from tests import builds
from tests.system.cluster import Cluster
from tests.system.pulsar import Pulsar
from tests.system.ropeway import ROOT
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Figures = dict[str, float]
    Case = Callable[[list[Path], Path, "argparse.Namespace"], Iterator[list[Figures]]]

PULL = "pull"
FILL = f"{cases.FILL} count=160"
LOADS = {
    "single 128 B, 1 connection": "send",
    "single 128 B, 64 connections": "send connections=64",
    "pipelined 128 B, window 256": "send window=256",
    "batch of 100 x 1 KiB": "batch size=1024",
    "pull of 32 x 1 KiB, tail": PULL,
    "half message and commit, 64 connections": "transact connections=64",
    "with a delivery time, 64 connections": (
        f"send connections=64 delay_ms={timers.YEAR_MS}"
    ),
}
"""Messages that are sent and pulled, as `load.c` takes the words."""
QUEUES = 8
HOT = 64
"""Partitions that are in use when a master is killed."""
MESSAGES = 20_000
WARM_UP = 2000


def segments(
    programs: list[Path], folder: Path, given: argparse.Namespace
) -> Iterator[list[Figures]]:
    """Tiers and compacted topics, without sockets."""
    script = Path(__file__).with_name("segments.py")
    for _ in range(given.pairs):
        yield [
            json.loads(
                subprocess.run(
                    [sys.executable, "-P", str(script)],
                    cwd=folder,
                    env=os.environ | {"PYTHONPATH": str(program)},
                    check=True,
                    stdout=subprocess.PIPE,
                ).stdout
            )
            for program in programs
        ]


def _started(stack: ExitStack, program: Path, folder: Path) -> Server:
    node = ropeway(folder, "async")
    node.program = program
    stack.callback(node.kill)
    node.start()
    return Server(ropeway, node, 0.0)


def _all_started(stack: ExitStack, programs: list[Path], folder: Path) -> list[Server]:
    return [
        _started(stack, one, folder / str(number))
        for number, one in enumerate(programs)
    ]


def messages(
    programs: list[Path], folder: Path, given: argparse.Namespace
) -> Iterator[list[Figures]]:
    """A message that is sent in each of the ways that there are, and pulled."""
    with ExitStack() as stack:
        servers = _all_started(stack, programs, folder)
        for number in range(given.pairs + 1):
            found: list[Figures] = [{} for _ in servers]
            for kind, (name, words) in enumerate(LOADS.items()):
                both = list(zip(servers, found, strict=True))
                for server, figures in both[:: -1 if number % 2 else 1]:
                    topic = f"sent-{kind}-{number}"
                    requests.create_topic(server.port, topic, QUEUES)
                    where = f"topic={topic} queues={QUEUES}"
                    if words == PULL:
                        load.run("load", server.port, f"{FILL} {where}")
                    before = server.cpu_s()
                    report = load.run(
                        "load", server.port, f"{words} {where} ms={given.ms}"
                    )
                    cpu_us = (server.cpu_s() - before) * 1e6 / report.messages
                    figures[f"{name}: a message, us"] = cpu_us
            if number:  # the first one warms up
                yield found


def popping(
    programs: list[Path], folder: Path, given: argparse.Namespace
) -> Iterator[list[Figures]]:
    """A message that is popped and acknowledged, in each of the ways of that page."""
    with ExitStack() as stack:
        servers = _all_started(stack, programs, folder)
        for number in range(given.pairs + 1):
            found: list[Figures] = [{} for _ in servers]
            for kind, (name, words) in enumerate(pop.LOADS.items()):
                for server, figures in zip(servers, found, strict=True):
                    topic = f"pop-{kind}-{number}"
                    requests.create_topic(server.port, topic, pop.QUEUES)
                    cost = pop.measure(server, topic, words, given.messages)
                    figures[f"pop, {name}: a message, us"] = cost.cpu_us
            if number:  # the first one warms up
                yield found


def timers_start(
    programs: list[Path], folder: Path, given: argparse.Namespace
) -> Iterator[list[Figures]]:
    """A start with very many messages that wait, with their index and without."""
    with ExitStack() as stack:
        servers = _all_started(stack, programs, folder)
        for server in servers:
            requests.create_topic(server.port, "years", timers.QUEUES)
            load.run(
                "load",
                server.port,
                f"send connections=8 window=64 topic=years queues={timers.QUEUES} "
                f"count={given.waiting} ms=3600000 delay_ms={timers.YEAR_MS}",
            )
            server.started.stop()
        for _ in range(given.pairs):
            found: list[Figures] = [{} for _ in servers]
            for name, rebuild in (("", False), (", index made again", True)):
                for server, figures in zip(servers, found, strict=True):
                    files = server.started.log_files.parent / "timer"
                    if rebuild:
                        shutil.rmtree(files)
                    server.started.start()
                    timers.delivered_s(server)
                    figures[f"start with timers{name}, CPU s"] = server.cpu_s()
                    server.started.stop()
            yield found


def take_over(
    programs: list[Path], folder: Path, given: argparse.Namespace
) -> Iterator[list[Figures]]:
    """The new master's CPU and time until all partitions in use are served."""
    with ExitStack() as stack:
        pulsar = Pulsar(folder / "pulsar")
        zookeeper = ZooKeeper(folder / "zookeeper")
        for one in (pulsar, zookeeper):
            stack.callback(one.kill)
            one.start()
        clusters = []
        for number, program in enumerate(programs):
            cluster = Cluster(folder / str(number), pulsar, zookeeper.address)
            for node in cluster.nodes:
                node.program = program
            stack.callback(cluster.kill)
            cluster.start()
            requests.create_topic(cluster.broker_port, "hot", HOT)
            clusters.append(cluster)
        for number in range(given.pairs):
            yield [_take_over(cluster, number % 2) for cluster in clusters]


def _take_over(cluster: Cluster, killed: int) -> Figures:
    """Kill one node of a cluster, whose queues are all in use; it is started again."""
    first, second = cluster.nodes[killed], cluster.nodes[1 - killed]
    frames = [sending("hot", queue) for queue in range(HOT)]
    connections = Connections(second.broker_port)
    asked_by_all(Connections(first.broker_port), frames)
    time.sleep(1.0)
    before = counters.cpu_s(second.broker_pid)
    began = time.monotonic()
    first.kill()
    until_done(connections, frames[0])
    asked_by_all(connections, frames)
    took_s = time.monotonic() - began
    cpu_s = counters.cpu_s(second.broker_pid) - before
    first.start()
    return {
        f"take-over of {HOT} partitions, CPU s": cpu_s,
        f"take-over of {HOT} partitions after kill -9, s": took_s,
    }


CASES: dict[str, Case] = {
    "segments": segments,
    "messages": messages,
    "pop": popping,
    "timers": timers_start,
    "take-over": take_over,
}


def compared(pairs: list[list[Figures]]) -> list[tuple[str, ...]]:
    """Rows: both figures by the median, and the ratios."""
    figures: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for before, after in pairs:
        for name, value in before.items():
            figures[name].append((value, after[name]))
    rows = []
    for name, found in figures.items():
        one, two = (
            f"{statistics.median(some):.3g}" for some in zip(*found, strict=True)
        )
        ratios = [after / before for before, after in found]
        rows.append((name, one, two, table.spread(ratios)))
    return rows


def main() -> None:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("earlier", type=Path, help="folder of the earlier version")
    parser.add_argument("words", nargs="*", help="of the names of cases")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--ms", type=int, default=500, help="a load of messages")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="to pop")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="timers")
    given = parser.parse_args()
    builds.cache().mkdir(parents=True, exist_ok=True)
    print(table.circumstances())
    rows: list[tuple[str, ...]] = []
    for name, case in CASES.items():
        if given.words and not any(word in name for word in given.words):
            continue
        with tempfile.TemporaryDirectory(dir=builds.cache(), prefix="bench-") as folder:
            programs = [given.earlier.resolve(), ROOT]
            pairs = list(case(programs, Path(folder), given))
        rows += compared(pairs)
        print(table.table(("", "before", "after", "ratio"), rows), flush=True)


if __name__ == "__main__":
    main()
