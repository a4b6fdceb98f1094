"""What a server takes beside its work: memory, idle CPU, the time of its start."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks import servers, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.counters import Memory
    from benchmarks.servers import Server

SETTLE_S = 2.0
"""After a start or a load, until a server counts as idle."""
IDLE_PART = 3
"""Idleness is looked at for so many times the seconds of a case."""
STARTS = 3
"""The most that a run makes; with fewer rounds, one for each."""
START_TARGET_MIB, LOAD_TARGET_MIB = 30, 120
IDLE_TARGET_PERCENT = 0.05
START_TARGET_S = 0.4


@dataclass
class Resources:
    """Of one server over one run."""

    at_start: Memory
    most: Memory
    """The most anonymous and the most mapped memory after any case."""
    start_s: float
    idle_percent: list[float] = field(default_factory=list)
    """Of a core: before the load, and after it."""

    def see(self, server: Server) -> None:
        """Note its memory."""
        now = server.memory()
        self.most = type(now)(*map(max, self.most, now))


def at_start(
    running: list[Server], rounds: int, seconds: float
) -> dict[str, Resources]:
    """Look at servers that nobody has asked anything yet."""
    found = {}
    for server in running:
        now = server.memory()
        found[server.name] = Resources(now, now, _start_s(server, rounds))
    _idle(found, running, seconds)
    return found


def at_end(used: dict[str, Resources], running: list[Server], seconds: float) -> None:
    """Look at servers whose load has ended."""
    _idle(used, running, seconds)


def _start_s(server: Server, rounds: int) -> float:
    """The median time of starts with empty data; the machine's first is often slow."""
    more = []
    for _ in range(min(STARTS, rounds) - 1):
        with servers.running(server.make) as another:
            more.append(another.start_s)
    return statistics.median([server.start_s, *more])


def _idle(used: dict[str, Resources], running: list[Server], seconds: float) -> None:
    time.sleep(SETTLE_S)
    before = {server.name: server.cpu_s() for server in running}
    began = time.monotonic()
    time.sleep(seconds * IDLE_PART)
    took = time.monotonic() - began
    for server in running:
        busy = server.cpu_s() - before[server.name]
        used[server.name].idle_percent.append(busy / took * 100)


def _memory(when: str, kind: int) -> Callable[[Resources], float]:
    return lambda one: getattr(one, when)[kind]


def _idle_of(time_of_run: int) -> Callable[[Resources], float]:
    return lambda one: one.idle_percent[time_of_run]


def table_of(used: dict[str, Resources]) -> str:
    """The table, with what Ropeway has to reach."""
    ours = used["Ropeway"]
    rows: list[tuple[str, Callable[[Resources], float], float | None]] = [
        ("memory at start, anonymous, MiB", _memory("at_start", 0), START_TARGET_MIB),
        ("memory at start, mapped files, MiB", _memory("at_start", 1), None),
        ("most memory under load, anonymous, MiB", _memory("most", 0), LOAD_TARGET_MIB),
        ("most memory under load, mapped files, MiB", _memory("most", 1), None),
        ("idle CPU before the load, % of a core", _idle_of(0), IDLE_TARGET_PERCENT),
        ("idle CPU after the load, % of a core", _idle_of(1), IDLE_TARGET_PERCENT),
        ("start until it answers, s", lambda one: one.start_s, START_TARGET_S),
    ]
    return table.table(
        ("", *used, "target"),
        [
            (
                name,
                *(f"{of(one):,.2f}" for one in used.values()),
                table.at_most(limit, [of(ours)]),
            )
            for name, of, limit in rows
        ],
    )
