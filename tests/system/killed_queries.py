"""Queries of Spark whose parts are killed at random moments, and what they wrote.

    $ python -m tests.system.killed_queries --kills 20
    $ python -m tests.system.killed_queries --kills 20 --pulsar

One driver runs a copy of a topic, a count by windows of time, a join of two topics, and
two stream jobs that say `key n` for the n-th number of a key, each exactly once into a
topic of its own, on executors that are processes. One of the jobs has a mirror, and a
new checkpoint with each start of the driver. Each round sends more, waits until some of
it is there, and kills the driver with its JVM, an executor, a Python worker, or the
gateway, which is away for some seconds. On Pulsar there are two nodes of one broker:
the one that has led the longest is killed, so that the other takes over. A row that was
lost, done twice, or sent twice shows.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ropeway.client import Message, Producer
from ropeway.testing import Gateway
from tests import builds
from tests.ropeway.client.scenario import PATIENT_PRODUCER
from tests.spark_session import QUICK_JVM, Topics
from tests.system.cluster import SHORT_SESSION_MS, Cluster
from tests.system.killed_job import Job, ended
from tests.system.pulsar import Pulsar
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DRIVER = """
import sys
import time

from ropeway.spark.query_start import start_query
from ropeway.spark.session import open_session
from ropeway.streams import RopewayStream, StreamBuilder

name_server, folder, master, batch = sys.argv[1:]
settings = {
    "spark.driver.memory": "700m",
    "spark.executor.memory": "512m",
    "spark.local.dir": f"{folder}/scratch",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    # As many executors may be lost as there are.
    "spark.deploy.maxExecutorRetries": "-1",
}
spark = open_session("killed", master, settings)
spark.sparkContext.setLogLevel("ERROR")


def read(topic):
    options = {"nameServer": name_server, "topic": topic, "maxOffsetsPerTrigger": batch}
    return (
        spark.readStream.format("ropeway")
        .options(**options, startingOffsets="earliest")
        .schema("value binary")
        .load()
        .selectExpr("split(cast(value as string), ' ') parts")
        .selectExpr(
            "cast(parts[0] as bigint) at",
            "parts[1] word",
            # Spark's watermarks begin with 1970, and what is no later is late.
            "timestamp_seconds(1000 + cast(parts[0] as bigint)) time",
        )
        .withWatermark("time", "200 seconds")
    )


numbers = read("numbers")
counts = numbers.selectExpr("window(time, '10 seconds') window", "word")
counts = counts.groupBy("window", "word").count()
labels = read("labels").selectExpr("at label_at", "word label", "time label_time")
joined = numbers.join(
    labels,
    [
        numbers.at == labels.label_at,
        numbers.time == labels.label_time,
    ],
)
written = {
    "copies": numbers.selectExpr("concat(at, ' ', word) value"),
    "counts": counts.selectExpr(
        "concat(unix_seconds(window.start) - 1000, ' ', word, ' ', count) value"
    ),
    "joined": joined.selectExpr("concat(at, ' ', word, ' ', label) value"),
}
for topic, table in written.items():
    options = {"nameServer": name_server, "topic": topic}
    writer = table.writeStream.format("ropeway").options(**options).queryName(topic)
    start_query(spark, writer, f"{folder}/checkpoints/{topic}")
for topic, is_mirrored in (("numbered", False), ("mirrored", True)):
    builder = StreamBuilder(topic)
    (
        builder.source("numbers")
        .key_by(lambda line: line.split()[1])
        .count()
        .sink(topic, lambda key, count: f"{key} {count}".encode())
    )
    options = {"nameServer": name_server, "maxOffsetsPerTrigger": batch}
    checkpoint = f"{folder}/checkpoints/{topic}"
    if is_mirrored:
        checkpoint += f"-{time.time_ns()}"
    job = RopewayStream(
        builder.build(), spark, options, checkpoint=checkpoint, is_mirrored=is_mirrored
    )
    job.start()
spark.streams.awaitAnyTermination()
"""
SOURCES = ("numbers", "labels")
SINKS = ("copies", "counts", "joined", "numbered", "mirrored")
PROMPT = ("copies", "numbered", "mirrored")
"""Those that have a row soon for each number."""
KEYS = 5
QUEUES = 2
WINDOW = 10
END = 1_000_000
"""Numbers that close the windows of all others."""
AWAY_S = 6.0
VICTIMS = ("driver", "executor", "worker", "gateway")


class Plan(NamedTuple):
    """How much there is to do, and on what."""

    each_round: int = 120
    a_batch: int = 60
    wait_s: float = 3.0
    """How long a victim may live on after the first rows of a round, at most."""
    master: str = "local-cluster[2,1,600]"
    java: str = QUICK_JVM
    """Options of all of Spark's JVMs."""


class Place(Protocol):
    """Where the topics are."""

    name_server: str

    def away(self, chance: random.Random) -> None:
        """Kill a gateway, and have it back after some seconds."""


class Embedded:
    """A gateway on its own log."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.name_server = gateway.name_server

    def away(self, chance: random.Random) -> None:
        """Kill it, and start it after some seconds."""
        self._gateway.kill()
        time.sleep(chance.uniform(0, AWAY_S))
        self._gateway.start()


class OnPulsar:
    """Two nodes of one broker on a Pulsar."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turn = 0
        self.name_server = cluster.name_server

    def away(self, chance: random.Random) -> None:
        """Kill the one that leads, and start it after some seconds."""
        self._cluster.nodes[self._turn % 2].kill()
        self._turn += 1
        time.sleep(chance.uniform(0, AWAY_S))
        self._cluster.start()


