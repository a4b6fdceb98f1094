"""What the rounds on Pulsar have found, as tables."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks import pulsar_cases, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.cases import Case
    from benchmarks.pulsar_cold import Cold
    from benchmarks.pulsar_rounds import Measured

CASES = (
    *("case", "on Pulsar msg/s", "embedded msg/s"),
    *("on Pulsar p50 / p99 us", "embedded p50 / p99 us"),
    *("gateway us CPU", "embedded us CPU", "more by", "target"),
    *("Pulsar us CPU", "both us CPU"),
)
ROP = (
    *("case", "RoP msg/s; CPU", "Ropeway msg/s", "times RoP's", "target"),
    *("both us CPU", "part of RoP's", "CPU target"),
)
SENDERS = (
    *("sender", "msg/s", "us CPU", "Pulsar us CPU"),
    *("gateway's case", "gateway by it", "target"),
)
LATENCY = (
    *("single send", "through the gateway p50 / p99 us"),
    *("pulsar-client p50 / p99 us", "p50 more by us", "p99 more by us"),
)
COLD = (
    *("cold read", "first answer ms", "msg/s"),
    *("gateway us CPU", "Pulsar us CPU"),
)
LEAST_OF_ONE_BY_ONE, LEAST_OF_PERF = 3.0, 0.5
"""What the gateway must reach of pulsar-client's and of pulsar-perf's messages."""

Rounds = dict[str, list["Measured"]]
"""What was measured of a case or sender, by name, a value a round."""


def cases(chosen: Sequence[Case], ours: Rounds, embedded: Rounds) -> str:
    """The gateway on Pulsar, beside the embedded log."""

    def rows() -> Iterator[list[str]]:
        for case in chosen:
            on, off = ours[case.name], embedded[case.name]
            more = [a.own_us - b.own_us for a, b in zip(on, off, strict=True)]
            yield [
                case.name,
                middle(on, _rate, ",.0f"),
                middle(off, _rate, ",.0f"),
                waits(on),
                waits(off),
                middle(on, _own, ".2f"),
                middle(off, _own, ".2f"),
                table.spread(more),
                table.at_most(pulsar_cases.MORE_GATEWAY_CPU_US, more),
                middle(on, _pulsar, ".2f"),
                middle(on, _both, ".2f"),
            ]

    return table.table(CASES, rows())


def rop(chosen: Sequence[Case], ours: Rounds) -> str:
    """The gateway and Pulsar together, beside what RoP needs."""

    def rows() -> Iterator[list[str]]:
        for case in chosen:
            found = pulsar_cases.rop(case)
            if found is None:
                continue
            on = ours[case.name]
            times = [one.rate / found.rate for one in on]
            part = [one.both_us / found.cpu_us for one in on if found.cpu_us]
            yield [
                case.name,
                found.shown,
                middle(on, _rate, ",.0f"),
                table.spread(times),
                table.at_least(pulsar_cases.ROP_RATE, times),
                middle(on, _both, ".2f"),
                table.spread(part),
                table.at_most(pulsar_cases.ROP_CPU, part),
            ]

    return table.table(ROP, rows())


def senders(
    theirs: Rounds, ours: Rounds, pairs: Sequence[tuple[str, str, float | None]]
) -> str:
    """Pulsar's own clients, each beside a case of the gateway.

    Args:
        theirs: By the sender's name.
        ours: By the case's name.
        pairs: A sender, a case, and what the case must reach of the sender.
    """

    def rows() -> Iterator[list[str]]:
        for sender, case, least in pairs:
            if sender not in theirs or case not in ours:
                continue
            one, other = theirs[sender], ours[case]
            by = [a.rate / b.rate for a, b in zip(other, one, strict=True)]
            yield [
                sender,
                middle(one, _rate, ",.0f"),
                middle(one, _own, ".2f") if one[0].own_us else "-",
                middle(one, _pulsar, ".2f"),
                case,
                table.spread(by),
                table.at_least(least, by),
            ]

    return table.table(SENDERS, rows())


def latency(ours: Rounds, theirs: Rounds, pairs: Sequence[tuple[str, str]]) -> str:
    """What a single send waits longer, by case and sender."""

    def rows() -> Iterator[list[str]]:
        for case, sender in pairs:
            if sender not in theirs or case not in ours:
                continue
            on, off = ours[case], theirs[sender]
            p50 = [a.p50_us - b.p50_us for a, b in zip(on, off, strict=True)]
            p99 = [a.p99_us - b.p99_us for a, b in zip(on, off, strict=True)]
            yield [case, waits(on), waits(off), whole(p50), whole(p99)]

    return table.table(LATENCY, rows())


def cold(found: dict[str, list[Cold]]) -> str:
    """Cold reads, by what was read."""
    return table.table(
        COLD,
        [
            [
                name,
                table.spread([one.first_ms for one in reads]),
                whole([one.rest.rate for one in reads]),
                middle([one.rest for one in reads], _own, ".2f"),
                middle([one.rest for one in reads], _pulsar, ".2f"),
            ]
            for name, reads in found.items()
        ],
    )


def refused(*found: Rounds) -> Iterator[str]:
    """A line for each case or sender with answers that said no."""
    for rounds in found:
        for name, measured in rounds.items():
            if errors := sum(one.errors for one in measured):
                yield f"\n{errors:,} requests of *{name}* were refused."


def middle(values: list[Measured], of: Callable[[Measured], float], form: str) -> str:
    """The median of one figure."""
    return format(statistics.median(of(one) for one in values), form)


def waits(values: list[Measured]) -> str:
    """The medians of p50 and p99."""
    p50 = statistics.median(one.p50_us for one in values)
    p99 = statistics.median(one.p99_us for one in values)
    return f"{p50:,.0f} / {p99:,.0f}"


def whole(values: Sequence[float]) -> str:
    """Median and range of large figures."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):,.0f} [{low:,.0f}-{high:,.0f}]"


def _rate(one: Measured) -> float:
    return one.rate


def _own(one: Measured) -> float:
    return one.own_us


def _pulsar(one: Measured) -> float:
    return one.pulsar_us


def _both(one: Measured) -> float:
    return one.both_us
