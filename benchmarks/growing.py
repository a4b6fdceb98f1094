"""The kinds of growth: what is made more of, and the work whose cost is looked at."""

from __future__ import annotations

import itertools
import random
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import load, requests
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.servers import Server

TOPIC = "growth"
WIDEST_TOPIC = 1000
"""Queues of one topic; more queues are more topics."""
SEND_CONNECTIONS = 16
FILL_BATCH = 100
QUEUES = 8
"""What load.c sends to in turn."""


class Figures(NamedTuple):
    """What one piece of work took."""

    cpu_us: float
    """Server CPU a message, or a request where the work is no sending."""
    p50_us: float
    p99_us: float


class Kind(NamedTuple):
    """One thing there can be more of."""

    name: str
    sizes: tuple[int, ...]
    grow: Callable[[Server, int], None]
    """Make a new server so large."""
    work: Callable[[Server, int, float], Iterator[tuple[str, Figures]]]
    """Do the work for so many seconds; names it."""
    restarts: bool = False
    """Whether it is killed and started again before the work."""


def native(server: Server, words: str) -> Figures:
    """Run load.c.

    Raises:
        RuntimeError: the server refused something; the cost of that is another one.
    """
    before = server.cpu_s()
    report = load.run("load", server.port, words)
    cpu_us = (server.cpu_s() - before) * 1e6 / report.requests
    if report.errors:
        raise RuntimeError(f"{report.errors} requests refused of: {words}")
    assert report.p50_us is not None
    assert report.p99_us is not None
    return Figures(cpu_us, report.p50_us, report.p99_us)


