"""What is measured: each case one row, with what Ropeway has to reach in it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Flush = Literal["async", "sync"]
Program = Literal["load", "wake", "slow readers", "java produce", "java push"]

KIB = 1024
FILL = f"batch batch=100 size={KIB} window=4 ms=600000"


class Target(NamedTuple):
    """What Ropeway must reach, as a part or a multiple of RocketMQ's figure."""

    most_cpu: float
    """Server CPU a message."""
    least_rate: float
    """Messages a second."""


class Case(NamedTuple):
    """One row of the table."""

    name: str
    program: Program
    words: str
    """As the program takes them; for load.c and wake.c their own arguments."""
    target: Target | None = None
    flush: Flush = "async"
    fill: int = 0
    """Batches of 100 x 1 KiB that are there to be pulled."""
    bury: int = 0
    """Batches that come after them: 960 are more than Ropeway's tail cache holds."""
    cold: bool = False
    """The kernel is asked to drop the log's pages before."""

    @property
    def warmed(self) -> bool:
        """Whether the case runs shortly first; what is cold would be warm then."""
        return not self.cold and not self.program.startswith("java")


def _single(
    size: int, connections: int, target: Target | None, flush: Flush = "async"
) -> Case:
    name = f"single {size} B, {connections} connection{'s' * (connections > 1)}"
    return Case(
        name + ", sync flush" * (flush == "sync"),
        "load",
        f"send size={size} connections={connections}",
        target,
        flush,
    )


_PULL = "pull of 32 x 1 KiB"
_SINGLE = {
    (128, 1): Target(0.15, 1.2),
    (128, 16): Target(0.22, 1.2),
    (128, 64): Target(0.22, 2.2),
    (KIB, 1): Target(0.35, 1.2),
    (KIB, 64): Target(0.33, 1.8),
}
_PULLED = Target(0.25, 2.2)

CASES = (
    *(
        _single(size, connections, _SINGLE.get((size, connections)))
        for size in (128, KIB)
        for connections in (1, 16, 64)
    ),
    Case("pipelined 128 B, window 256", "load", "send window=256", Target(0.12, 2.0)),
    Case("batch of 100 x 1 KiB", "load", f"batch size={KIB}", Target(0.30, 1.5)),
    Case(
        "one-way 128 B, of 64 the last answered",
        "load",
        "oneway window=64",
        Target(0.12, 2.0),
    ),
    Case(
        "ordered 128 B, one queue, 16 connections",
        "load",
        "send connections=16 queues=1",
    ),
    Case(f"{_PULL}, tail", "load", "pull", _PULLED, fill=160),
    Case(
        f"{_PULL}, tail, 16 connections",
        "load",
        "pull connections=16",
        _PULLED,
        fill=160,
    ),
    Case(
        f"{_PULL}, page cache",
        "load",
        "pull",
        Target(0.30, 1.8),
        fill=160,
        bury=960,
    ),
    # One pass over all queues, each on a connection, so that nothing is read twice.
    Case(
        f"{_PULL}, cold, 8 connections",
        "load",
        "pull connections=8 count=1984",
        Target(0.50, 1.0),
        fill=640,
        bury=960,
        cold=True,
    ),
    *(
        Case(
            f"push consumers 1 KiB, Java, {clients} client{'s' * (clients > 1)}",
            "java push",
            f"clients={clients}",
            Target(0.30, 1.0),
        )
        for clients in (1, 8, 64)
    ),
    *(
        Case(
            f"producer 128 B, Java, {threads} thread{'s' * (threads > 1)}",
            "java produce",
            f"threads={threads} size=128",
        )
        for threads in (1, 64)
    ),
    Case("long poll, from send to pulled", "wake", ""),
    Case(
        "sends and pulls beside 10 % slow readers, requests",
        "slow readers",
        "slow=6 each=29",
        fill=160,
    ),
    _single(128, 64, Target(0.22, 1.0), "sync"),
)


def chosen(words: list[str]) -> list[Case]:
    """The cases with one of the words in their names; all where there are none."""
    found = [c for c in CASES if not words or any(word in c.name for word in words)]
    if not found:
        names = "\n".join(case.name for case in CASES)
        raise SystemExit(
            f"no case has {' or '.join(words)} in its name; there are:\n{names}"
        )
    return found
