"""A gateway to test against: a process of its own, on a free port, on its own log.

With pytest, the fixtures `ropeway_gateway` and `ropeway_topic` are there as soon as
Ropeway is installed (`ropeway.pytest_plugin`); without, use `running_gateway`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

START_TIMEOUT_S = 120.0
"""A machine that is very busy may take half of it; an idle one takes a second."""

STOP_TIMEOUT_S = 60.0
"""Then it is killed: long enough for a disk that stands still."""

_SETTINGS = """\
[limits]
# A busy machine's disk may stand still for longer than a producer would wait.
send_wait_ms = 60_000

[log]
# It is set aside whole; where files lie in memory, 128 MiB take 0.05 s of CPU.
segment_bytes = 8_388_608
"""

_SIGN = "listening on "


class GatewayStartError(Exception):
    """The gateway's process ended or said nothing; has what it printed."""


class Gateway:
    """A gateway process and its data; it keeps both over a restart, and the port.

    Args:
        data: The folder of its log.
        options: Further options of `ropeway serve`. Without a `--config` among them,
            no send is refused because the machine is busy, and segments of the log
            are of 8 MiB.
        topics: Topics that are created before clients can come: `NAME` or
            `NAME:QUEUES` each.
    """

    def __init__(
        self, data: Path, options: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> None:
        self._data = data
        self._options = (*options, *(f"--topic={topic}" for topic in topics))
        self._settings = data.with_name(f"{data.name}.toml")
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self._printed = data.with_name(f"{data.name}.stderr")

    @property
    def address(self) -> str:
        """Where brokers and name servers are asked: `127.0.0.1:port`."""
        return f"127.0.0.1:{self._port}"

    @property
    def name_server(self) -> str:
        """What a client is given as its name server."""
        return self.address

    @property
    def pid(self) -> int | None:
        """The process; None where it is stopped."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process, and return when it listens.

        Raises:
            GatewayStartError: It ended, or did not listen in time.
        """
        assert self._process is None, "the gateway runs already"
        if not self._port:
            self._hold_port()
        command = [sys.executable, "-m", "ropeway.gateway.cli.main", "serve"]
        command += ["--data", str(self._data), "--listen", self.address]
        if "--config" not in self._options:
            self._settings.write_text(_SETTINGS, encoding="ascii")
            command += ["--config", str(self._settings)]
        # Tests run from any folder; what this process can import, that one can too.
        paths = os.pathsep.join(path for path in sys.path if path)
        with self._printed.open("a", encoding="utf-8") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*command, *self._options],
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env={**os.environ, "PYTHONPATH": paths},
            )
        try:
            self._port = self._wait_for_port(self._process)
        except BaseException:
            self.kill()
            raise

    def _hold_port(self) -> None:
        """Choose a port that nobody else is given as long as this object is there.

        While the gateway is stopped, a connection of any program could have it, even
        that of a client which tries to reach the gateway. Linux gives none a port that
        is bound, and lets another listen there where both say so.
        """
        if sys.platform != "linux":
            return
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        self._port = held.getsockname()[1]
        weakref.finalize(self, os.close, held.detach())

    def _wait_for_port(self, process: subprocess.Popen[str]) -> int:
        assert process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                line = process.stdout.readline()
                if not line:
                    break
                if _SIGN in line:
                    address = line.split(_SIGN, 1)[1].split()[0]
                    return int(address.rpartition(":")[2])
        errors = self._printed.read_text("utf-8")[-4000:]
        raise GatewayStartError(f"the gateway did not start:\n{errors}")

    def stop(self) -> None:
        """Let the process end in good order; nothing happens where it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop, and start again on the same port and data."""
        self.stop()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def running_gateway(
    data: Path | None = None,
    options: Sequence[str] = (),
    topics: Sequence[str] = (),
) -> Iterator[Gateway]:
    """Run a gateway as long as the block lasts.

    Args:
        data: The folder of its log; by default one that is deleted afterwards.
        options: Further options of `ropeway serve`.
        topics: Topics that are created before clients can come: `NAME` or
            `NAME:QUEUES` each.

    Raises:
        GatewayStartError: It did not start.
    """
    with contextlib.ExitStack() as stack:
        if data is None:
            folder = tempfile.TemporaryDirectory(
                prefix="ropeway-", ignore_cleanup_errors=True
            )
            data = Path(stack.enter_context(folder)) / "data"
        gateway = Gateway(data, options, topics)
        stack.callback(gateway.stop)
        gateway.start()
        yield gateway
