"""What many topics cost on Pulsar: two nodes of one broker, and many queues.

    $ python -m benchmarks.many_topics
    $ python -m benchmarks.many_topics --topics 10000 --heap 3g
    $ python -m benchmarks.many_topics --topics 1250 --each 8 --heap 1500m
    $ python -m benchmarks.many_topics --topics 10000 --embedded

It starts a ZooKeeper, a Pulsar and two nodes of one broker, makes topics of 8 queues,
sends a message to one queue of each topic (`--each`: more), which opens that many
partitions, looks for a minute at what the idle nodes and Pulsar do, starts the second
node again, and kills the first one. With `--embedded` it is one node on the embedded
log.

Times of CPU do not depend on what else the machine does; others do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import counted, counters, requests, table
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import encode_frame
from tests import builds
from tests.system.cluster import Cluster
from tests.system.pulsar import Pulsar
from tests.system.ropeway import Ropeway
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

HERE = Path(__file__).resolve().parent
QUEUES = 8
CONNECTIONS = 16
HOT = 64
"""Queues that are sent to when the master is killed."""
AGAIN_S = 0.01
SETTINGS = """
[creations]
topics_per_hour = 1_000_000
topics = 1_000_000
"""


class Connections(threading.local):
    """One connection for each thread."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.open: socket.socket | None = None

    def ask(self, frame: bytes) -> int:
        """Ask over this thread's connection, which is made where there is none."""
        if self.open is None:
            self.open = requests.connect(self.port)
        try:
            return requests.ask(self.open, frame)
        except OSError:
            self.open = None
            raise


def sending(topic: str, queue_id: int) -> bytes:
    """The frame of a send."""
    fields = {
        "producerGroup": "many",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "8",
        "queueId": str(queue_id),
        "sysFlag": "0",
        "bornTimestamp": "1700000000000",
        "flag": "0",
    }
    return encode_frame(RequestCode.SEND_MESSAGE, 1, fields=fields, body=b"x" * 100)


def until_done(
    connections: Connections, frame: bytes, patience_s: float = 300
) -> float:
    """Ask until it is done; returns the seconds that the last try took."""
    give_up = time.monotonic() + patience_s
    while True:
        began = time.monotonic()
        try:
            if not (code := connections.ask(frame)):
                return time.monotonic() - began
        except OSError as error:
            code = repr(error)
        if time.monotonic() > give_up:
            raise RuntimeError(f"not done in {patience_s:g} s: {code}")
        time.sleep(AGAIN_S)


def counting(path: Path) -> list[str]:
    """What runs a node that counts into a file."""
    counted.clear(path, looks=True)
    return [sys.executable, str(HERE / "counted.py"), str(path)]


class Watched:
    """Processes whose CPU, memory and counts are told, piece of work by piece."""

    def __init__(self, processes: dict[str, int], counts: dict[str, Path]) -> None:
        self.processes = processes
        self.counts = counts
        self.rows: list[tuple[str, str]] = []

    def say(self, what: str, figure: str) -> None:
        """Note a figure, and print it."""
        self.rows.append((what, figure))
        print(f"{time.strftime('%H:%M:%S')} {what}: {figure}", file=sys.stderr)

    def measure(
        self, what: str, work: Callable[[], object], *, looks: bool = True
    ) -> None:
        """Do some work, and say what it cost everybody."""
        for path in self.counts.values():
            counted.clear(path, looks=looks)
        before = {name: counters.cpu_s(pid) for name, pid in self.processes.items()}
        began = time.monotonic()
        work()
        took_s = time.monotonic() - began
        parts = []
        for name, pid in self.processes.items():
            cpu_s = counters.cpu_s(pid) - before.get(name, 0.0)
            part = f"{name} {cpu_s:.2f} s CPU = {cpu_s / took_s:.2%}"
            if name in self.counts:
                found = counted.read(self.counts[name])
                part += f", {found.rest} REST, {found.frames} frames"
                if looks:
                    part += f", loop held {found.longest_us / 1000:.0f} ms CPU"
            parts.append(part)
        load = os.getloadavg()[0]
        self.say(what, f"{took_s:.2f} s (load {load:.0f}); {'; '.join(parts)}")

    def memory(self, what: str, partitions: int, before: dict[str, float]) -> None:
        """Say how much memory the nodes have got since."""
        parts = []
        for name in (*self.counts, *(set(self.processes) - set(self.counts))):
            now = counters.memory(self.processes[name]).anonymous_mib
            more = now - before.get(name, 0.0)
            parts.append(
                f"{name} {now:.0f} MiB ({more:+.0f}, "
                f"{more * 1024 / partitions:.2f} KiB each)"
            )
            before[name] = now
        self.say(what, "; ".join(parts))


