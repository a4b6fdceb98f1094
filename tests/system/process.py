"""A server program under test: start, wait until it is ready, stop, kill."""

import contextlib
import functools
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import jvm
from tests.starts import StartEndedError, StartTimeoutError

START_SECONDS = 300
STOP_SECONDS = 120
POLL_SECONDS = 0.01
GET_ROUTE = 105
FIRST_PORT = 12_000
PORTS = 500
"""How many ports each process of a run chooses from, so that no two take the same.

Those of all are below what Linux gives to connections, which begins at 32,768.
"""
SHARES = 40


class ServerProcess:
    """One server program; its output goes to a log file.

    Args:
        name: the name of the log file in `directory`, and of the program in errors.
        arguments: the command line.
        directory: the working directory.
        environment: added to this process's own.
        shares: share classes with others of its kind, where it is a JVM.
    """

    ended: type[Exception] = RuntimeError
    late: type[Exception] = RuntimeError
    look_s = POLL_SECONDS
    """How often it is asked whether it is ready."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        shares: bool = True,
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._arguments = arguments
        self._shares = shares
        self._directory = directory
        self._environment = {**os.environ, **(environment or {})}
        self._process = self._launched()

    def _launched(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(
                jvm.command(self._arguments, shares=self._shares),
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait_until(
        self, ready: Callable[[], bool], seconds: float = START_SECONDS
    ) -> None:
        """Return when the program is ready.

        A JVM that is to leave an archive of its classes does so at once, and is started
        again: with the archive, as all that come later.

        Raises:
            RuntimeError: it ended, or was not ready in time; with the end of its log.
        """
        self._wait_until(ready, seconds)
        if jvm.leaves(self._process):
            self.stop()
            # What it has printed is no sign of what comes.
            self.log.unlink()
            self._process = self._launched()
            self._wait_until(ready, seconds)

    def _wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        give_up = time.monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                raise self.ended(f"{self.name} ended as it started:\n{self.tail()}")
            if time.monotonic() > give_up:
                self.kill()
                late = f"{self.name} did not start in {seconds:g} s"
                raise self.late(f"{late}:\n{self.tail()}")
            time.sleep(self.look_s)

    def tail(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """Ask it to end, and see that it does."""
        self._process.send_signal(signal.SIGTERM)
        try:
            jvm.wait(self._process, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.name} did not stop: {self.tail()}") from None

    def kill(self) -> None:
        """End it without warning."""
        self._process.kill()
        jvm.wait(self._process)


class ForeignProcess(ServerProcess):
    """A server program that is not ours; its start may be made again."""

    ended = StartEndedError
    late = StartTimeoutError
    # It takes seconds, and each question takes some of its time.
    look_s = 0.1


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, and no connection is given by chance.

    So a server finds its own free again when it is started a second time. Nobody is
    given one twice: some servers start long after their ports were chosen.
    """
    return [ports_in_a_row(1)[0] for _ in range(count)]


def ports_in_a_row(count: int) -> range:
    """As many free ports, one after the other, as workers of one node take them.

    All others come before one comes again: what it was for has ended, or listens.
    """
    share = _share()
    at, end = share.next_port, share.first_port + PORTS
    for _ in range(2):
        while at + count <= end:
            found = range(at, at + count)
            taken = [port for port in found if not is_free(port)]
            if not taken:
                share.next_port = found.stop
                return found
            at = taken[-1] + 1
        at = share.first_port
    raise RuntimeError(f"of ports {at} to {end - 1}, no {count} in a row are free")


@dataclass
class _Share:
    """The ports of one process."""

    first_port: int
    next_port: int
    held: int
    """The descriptor that keeps others out."""


@functools.cache
def _share() -> _Share:
    """The ports of this process, which no other is given.

    Others are those of this run, of runs beside it, and of one that a test starts. A
    name of a socket that is no file is free again when its process has ended.
    """
    for number in range(SHARES):
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f"\0ropeway-ports-{number}")
        except OSError:
            held.close()
            continue
        # A descriptor, not an object, which would warn as the process ends.
        first = FIRST_PORT + PORTS * number
        return _Share(first, random.randrange(first, first + PORTS), held.detach())
    raise RuntimeError(f"{SHARES} processes share the ports of tests already")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing meanwhile, and does not know; connections stay."""
    os.kill(pid, signal.SIGSTOP)
    try:
        # Its threads go on until each has seen the signal.
        give_up = time.monotonic() + STOP_SECONDS
        while _moves(pid):
            assert time.monotonic() < give_up, f"process {pid} does not stop"
            time.sleep(POLL_SECONDS)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _moves(pid: int) -> bool:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # The state follows the name, which may hold anything.
        with contextlib.suppress(OSError):
            if (thread / "stat").read_text().rpartition(") ")[2][0] not in "TtZX":
                return True
    return False


def is_free(port: int) -> bool:
    """Whether nobody listens on a port of 127.0.0.1."""
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    """Whether somebody accepts connections on a port of 127.0.0.1."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def route_code(port: int, topic: str) -> int | None:
    """The response code of a name server for a topic; None where it does not answer."""
    header = json.dumps(
        {
            "code": GET_ROUTE,
            "flag": 0,
            "language": "JAVA",
            "opaque": 1,
            "version": 0,
            "extFields": {"topic": topic},
        }
    ).encode()
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(
                struct.pack(">II", 4 + len(header), len(header)) + header
            )
            reader = connection.makefile("rb")
            _, header_bytes = struct.unpack(">II", reader.read(8))
            return json.loads(reader.read(header_bytes & 0xFFFFFF))["code"]
    except (OSError, struct.error, ValueError):
        return None
