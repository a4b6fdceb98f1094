"""Ropeway as its users start it: `serve` in a process of its own."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.system.process import ServerProcess, ports_in_a_row

ROOT = Path(__file__).parents[2]


PATIENT = """\
[limits]
# A busy machine's disk may stand still for longer than a producer would wait.
send_wait_ms = 60_000
"""


def transactions(check_ms: int) -> str:
    """Settings with which producers are asked so often how transactions ended."""
    return (
        f"[transactions]\ntimeout_ms = {check_ms}\ncheck_interval_ms = {check_ms}\n"
        "check_max = 1000\n"
    )


def _workers(options: Sequence[str]) -> int:
    """How many processes a command line has listen, each on the next port."""
    return int(options[options.index("--workers") + 1]) if "--workers" in options else 1


class Ropeway:
    """A gateway on its embedded log; one port is name server and broker.

    Args:
        directory: for data, settings and logs; kept over stop and start.
        sync_flush: acknowledge a message when the disk has it.
        auto_create: make a topic when somebody sends to it.
        tls: certificate and key for clients that speak TLS.
        check_ms: when producers are asked how transactions ended, and how often.
        options: more of the command line of `serve`.
        python: what runs it, and under what.
        host: the address it listens on; IPv6 in brackets.
        machine: what it tells others that its machine is called; else `host`.
        environment: added to this process's own.
        port: where it listens; any that is free.
    """

    name = "Ropeway"

    def __init__(
        self,
        directory: Path,
        *,
        sync_flush: bool = False,
        auto_create: bool = True,
        tls: tuple[Path, Path] | None = None,
        check_ms: int | None = None,
        options: Sequence[str] = (),
        python: Sequence[str] = (sys.executable,),
        host: str = "127.0.0.1",
        machine: str | None = None,
        environment: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self._directory = directory
        self._host = host
        self._machine = host if machine is None else machine
        self._environment = environment or {}
        self.program = ROOT
        """Where the next start finds the package: another version is elsewhere."""
        self._port = ports_in_a_row(_workers(options))[0] if port is None else port
        self._python = python
        self._options = ["--flush", "sync" if sync_flush else "async", *options]
        if not auto_create:
            self._options += ["--no-auto-create"]
        if tls is not None:
            self._options += ["--tls-cert", str(tls[0]), "--tls-key", str(tls[1])]
        if "--config" not in options:
            directory.mkdir(parents=True, exist_ok=True)
            settings = directory / "ropeway.toml"
            checks = transactions(check_ms) if check_ms is not None else ""
            settings.write_text(PATIENT + checks)
            self._options += ["--config", str(settings)]
        self._process: ServerProcess | None = None

    @property
    def name_server(self) -> str:
        """Where clients ask for routes."""
        return f"{self._host}:{self._port}"

    @property
    def broker_port(self) -> int:
        """Where clients send and pull."""
        return self._port

    @property
    def broker_pid(self) -> int:
        """The process id of the running gateway."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._process is not None

    @property
    def log_files(self) -> Path:
        """The folder of the files with all messages."""
        return self._directory / "data" / "log"

    def start(self) -> None:
        """Start it, on the same port and data as before, and return when it answers."""
        self._directory.mkdir(parents=True, exist_ok=True)
        ready = self._directory / "ready"
        ready.unlink(missing_ok=True)
        self._process = ServerProcess(
            "ropeway",
            [
                *[*self._python, "-m", "ropeway.gateway.cli.main", "serve"],
                *["--listen", f"{self.name_server}={self._machine}:{self._port}"],
                *["--data", str(self._directory / "data")],
                *["--ready-file", str(ready)],
                *self._options,
            ],
            self._directory,
            {"PYTHONPATH": str(self.program), **self._environment},
        )
        self._process.wait_until(ready.exists)

    def stop(self) -> None:
        """Stop it in order."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def kill(self) -> None:
        """End it without warning."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