def asked_by_all(
    connections: Connections, frames: Iterable[bytes], waits: list[float] | None = None
) -> None:
    """Have all of them answered, some at a time."""
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        for wait in threads.map(lambda one: until_done(connections, one), frames):
            if waits is not None:
                waits.append(wait)


def topic_of(number: int) -> str:
    """A topic's name."""
    return f"many_{number:06}"


def used(count: int, each: int = 1) -> Iterator[tuple[str, int]]:
    """The queues of each topic that are used."""
    return (
        (topic_of(number), (number + step) % QUEUES)
        for step in range(each)
        for number in range(count)
    )


def make_and_use(
    watched: Watched, connections: Connections, topics: int, each: int
) -> None:
    """Make topics, and open some partitions of each."""
    opened = topics * each
    before: dict[str, float] = {}
    watched.memory("at the start", 1, before)
    names = map(topic_of, range(topics))
    watched.measure(
        f"make {topics:,} topics of {QUEUES} queues",
        lambda: asked_by_all(
            connections, (requests.creating(one, QUEUES) for one in names)
        ),
    )
    watched.memory(f"memory, {topics * QUEUES:,} more", topics * QUEUES, before)
    watched.measure(
        f"send to {opened:,} queues",
        lambda: asked_by_all(
            connections, (sending(*one) for one in used(topics, each))
        ),
    )
    watched.memory(f"memory, {opened:,} more open", opened, before)


def idle(watched: Watched, seconds: float, settle_s: float) -> None:
    """Look at what they do when nobody asks them anything."""
    time.sleep(settle_s)
    watched.measure(f"idle for {seconds:g} s", lambda: time.sleep(seconds), looks=False)
    watched.measure(f"idle for {seconds / 2:g} s", lambda: time.sleep(seconds / 2))


def on_pulsar(given: argparse.Namespace, folder: Path, stack: ExitStack) -> Watched:
    """Measure two nodes on Pulsar."""
    java = [f"-Xmx{given.heap}", "-XX:MaxDirectMemorySize=1g", "-XX:+UseG1GC"]
    settings = {
        "maxUnackedMessagesPerBroker": "0",
        # As docs/pulsar.md has it for many queues.
        "managedLedgerCacheEvictionIntervalMs": "1000",
    }
    pulsar = Pulsar(folder / "pulsar", java=java, settings=settings)
    zookeeper = ZooKeeper(folder / "zookeeper")
    for one in (pulsar, zookeeper):
        stack.callback(one.kill)
        one.start()
    counts = {name: folder / f"{name}.counts" for name in ("node", "standby")}
    cluster = Cluster(
        folder / "ropeway",
        pulsar,
        zookeeper.address,
        pythons=[counting(path) for path in counts.values()],
    )
    with (folder / "ropeway" / "ropeway.toml").open("a") as file:
        file.write(SETTINGS)
    stack.callback(cluster.kill)
    cluster.start()
    first, second = cluster.nodes
    watched = Watched(
        {
            "node": first.broker_pid,
            "standby": second.broker_pid,
            "Pulsar": pulsar.pid,
        },
        counts,
    )
    connections = Connections(first.broker_port)
    make_and_use(watched, connections, given.topics, given.each)
    idle(watched, given.idle, given.settle)
    watched.measure(
        "make a topic of 1,024 queues",
        lambda: until_done(connections, requests.creating("wide", 1024)),
    )
    watched.measure(
        "first send to it", lambda: until_done(connections, sending("wide", 700))
    )

    def again() -> None:
        second.start()
        watched.processes["standby"] = second.broker_pid

    del watched.processes["standby"]
    second.stop()
    watched.measure("start of the standby", again)
    watched.memory("memory after it", given.topics * QUEUES, {})
    take_over(watched, cluster, given)
    return watched


