"""What requests cost a broker: messages a second, server CPU a message, waiting.

    $ python benchmarks/remoting.py
    $ python benchmarks/remoting.py --seconds 1 --rounds 1 single pull
    $ python benchmarks/remoting.py --markdown --broker RocketMQ=10911,4711

It starts Ropeway, loads it with `load.c` (built with gcc on first use), and reads its
CPU time, all threads, from /proc. Brokers that run already are named by port and
process id; in each round each case runs on every server in turn. Words select the
cases that have one of them in their names.

CPU is that of the cheapest round, since whatever else runs on the machine only adds
to it; all other numbers are medians over the rounds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
KIB = 1024
FILL = f"batch batch=100 size={KIB} window=4"
FILL_BATCHES = 160
"""What pulls go round in: 16 MB."""
OTHER_BATCHES = 960
"""What comes after it: 96 MB, more than Ropeway's tail cache holds."""
STOP_S = 30
CLOCK_HZ = os.sysconf("SC_CLK_TCK")


class Case(NamedTuple):
    """One row: what to ask for, as load.c takes it."""

    name: str
    load: str
    flush: Literal["async", "sync"] = "async"
    old: bool = False
    """Pull what other messages have pushed out of the tail cache."""

    @property
    def pulls(self) -> bool:
        """Whether there has to be something to pull."""
        return self.load.startswith("pull")


CASES = (
    *(
        Case(
            f"single {size} B, {connections} connections",
            f"send size={size} connections={connections}",
        )
        for size in (128, KIB)
        for connections in (1, 16, 64)
    ),
    *(
        Case(f"pipelined 128 B, window {window}", f"send size=128 window={window}")
        for window in (64, 256)
    ),
    Case("one-way 128 B, of 64 the last answered", "oneway size=128 window=64"),
    Case("batch of 100 x 1 KiB", f"batch batch=100 size={KIB}"),
    Case("pull of 32 x 1 KiB, tail", "pull pull=32"),
    Case("pull of 32 x 1 KiB, tail, 16 connections", "pull pull=32 connections=16"),
    Case("pull of 32 x 1 KiB, page cache", "pull pull=32", old=True),
    Case(
        "single 128 B, 64 connections, sync flush", "send connections=64", flush="sync"
    ),
)


class Server(NamedTuple):
    """A running broker."""

    name: str
    port: int
    pid: int
    flush: Literal["async", "sync"]

    def cpu_s(self) -> float:
        """CPU time of all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_HZ

    def rss_mib(self) -> float:
        """Memory that it has now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s*(\d+) kB", status)
        return int(found[1]) / KIB if found else 0.0


class Result(NamedTuple):
    """One case on one server: one round, or all rounds together."""

    messages_a_second: float
    cpu_us_a_message: float
    cpu_us_a_request: float
    p50_us: float
    p99_us: float
    rss_mib: float


