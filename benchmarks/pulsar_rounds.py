"""One round of one case, with the CPU of each process that takes part in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks import cases, counters, load

if TYPE_CHECKING:
    from benchmarks.cases import Case
    from benchmarks.load import Report

WARM_PART = 4
"""The warm-up of a case takes a part of its time."""


class Measured(NamedTuple):
    """One load on one log, in one round."""

    rate: float
    """Messages a second."""
    own_us: float
    """CPU a message of whoever speaks to the log: the gateway, or Pulsar's client."""
    pulsar_us: float
    """CPU a message of Pulsar; 0 where none takes part."""
    p50_us: float = 0.0
    p99_us: float = 0.0
    errors: int = 0

    @property
    def both_us(self) -> float:
        """CPU a message of both together."""
        return self.own_us + self.pulsar_us


def measure(
    port: int, pids: tuple[int, int | None], case: Case, topic: str, seconds: float
) -> Measured:
    """Run a case through a Ropeway, shortly at first.

    Args:
        port: Of the Ropeway.
        pids: Its process, and Pulsar's where it is on one.
        case: What is asked.
        topic: What for; where there is something to pull, one that is new.
        seconds: How long.
    """
    if case.fill:
        load.run("load", port, f"{cases.FILL} topic={topic} count={case.fill}")
    words = f"{case.words} topic={topic}"
    load.run("load", port, f"{words} ms={round(seconds * 1000 / WARM_PART)}")
    before = cpu_of(pids)
    report = load.run("load", port, f"{words} ms={round(seconds * 1000)}")
    return measured(report, before, cpu_of(pids))


def cpu_of(pids: tuple[int, int | None]) -> tuple[float, float]:
    """CPU time of both so far, in seconds."""
    own, pulsar = pids
    return counters.cpu_s(own), counters.cpu_s(pulsar) if pulsar else 0.0


def measured(
    report: Report, before: tuple[float, float], after: tuple[float, float]
) -> Measured:
    """What was reported, with the CPU that it took."""
    a_message = 1e6 / report.messages
    return Measured(
        report.messages / report.seconds,
        (after[0] - before[0]) * a_message,
        (after[1] - before[1]) * a_message,
        report.p50_us or 0.0,
        report.p99_us or 0.0,
        report.errors,
    )