def take_over(watched: Watched, cluster: Cluster, given: argparse.Namespace) -> None:
    """Kill the master while some queues are sent to."""
    first, second = cluster.nodes
    queues = list(used(given.topics))
    hot, others = queues[-HOT:], queues[:-HOT]
    connections = Connections(second.broker_port)
    # They were used a while ago, if the idle time was long.
    asked_by_all(connections, (sending(*one) for one in hot))
    time.sleep(1.0)
    del watched.processes["node"], watched.counts["node"]
    began = time.monotonic()
    first.kill()

    def say(what: str) -> None:
        watched.say(what, f"{time.monotonic() - began:.2f} s after kill -9")

    watched.measure(
        "until one hot queue is served",
        lambda: until_done(connections, sending(*hot[0])),
    )
    say("one hot queue")
    watched.measure(
        f"until {HOT} hot queues are served",
        lambda: asked_by_all(connections, (sending(*one) for one in hot)),
    )
    say(f"{HOT} hot queues")
    unused = range(given.each, QUEUES)[:1]
    cold = [
        (topic, (queue + step) % QUEUES)
        for topic, queue in others[::97][:20]
        for step in unused
    ]
    waits = [until_done(connections, sending(*one)) for one in cold]
    waits.sort()
    if waits:
        watched.say(
            "first send to a queue that was never used, beside the take-over",
            f"median {waits[len(waits) // 2]:.3f} s, longest {waits[-1]:.3f} s",
        )
    waits = []
    watched.measure(
        f"until all {given.topics:,} are served",
        lambda: asked_by_all(connections, (sending(*one) for one in others), waits),
    )
    waits.sort()
    watched.say("of these the longest", f"{waits[-1]:.2f} s")
    say(f"all {given.topics:,} queues")
    time.sleep(given.settle)
    watched.memory("memory after the take-over", given.topics, {})
    watched.measure("idle after it", lambda: time.sleep(given.idle), looks=False)


def embedded(given: argparse.Namespace, folder: Path, stack: ExitStack) -> Watched:
    """Measure a node on the embedded log."""
    settings = folder / "ropeway.toml"
    settings.write_text(SETTINGS)
    path = folder / "counts"
    node = Ropeway(
        folder / "node", options=["--config", str(settings)], python=counting(path)
    )
    stack.callback(node.kill)
    node.start()
    watched = Watched({"node": node.broker_pid}, {"node": path})
    connections = Connections(node.broker_port)
    make_and_use(watched, connections, given.topics, given.each)
    idle(watched, given.idle, given.settle)
    for what, end in (("kill -9", node.kill), ("a stop", node.stop)):
        end()
        watched.processes.clear()
        watched.measure(f"start after {what}", node.start)
        watched.processes["node"] = node.broker_pid
        watched.say("its CPU", f"{counters.cpu_s(node.broker_pid):.2f} s")
        watched.memory("memory after it", given.topics * QUEUES, {})
    idle(watched, given.idle, given.settle)
    return watched


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument(
        "--each", type=int, default=1, help="queues of a topic that are used"
    )
    parser.add_argument("--heap", default="1g", help="of Pulsar")
    parser.add_argument("--idle", type=float, default=60.0, help="s to look at")
    parser.add_argument("--settle", type=float, default=20.0, help="s before")
    parser.add_argument("--embedded", action="store_true", help="no Pulsar")
    given = parser.parse_args()
    builds.cache().mkdir(parents=True, exist_ok=True)
    print(table.circumstances())
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(dir=builds.cache(), prefix="bench-")
        folder = Path(stack.enter_context(made))
        watched = (embedded if given.embedded else on_pulsar)(given, folder, stack)
    print(table.table(("what", "figure"), watched.rows))


if __name__ == "__main__":
    main()