def cache() -> Path:
    """The folder for what can be made again."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ROPEWAY_CACHE") or user / "ropeway")


def build() -> Path:
    """The load generator, built where its source has changed."""
    source = HERE / "load.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:20]
    program = cache() / "builds" / f"load-{digest}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        new = program.with_suffix(f".{os.getpid()}")
        flags = ["-O2", "-Wall", "-Wextra", "-std=gnu11"]
        subprocess.run(["gcc", *flags, "-o", new, source], check=True)
        new.rename(program)
    return program


@contextmanager
def ropeway(flush: Literal["async", "sync"]) -> Iterator[Server]:
    """Ropeway on a free port, with an empty log on a disk."""
    with tempfile.TemporaryDirectory(dir=cache()) as data:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gateway.cli.main", "serve"),
                *("--data", data, "--listen", "127.0.0.1:0", "--flush", flush),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"127\.0\.0\.1:(\d+)", line):
                    yield Server("Ropeway", int(found[1]), process.pid, flush)
                    break
            else:
                raise SystemExit("Ropeway has not started")
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)


def running(text: str) -> Server:
    """A broker given as NAME=PORT,PID or NAME=PORT,PID,sync."""
    name, _, place = text.partition("=")
    port, pid, *flush = place.split(",")
    return Server(name, int(port), int(pid), "sync" if flush == ["sync"] else "async")


def load(program: Path, server: Server, what: str) -> dict[str, float]:
    """Run the load generator once."""
    done = subprocess.run(
        [program, str(server.port), *what.split()], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise SystemExit(f"{server.name}: {what}: {done.stdout.decode() or 'failed'}")
    report: dict[str, float] = json.loads(done.stdout)
    return report


def measure(
    program: Path, server: Server, case: Case, seconds: float, number: int
) -> Result:
    """Prepare, warm up, and run one case."""
    topic = "bench"
    if case.pulls:
        topic = f"bench_pull_{CASES.index(case)}_{number}"
        load(program, server, f"{FILL} topic={topic} count={FILL_BATCHES}")
    if case.old:
        load(program, server, f"{FILL} topic=bench_other count={OTHER_BATCHES}")
    what = f"{case.load} topic={topic}"
    load(program, server, f"{what} ms={seconds * 250:.0f}")
    before = server.cpu_s()
    report = load(program, server, f"{what} ms={seconds * 1000:.0f}")
    cpu_us = (server.cpu_s() - before) * 1e6
    return Result(
        report["messages"] / report["seconds"],
        cpu_us / report["messages"],
        cpu_us / report["requests"],
        report["p50_us"],
        report["p99_us"],
        server.rss_mib(),
    )


def together(rounds: list[Result]) -> Result:
    """The cheapest round's CPU, and medians."""
    medians = Result(*map(statistics.median, zip(*rounds, strict=True)))
    return medians._replace(
        cpu_us_a_message=min(one.cpu_us_a_message for one in rounds),
        cpu_us_a_request=min(one.cpu_us_a_request for one in rounds),
    )


Results = dict[tuple[Case, str], list[Result]]
HEADINGS = [
    *("case", "server", "messages/s", "us CPU/message", "us CPU/request"),
    *("CPU to the first", "p50 us", "p99 us", "RSS MiB"),
]


def rows(results: Results) -> Iterator[list[str]]:
    """The table's rows."""
    first: dict[Case, float] = {}
    for (case, name), rounds in results.items():
        result = together(rounds)
        cpu = result.cpu_us_a_message
        yield [
            case.name,
            name,
            f"{result.messages_a_second:,.0f}",
            f"{cpu:.1f}",
            f"{result.cpu_us_a_request:.1f}",
            f"{cpu / first.setdefault(case, cpu):.1f}",
            f"{result.p50_us:,.0f}",
            f"{result.p99_us:,.0f}",
            f"{result.rss_mib:,.0f}",
        ]


def show(results: Results, *, markdown: bool) -> None:
    """Print the table."""
    table = [HEADINGS, *rows(results)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if markdown:
        table.insert(1, ["-" * width for width in widths[:2]])
        table[1] += ["-" * (width - 1) + ":" for width in widths[2:]]
    for row in table:
        cells = [
            cell.ljust(width) if index < 2 else cell.rjust(width)  # the two names
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of the names of cases")
    parser.add_argument("--seconds", type=float, default=3.0, help="a case and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--broker", type=running, action="append", default=[])
    parser.add_argument("--no-ropeway", action="store_true")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="every round")
    form.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    cases = [
        case
        for case in CASES
        if not given.words or any(word in case.name for word in given.words)
    ]
    program = build()
    results: Results = {}
    with ExitStack() as stack:
        servers = list(given.broker)
        if not given.no_ropeway:
            servers[:0] = [
                stack.enter_context(ropeway(flush))
                for flush in dict.fromkeys(case.flush for case in cases)
            ]
        for number in range(given.rounds):
            for case in cases:
                for server in servers:
                    if server.flush == case.flush:
                        result = measure(program, server, case, given.seconds, number)
                        results.setdefault((case, server.name), []).append(result)
    if given.json:
        for (case, name), rounds in results.items():
            for result in rounds:
                print(
                    json.dumps({"case": case.name, "server": name, **result._asdict()})
                )
    else:
        show(results, markdown=given.markdown)


if __name__ == "__main__":
    main()
