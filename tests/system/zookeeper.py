"""A real ZooKeeper 3.9.5: one server, or an ensemble of three."""

import contextlib
import socket
from contextlib import AbstractContextManager
from pathlib import Path

from tests import builds
from tests.starts import StartError, started_again
from tests.system.process import ForeignProcess, free_ports, stopped

HERE = Path(__file__).parent
JAVA = [
    "java",
    *["-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.forceSync=no",
    # Its own report on how it starts is longer than all that is ever of interest.
    "-Dlogback.statusListenerClass=ch.qos.logback.core.status.NopStatusListener",
]
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
TICK_MS = 500
"""A quarter of ZooKeeper's own, so that sessions may be short in tests."""
CONF = """\
tickTime={tick_ms}
initLimit=20
syncLimit=10
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=srvr
maxClientCnxns=0
minSessionTimeout=1000
maxSessionTimeout=30000
preAllocSize=4096
{settings}
"""
LOGBACK = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5level %logger{20} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""


class ZooKeeper:
    """One server on 127.0.0.1; what it stored is kept over stop and start.

    Args:
        directory: for data, settings and the log.
        port: where clients connect.
        number: which server of an ensemble it is, from 1; 0 where it is alone.
        settings: more lines of its configuration.
    """

    name = "ZooKeeper 3.9.5"

    def __init__(
        self, directory: Path, port: int = 0, number: int = 0, settings: str = ""
    ) -> None:
        self._directory = directory
        self._number = number
        self._settings = settings
        self.port = port or free_ports(1)[0]
        self._process: ForeignProcess | None = None

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def mode(self) -> str | None:
        """What it says it is: standalone, leader, follower; None where it is not up."""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), 2) as connection,
        ):
            connection.sendall(b"srvr")
            answer = connection.makefile("r", encoding="utf-8").read()
            for line in answer.splitlines():
                if line.startswith("Mode: "):
                    return line.removeprefix("Mode: ")
        return None

    @property
    def running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._process is not None

    def launch(self) -> None:
        """Start it; an ensemble answers when the most of it was started."""
        self._directory.mkdir(parents=True, exist_ok=True)
        conf = self._directory / "zoo.cfg"
        conf.write_text(
            CONF.format(
                tick_ms=TICK_MS,
                directory=self._directory,
                port=self.port,
                settings=self._settings,
            )
        )
        (self._directory / "myid").write_text(str(self._number))
        logback = self._directory / "logback.xml"
        logback.write_text(LOGBACK)
        jars = builds.classpath(HERE / "zookeeper.xml")
        self._process = ForeignProcess(
            f"zookeeper{self._number}",
            [
                *JAVA,
                f"-Dlogback.configurationFile={logback}",
                *["-cp", jars, MAIN, str(conf)],
            ],
            self._directory,
        )

    def wait(self) -> None:
        """Return when it answers clients."""
        assert self._process is not None
        try:
            self._process.wait_until(lambda: self.mode is not None)
        except StartError:
            self._process = None
            raise

    @started_again
    def start(self) -> None:
        """Start it, and return when it answers clients."""
        self.launch()
        self.wait()

    def stop(self) -> None:
        """Stop it, where it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            process.stop()

    def kill(self) -> None:
        """End it without warning, where it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()

    def paused(self) -> AbstractContextManager[None]:
        """Not a step, and not a word; connections stay open."""
        assert self._process is not None
        return stopped(self._process.pid)


class Ensemble:
    """Three servers, of which two suffice."""

    name = "ZooKeeper 3.9.5, three servers"

    def __init__(self, directory: Path) -> None:
        ports = free_ports(9)
        members = "\n".join(
            f"server.{number}=127.0.0.1:{peers}:{election}"
            for number, peers, election in zip(
                (1, 2, 3), ports[3:6], ports[6:], strict=True
            )
        )
        self.servers = [
            ZooKeeper(directory / str(number), ports[number - 1], number, members)
            for number in (1, 2, 3)
        ]

    @property
    def address(self) -> str:
        """Where clients connect."""
        return ",".join(one.address for one in self.servers)

    @property
    def leader(self) -> ZooKeeper:
        """The server that orders changes.

        Raises:
            StopIteration: There is none now.
        """
        return next(one for one in self.servers if one.mode == "leader")

    @started_again
    def start(self) -> None:
        """Start those that do not run, and return when all answer clients."""
        for one in self.servers:
            if not one.running:
                one.launch()
        for one in self.servers:
            one.wait()

    def kill(self) -> None:
        """End all without warning."""
        for one in self.servers:
            one.kill()
