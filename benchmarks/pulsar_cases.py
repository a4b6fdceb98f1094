"""What is measured on Pulsar, and what it is held to: figures of RoP 0.2.0."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks import cases
from benchmarks.cases import KIB, Case

MORE_GATEWAY_CPU_US = 6.0
"""The most that a message may cost the gateway beyond what the embedded log costs."""
ROP_RATE = 3.0
"""How many times RoP's messages a second."""
ROP_CPU = 0.5
"""What part of RoP's CPU the gateway and Pulsar may take together."""


class RoP(NamedTuple):
    """RoP 0.2.0 with Pulsar in one process, which is how it runs.

    Measured on a machine like this one with the same raw frames of 128 B and 1 KiB;
    a range stands for both sizes and several runs. The best of each range is what
    Ropeway is held to.
    """

    rate: float
    """Messages a second."""
    cpu_us: float | None
    """Of the process, with broker and bookie, a message; None where it is not known."""
    shown: str
    """Both as they were found."""


# One connection: 84 sends a second, 12 ms each. A pull of 32 takes 10 ms.
ROP = {
    "single, 1 connection": RoP(84, None, "84"),
    "single, 64 connections": RoP(4_000, 300, "3,000-4,000; 300-465 us"),
    "pipelined": RoP(12_400, 117, "8,500-12,400; 117-187 us"),
    "pull": RoP(3_200, None, "3,200"),
}

LATENCY = {128: "single 128 B, 1 connection", KIB: "single 1024 B, 1 connection"}
"""The cases whose waiting is compared with that of Pulsar's own client."""
PIPELINED = {128: "pipelined 128 B, window 256", KIB: "pipelined 1024 B, window 256"}
BATCHES = {
    128: "batches of 100 x 128 B, window 16",
    KIB: "batches of 100 x 1 KiB, window 16",
}

_ALSO_BESIDE_ROCKETMQ = (
    *("single 128 B, 1 c", "single 128 B, 16 c", "single 128 B, 64 connections"),
    *("single 1024 B, 1 c", "single 1024 B, 16 c", "single 1024 B, 64 c"),
    *(PIPELINED[128], "batch of 100", "32 x 1 KiB, tail"),
)

CASES = (
    *(cases.chosen([name])[0] for name in _ALSO_BESIDE_ROCKETMQ),
    Case(PIPELINED[KIB], "load", f"send window=256 size={KIB}"),
    Case(BATCHES[128], "load", "batch window=16 size=128"),
    Case(BATCHES[KIB], "load", f"batch window=16 size={KIB}"),
)


def rop(case: Case) -> RoP | None:
    """What RoP does in a case, where that was measured."""
    kind, _, rest = case.name.partition(" ")
    if kind == "single":
        return ROP.get(f"single, {rest.rpartition(', ')[2]}")
    return ROP.get(kind)


def chosen(words: list[str]) -> list[Case]:
    """The cases with one of the words in their names; all where there are none."""
    return [
        one for one in CASES if not words or any(word in one.name for word in words)
    ]
