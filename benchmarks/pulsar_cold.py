"""Reading what the gateway has not in memory: from the beginning, and from anywhere."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import load
from benchmarks.pulsar_rounds import cpu_of, measured

if TYPE_CHECKING:
    from benchmarks.pulsar_rounds import Measured
    from benchmarks.pulsar_servers import Deployment

TOPIC = "bench_cold"
BATCH = 100
PULL = 32
PART = 2
"""From a random offset, of the first half, that much of all is read."""


class Cold(NamedTuple):
    """One reading."""

    first_ms: float
    """How long the first answer took."""
    rest: Measured
    """Everything that came after it."""


def fill(deployment: Deployment, messages: int) -> None:
    """Store messages of 128 B in one queue."""
    words = f"batch batch={BATCH} size=128 window=16 queues=1 ms=600000"
    count = messages // BATCH
    done = load.run(
        "load", deployment.gateway.port, f"{words} topic={TOPIC} count={count}"
    )
    if done.errors:
        raise RuntimeError(f"{done.errors} of {count} batches were not stored")


def from_the_beginning(deployment: Deployment, messages: int) -> Cold:
    """Read everything."""
    return _read(deployment, 0, messages)


def from_anywhere(deployment: Deployment, messages: int) -> Cold:
    """Read half of it, from an offset in the first half."""
    half = messages // PART
    return _read(deployment, random.randrange(1, half), half)


def _read(deployment: Deployment, offset: int, messages: int) -> Cold:
    """Read with one pull after the other, as a consumer reads a queue."""
    deployment.make_cold()
    deployment.wait_for_queue(TOPIC)
    port = deployment.gateway.port
    words = f"pull queues=1 pull={PULL} ms=600000 topic={TOPIC}"
    first = load.run("load", port, f"{words} offset={offset} count=1")
    pids = deployment.gateway.pid, deployment.pulsar.pid
    before = cpu_of(pids)
    left = messages - first.messages
    rest = load.run(
        "load",
        port,
        f"{words} offset={offset + first.messages} count={left // PULL}",
    )
    return Cold((first.p50_us or 0.0) / 1000, measured(rest, before, cpu_of(pids)))
