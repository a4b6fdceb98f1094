"""Ropeway and RocketMQ's broker as they are measured: each started alone, on a disk."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import counters
from benchmarks.cases import Flush
from benchmarks.rust_broker import RustBroker
from tests import builds
from tests.system.rocketmq import RocketMQ
from tests.system.rocketmq_proxy import RocketMQWithProxy
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator

# As runbroker.sh of RocketMQ 5.5.0 has them, with less heap, and without touching
# all of it at the start, which would only make its memory look larger.
BROKER_JAVA = [
    *("-server", "-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=1g"),
    *("-XX:+UseG1GC", "-XX:G1HeapRegionSize=16m", "-XX:G1ReservePercent=25"),
    *("-XX:InitiatingHeapOccupancyPercent=30", "-XX:SoftRefLRUPolicyMSPerMB=0"),
    *("-XX:-OmitStackTraceInFastThrow", "-XX:-UseLargePages"),
]
SETTLE_S = 0.2
"""What a server has put off while it was stopped, it does in this time."""


Started = Ropeway | RocketMQ
Make = Callable[[Path, Flush], Started]
"""Prepares a server in a directory, with one kind of flush."""


class Server(NamedTuple):
    """A server that runs."""

    make: Make
    started: Started
    start_s: float
    """How long it took until it answered."""

    @property
    def name(self) -> str:
        """Ropeway or RocketMQ."""
        return self.started.name.split()[0]

    @property
    def port(self) -> int:
        """Where clients send and pull."""
        return self.started.broker_port

    @property
    def pid(self) -> int:
        """The process that is measured, with all that it starts."""
        return self.started.broker_pid

    @property
    def pids(self) -> list[int]:
        """All processes that do a client's work; the name server does none."""
        if isinstance(self.started, RocketMQWithProxy):
            return [self.pid, self.started.proxy_pid]
        return [self.pid]

    def cpu_s(self) -> float:
        """CPU time so far."""
        return sum(map(counters.cpu_s, self.pids))

    def memory(self) -> counters.Memory:
        """Memory now."""
        return counters.memory(self.pid)

    @contextmanager
    def alone(self, others: list[Server]) -> Iterator[None]:
        """Stop the others' processes for a while: an idle JVM takes CPU, too."""
        asleep = [server for server in others if server is not self]
        for server in asleep:
            _signal(server, signal.SIGSTOP)
        try:
            yield
        finally:
            for server in asleep:
                _signal(server, signal.SIGCONT)
            time.sleep(SETTLE_S)

    def drop_pages(self) -> None:
        """Ask the kernel to forget the log's pages.

        It does not drop what a process has mapped, which the broker does with all of
        its files and Ropeway with none.
        """
        drop_pages(self.started.log_files)


def drop_pages(folder: Path) -> None:
    """Ask the kernel to forget the pages of all files in a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def _signal(server: Server, number: int) -> None:
    for pid in server.pids:
        for one in counters.tree(pid):
            os.kill(one, number)


def ropeway(directory: Path, flush: Flush) -> Ropeway:
    """Ropeway with its defaults."""
    return Ropeway(directory, sync_flush=flush == "sync")


def rocketmq(directory: Path, flush: Flush) -> RocketMQ:
    """The broker with its defaults and 1 GiB of heap."""
    return RocketMQ(
        directory,
        sync_flush=flush == "sync",
        broker_java=BROKER_JAVA,
        settings={},
    )


def rust(program: Path, directory: Path, flush: Flush) -> RocketMQ:
    """The broker in Rust with its defaults."""
    return RustBroker(directory, program, sync_flush=flush == "sync")


@contextmanager
def running(make: Make, flush: Flush = "async") -> Iterator[Server]:
    """A server with empty data, killed at the end."""
    builds.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=builds.cache(), prefix="bench-") as folder:
        server = make(Path(folder), flush)
        began = time.monotonic()
        try:
            server.start()
            yield Server(make, server, time.monotonic() - began)
        finally:
            server.kill()