def asked(server: Server, frames: Iterator[bytes], seconds: float) -> Figures:
    """Ask one request after the other over one connection."""
    waits: list[float] = []
    with requests.connect(server.port) as connection:
        before = server.cpu_s()
        until = time.perf_counter() + seconds
        for frame in frames:
            began = time.perf_counter()
            if code := requests.ask(connection, frame):
                raise RuntimeError(f"request refused with code {code}")
            ended = time.perf_counter()
            waits.append((ended - began) * 1e6)
            if ended > until:
                break
        cpu_us = (server.cpu_s() - before) * 1e6 / len(waits)
    waits.sort()
    return Figures(cpu_us, waits[len(waits) // 2], waits[len(waits) * 99 // 100])


def nothing(_server: Server, _size: int) -> None:
    """What grows comes with the work."""


def make_queues(server: Server, size: int) -> None:
    """Topics with so many queues in all, each queue with a message."""
    for number in range(0, size, WIDEST_TOPIC):
        queues = min(WIDEST_TOPIC, size - number)
        topic = f"{TOPIC}_{number}"
        requests.create_topic(server.port, topic, queues)
        load.run(
            "load", server.port, f"send topic={topic} queues={queues} count={queues}"
        )


def send_to_queues(
    server: Server, size: int, seconds: float
) -> Iterator[tuple[str, Figures]]:
    """Sends to one topic after the other, each to all of its queues in turn."""
    topics = range(0, size, WIDEST_TOPIC)
    figures = []
    for number in topics:
        queues = min(WIDEST_TOPIC, size - number)
        words = f"send topic={TOPIC}_{number} queues={queues} connections=16"
        figures.append(native(server, f"{words} ms={seconds * 1000 / len(topics):.0f}"))
    mean = (sum(column) / len(figures) for column in zip(*figures, strict=True))
    yield "send 128 B, 16 connections", Figures(*mean)


def send_beside_idle(
    server: Server, size: int, seconds: float
) -> Iterator[tuple[str, Figures]]:
    """Sends on one connection beside those that have asked once."""
    with idle_connections(server.port, size - 1):
        figures = native(server, f"send ms={seconds * 1000:.0f}")
        yield "send 128 B, one busy connection", figures


@contextmanager
def idle_connections(port: int, count: int) -> Iterator[None]:
    """Connections that the server knows and that ask nothing more."""
    question = encode_frame(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, fields={"topic": "TBW102"}
    )
    with ExitStack() as opened:
        for _ in range(count):
            requests.ask(opened.enter_context(requests.connect(port)), question)
        yield


def store(server: Server, size: int) -> None:
    """So many messages of 128 B in 8 queues."""
    words = f"batch size=128 window=4 ms=600000 count={size // FILL_BATCH}"
    load.run("load", server.port, f"{words} topic={TOPIC}")


def pull_anywhere(
    server: Server, size: int, seconds: float
) -> Iterator[tuple[str, Figures]]:
    """Pulls of 32 at random offsets, and sends as ever."""
    chance = random.Random(size)
    shortest = size // FILL_BATCH // QUEUES * FILL_BATCH
    pulls = (
        requests.pull(TOPIC, chance.randrange(QUEUES), chance.randrange(shortest - 32))
        for _ in itertools.count()
    )
    yield "pull of 32 x 128 B at random offsets", asked(server, pulls, seconds)
    words = f"send connections={SEND_CONNECTIONS} topic=other"
    yield (
        "send 128 B, 16 connections",
        native(server, f"{words} ms={seconds * 1000:.0f}"),
    )


def store_some(server: Server, _size: int) -> None:
    """What the groups read."""
    words = f"batch size=128 topic={TOPIC} count={10 * QUEUES}"
    load.run("load", server.port, words)


@contextmanager
def members(port: int, groups: int) -> Iterator[None]:
    """One member of each group, on a connection of its own."""
    with ExitStack() as opened:
        for number in range(groups):
            connection = opened.enter_context(requests.connect(port))
            requests.ask(connection, heartbeat(number))
            for queue_id in range(QUEUES):
                requests.ask(connection, commit(number, queue_id))
        yield


def use_groups(
    server: Server, size: int, seconds: float
) -> Iterator[tuple[str, Figures]]:
    """What members of groups do, each time of another group, and sends."""
    numbers = itertools.cycle(range(size))
    commits = (commit(number, number % QUEUES) for number in numbers)
    pulls = (
        requests.pull(TOPIC, number % QUEUES, 0, group=f"group_{number}")
        for number in numbers
    )
    words = f"send connections={SEND_CONNECTIONS} topic={TOPIC}"
    with members(server.port, size):
        yield "commit of an offset", asked(server, commits, seconds)
        yield "pull of 32 x 128 B", asked(server, pulls, seconds)
        figures = native(server, f"{words} ms={seconds * 1000:.0f}")
        yield "send 128 B, 16 connections", figures


def heartbeat(number: int) -> bytes:
    """The frame by which a client says that it consumes."""
    group = bodies.ConsumerData(
        group_name=f"group_{number}",
        subscription_data_set=[bodies.SubscriptionData(topic=TOPIC, sub_string="*")],
    )
    data = bodies.HeartbeatData(
        client_id=f"client_{number}", consumer_data_set=[group], producer_data_set=[]
    )
    return encode_frame(RequestCode.HEART_BEAT, 1, body=bodies.encode(data))


def commit(number: int, queue_id: int) -> bytes:
    """The frame by which a group says how far it has read."""
    header = UpdateConsumerOffset(
        consumer_group=f"group_{number}",
        topic=TOPIC,
        queue_id=queue_id,
        commit_offset=number % FILL_BATCH,
    )
    return encode_frame(RequestCode.UPDATE_CONSUMER_OFFSET, 1, fields=to_fields(header))


KINDS = (
    Kind("queues", (1, 100, 10_000), make_queues, send_to_queues),
    Kind("connections", (1, 100, 2_000, 10_000), nothing, send_beside_idle),
    Kind(
        "stored messages",
        (10_000, 100_000, 1_000_000, 10_000_000),
        store,
        pull_anywhere,
        restarts=True,
    ),
    Kind("consumer groups", (1, 10, 100, 1_000), store_some, use_groups),
)
