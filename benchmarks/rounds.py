"""One round of one case on one server: prepare, warm up, run, count."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import cases, load, requests

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from benchmarks.cases import Case
    from benchmarks.java_load import JavaLoad
    from benchmarks.load import Report
    from benchmarks.servers import Server

WARM_PART = 4
"""The warm-up of a case takes a part of its time."""
JAVA_MESSAGES_A_SECOND = 100_000
"""What is there for Java consumers, for each second that a case has."""
PUSH_QUEUES = 64
SLOW_PULLS = 256
"""What a slow reader asks for at once: 8 MB."""
SLOW_READ_BYTES = 4096
SLOW_PAUSE_S = 0.02


class Result(NamedTuple):
    """One case on one server in one round."""

    rate: float
    """Messages a second."""
    cpu_us: float
    """Server CPU a message."""
    p50_us: float | None
    p99_us: float | None
    errors: int


class Round(NamedTuple):
    """What a case runs with."""

    server: Server
    case: Case
    topic: str
    seconds: float
    java: JavaLoad

    @property
    def ms(self) -> int:
        """How long the load asks."""
        return round(self.seconds * 1000)

    def words(self) -> dict[str, int]:
        """The numbers among the case's words."""
        pairs = (word.split("=") for word in self.case.words.split())
        return {name: int(number) for name, number in pairs}

    def result(self, report: Report, cpu_s: float) -> Result:
        """What was reported, with the CPU that it took."""
        return Result(
            report.messages / report.seconds,
            cpu_s * 1e6 / report.messages,
            report.p50_us,
            report.p99_us,
            report.errors,
        )


def measure(one: Round) -> Result:
    """Run a case."""
    case, port = one.case, one.server.port
    if case.fill:
        load.run("load", port, f"{cases.FILL} topic={one.topic} count={case.fill}")
    if case.bury:
        load.run("load", port, f"{cases.FILL} topic=bench_other count={case.bury}")
    if case.cold:
        one.server.drop_pages()
    if case.warmed:
        PROGRAMS[case.program](one._replace(seconds=one.seconds / WARM_PART))
    return PROGRAMS[case.program](one)


def _native(one: Round) -> Result:
    before = one.server.cpu_s()
    report = load.run(
        one.case.program,
        one.server.port,
        f"{one.case.words} topic={one.topic} ms={one.ms}",
    )
    return one.result(report, one.server.cpu_s() - before)


def _beside_slow_readers(one: Round) -> Result:
    """Half of the rest sends, half pulls: both count, the sends' waiting is told."""
    words = one.words()
    with slow_readers(one.server.port, one.topic, words["slow"]):
        before = one.server.cpu_s()
        options = f"connections={words['each']} ms={one.ms}"
        pulls = load.Running(
            "load", one.server.port, f"pull {options} topic={one.topic}"
        )
        sends = load.run("load", one.server.port, f"send {options}")
        pulled = pulls.report()
        cpu_s = one.server.cpu_s() - before
    both = sends._replace(
        messages=sends.requests + pulled.requests, errors=sends.errors + pulled.errors
    )
    return one.result(both, cpu_s)


def _java_produce(one: Round) -> Result:
    words = one.words()
    address = one.server.started.name_server
    one.java.command(
        f"produce {address} {one.topic} {words['threads']} {words['size']} {one.ms}"
    )
    one.java.wait_for("began")
    before = one.server.cpu_s()
    report = one.java.report()
    return one.result(report, one.server.cpu_s() - before)


def _java_push(one: Round) -> Result:
    clients, port = one.words()["clients"], one.server.port
    address = one.server.started.name_server
    batches = round(one.seconds * JAVA_MESSAGES_A_SECOND / 100)
    requests.create_topic(port, one.topic, PUSH_QUEUES)
    one.java.command(
        f"consume {address} {one.topic} {one.topic}_group {clients} {PUSH_QUEUES}"
    )
    one.java.wait_for("ready")
    options = f"topic={one.topic} queues={PUSH_QUEUES} count={batches}"
    load.run("load", port, f"{cases.FILL} {options}")
    one.java.command(f"go {batches * 100}")
    one.java.wait_for("began")
    before = one.server.cpu_s()
    report = one.java.report()
    cpu_s = one.server.cpu_s() - before
    one.java.command("end")
    one.java.wait_for("stopped")
    return one.result(report, cpu_s)


PROGRAMS: dict[str, Callable[[Round], Result]] = {
    "load": _native,
    "wake": _native,
    "slow readers": _beside_slow_readers,
    "java produce": _java_produce,
    "java push": _java_push,
}


@contextmanager
def slow_readers(port: int, topic: str, count: int) -> Iterator[None]:
    """Connections that ask for much and take little of it, 200 KB a second each."""
    ended = threading.Event()
    connections = [requests.connect(port) for _ in range(count)]
    for connection in connections:
        connection.sendall(requests.pull(topic, 0, 0) * SLOW_PULLS)
    reader = threading.Thread(target=_read_slowly, args=(connections, ended))
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()
        for connection in connections:
            connection.close()


def _read_slowly(connections: list[socket.socket], ended: threading.Event) -> None:
    while not ended.wait(SLOW_PAUSE_S):
        for connection in connections:
            connection.recv(SLOW_READ_BYTES)