class Outcome(NamedTuple):
    """What came of it."""

    sent: int
    rows: dict[str, int]
    lost: list[str]
    doubled: list[str]
    strange: list[str]

    @property
    def is_right(self) -> bool:
        """Whether each row is there once."""
        return not self.lost + self.doubled + self.strange


def run(
    folder: Path,
    kills: int,
    chance: random.Random,
    place: Place,
    show: Callable[[str], object],
    plan: Plan,
) -> Outcome:
    """Kill so many times, one after the other of `VICTIMS`.

    Args:
        folder: For checkpoints and logs.
        kills: How often.
        chance: Says when.
        place: Where the topics are.
        show: Takes a line for each round.
        plan: How much there is to do, and on what.
    """
    topics = Topics(place.name_server)
    for topic in (*SOURCES, *SINKS):
        topics.extend(topic, QUEUES)
    job = _job(folder, place.name_server, plan)
    sent = 0
    began = time.monotonic()
    try:
        for number in range(kills):
            seen = {topic: ended(topics, topic) for topic in PROMPT}
            asyncio.run(_send(topics, range(sent, sent + plan.each_round)))
            sent += plan.each_round
            job.go_on_until(
                lambda seen=seen: all(
                    ended(topics, topic) > count for topic, count in seen.items()
                )
            )
            time.sleep(chance.uniform(0, plan.wait_s))
            victim = VICTIMS[number % len(VICTIMS)]
            killed = job.kill(victim, chance)
            if victim == "gateway":
                place.away(chance)
            show(
                f"kill {number + 1}: {victim} {killed}, after "
                f"{time.monotonic() - began:.0f} s, {job.starts} starts, of {sent}: "
                + ", ".join(f"{topic} {ended(topics, topic)}" for topic in SINKS)
            )
        # One in each queue closes the windows of all others.
        asyncio.run(_send(topics, range(END, END + 2 * KEYS, KEYS)))
        wanted = _wanted(sent)
        least = {topic: len(rows) for topic, rows in wanted.items()}
        # What is lost by then is told below.
        with suppress(TimeoutError):
            job.go_on_until(
                lambda: all(ended(topics, topic) >= least[topic] for topic in wanted)
            )
        found = {topic: Counter(topics.read(topic)) for topic in wanted}
    finally:
        job.end()
    return Outcome(
        sent=sent,
        rows={topic: rows.total() for topic, rows in found.items()},
        lost=[one for name in wanted for one in sorted(wanted[name] - {*found[name]})],
        doubled=[
            f"{name}: {one}"
            for name, rows in found.items()
            for one, times in rows.items()
            if times > 1
        ],
        strange=[
            one for name in wanted for one in sorted({*found[name]} - wanted[name])
        ],
    )


def _wanted(sent: int) -> dict[str, set[str]]:
    """What is to be in each topic, once."""
    numbers = [*range(sent), *range(END, END + 2 * KEYS, KEYS)]
    counted = Counter((at // WINDOW * WINDOW, at % KEYS) for at in range(sent))
    of_key = Counter(at % KEYS for at in numbers)
    told = {f"k{key} {at + 1}" for key, many in of_key.items() for at in range(many)}
    return {
        "numbered": told,
        "mirrored": told,
        "copies": {f"{at} k{at % KEYS}" for at in numbers},
        "counts": {f"{at} k{key} {many}" for (at, key), many in counted.items()},
        "joined": {f"{at} k{at % KEYS} label-{at}" for at in numbers},
    }


async def _send(topics: Topics, numbers: range) -> None:
    """Send numbers with their key, and their labels, spread over queues."""
    async with Producer(
        topics.name_server, "killed", config=PATIENT_PRODUCER
    ) as producer:
        for topic, word in (("labels", "label-{}"), ("numbers", "k{}")):
            queues = await producer.queues(topic)
            for at in numbers:
                said = word.format(at if topic == "labels" else at % KEYS)
                message = Message(topic, f"{at} {said}".encode())
                await producer.send(message, queues[at // KEYS % QUEUES])


def _job(folder: Path, name_server: str, plan: Plan) -> Job:
    script = folder / "driver.py"
    script.write_text(f"JAVA = {plan.java!r}\n{DRIVER}")
    command = [
        *(sys.executable, str(script)),
        *(name_server, str(folder), plan.master, str(plan.a_batch)),
    ]
    return Job(folder, command)


@contextmanager
def place_in(folder: Path, *, on_pulsar: bool) -> Iterator[Place]:
    """Servers with empty data, killed at the end."""
    with ExitStack() as stack:
        if not on_pulsar:
            gateway = Gateway(folder / "data")
            stack.callback(gateway.kill)
            gateway.start()
            yield Embedded(gateway)
            return
        pulsar, zookeeper = Pulsar(folder / "pulsar"), ZooKeeper(folder / "zookeeper")
        for one in (pulsar, zookeeper):
            stack.callback(one.kill)
            one.start()
        cluster = Cluster(
            *(folder / "cluster", pulsar, zookeeper.address),
            session_ms=SHORT_SESSION_MS,
        )
        stack.callback(cluster.kill)
        cluster.start()
        yield OnPulsar(cluster)


def main() -> None:
    """Kill, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pulsar", action="store_true", help="two nodes on a Pulsar")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    began = time.monotonic()
    builds.cache().mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=builds.cache(), prefix="killed-") as name,
        place_in(Path(name), on_pulsar=given.pulsar) as place,
    ):
        chance = random.Random(given.seed)
        found = run(Path(name), given.kills, chance, place, _show, Plan())
    _show(f"seed {given.seed}, {time.monotonic() - began:.0f} s, {found}")
    sys.exit(not found.is_right)


def _show(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
