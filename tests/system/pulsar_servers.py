"""The processes of a Pulsar cluster, each of which may be killed and started again."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.starts import StartError
from tests.system.process import ForeignProcess, free_ports, listens
from tests.system.pulsar import (
    JAVA,
    LOG4J,
    START_SECONDS,
    VERSION,
    classpath,
    let_rest,
)

SMALL = ["-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class Server:
    """One Java process that a test may kill and start again.

    Args:
        directory: for settings and the log.
        main: the class to run.
        option: what comes before the settings file on its command line.
        settings: the content of that file.
        port: where it listens when it is ready.
        heap_mib: of Java, and as much outside.
        version: of Pulsar.
    """

    def __init__(
        self,
        directory: Path,
        main: str,
        option: str,
        settings: Mapping[str, str],
        *,
        port: int,
        heap_mib: int,
        version: str = VERSION,
    ) -> None:
        self._version = version
        self._directory = directory
        self._main = main
        self._option = option
        self._settings = settings
        self._port = port
        self._memory = [f"-Xmx{heap_mib}m", f"-XX:MaxDirectMemorySize={heap_mib}m"]
        self._process: ForeignProcess | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._process is not None

    def start(self) -> None:
        """Start it, and return when it listens."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        conf = self._directory / "server.conf"
        conf.write_text("".join(f"{k}={v}\n" for k, v in self._settings.items()))
        self._process = ForeignProcess(
            self._directory.name,
            [
                *java(self._directory, self._version, *self._memory),
                *[self._main, self._option, str(conf)],
            ],
            self._directory,
        )

    def wait(self) -> None:
        """Return when it listens."""
        assert self._process is not None
        try:
            self._process.wait_until(lambda: listens(self._port), START_SECONDS)
        except StartError:
            self._process = None
            raise
        let_rest(self._process.pid)

    def kill(self) -> None:
        """End it without warning, where it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()


class Bookie(Server):
    """A bookie; its name is what ledgers call it.

    Args:
        directory: for data, settings and the log.
        settings: of the cluster.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        (port,) = free_ports(1)
        self.name = f"127.0.0.1:{port}"
        metadata = settings["metadataStoreUrl"]
        own = {
            "bookiePort": str(port),
            "metadataServiceUri": f"metadata-store:{metadata}",
            "journalDirectories": str(directory / "journal"),
            "ledgerDirectories": str(directory / "ledgers"),
            "journalSyncData": "false",
            "dbStorage_writeCacheMaxSizeMb": "16",
            "dbStorage_readAheadCacheMaxSizeMb": "8",
            "dbStorage_rocksDB_blockCacheSize": "8388608",
        }
        super().__init__(
            directory,
            "org.apache.bookkeeper.server.Main",
            "--conf",
            {**settings, **own},
            port=port,
            heap_mib=96,
        )


class Broker(Server):
    """A broker; its name is what brokers call each other.

    Args:
        directory: for settings and the log.
        host: what it calls its machine.
        settings: of the cluster.
    """

    def __init__(self, directory: Path, host: str, settings: Mapping[str, str]) -> None:
        service, web = free_ports(2)
        self.host = host
        self.name = f"{host}:{web}"
        self.address = f"{host}:{service}"
        own = {
            "advertisedAddress": host,
            **ports("brokerService", service),
            **ports("webService", web),
        }
        super().__init__(
            directory,
            "org.apache.pulsar.PulsarBrokerStarter",
            "--broker-conf",
            {**settings, **own},
            port=web,
            heap_mib=256,
        )


def written_to(bookies: Sequence[Bookie], stats: dict[str, Any]) -> list[Bookie]:
    """Which bookies a topic is written to now; none where nobody says.

    Args:
        bookies: Those to choose from.
        stats: The topic's internal statistics, with its ledgers' metadata. What
            ZooKeeper did not tell in time is left out of them.
    """
    metadata = stats["ledgers"][-1].get("metadata") or ""
    *_, ensemble = ["", *re.findall(r"\d+=\[([^]]*)\]", metadata)]
    return [one for one in bookies if one.name in ensemble.split(", ")]


def ports(name: str, port: int) -> dict[str, str]:
    """Listen with TLS, and without it nowhere."""
    return {f"{name}Port": "", f"{name}PortTls": str(port)}


def java(directory: Path, version: str, *options: str) -> list[str]:
    """The command line of a Java program of Pulsar, up to the name of its class."""
    log4j = directory / "log4j2.xml"
    log4j.write_text(LOG4J)
    return [
        *[*JAVA, *SMALL, *options],
        f"-Dlog4j.configurationFile={log4j}",
        *["-cp", classpath(version)],
    ]
