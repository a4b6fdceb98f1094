"""A Pulsar cluster of several processes: three bookies, two brokers, and a proxy."""

import itertools
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.starts import StartError, started_again
from tests.system.process import ForeignProcess, free_ports, listens
from tests.system.pulsar import (
    DEFAULTS,
    JAVA,
    LOG4J,
    START_SECONDS,
    distribution,
)

VERSION = "4.0.8"
NAME = "pair"
HOSTS = ("127.0.0.1", "localhost")
"""What the brokers call their machine: two machines, to whoever compares names."""
SESSION_MS = 10_000
"""A dead broker's topics are another's after so long; by default after 30 s."""
PAUSE_S = 0.2
BUNDLES = 4
BOOKIES = 3
COPIES = 2
"""An entry is on so many bookies before it is acknowledged. One more than these may be
lost: where fewer are left, Pulsar takes no sends."""
BOOKIE_S = 10
"""A bookie that stands still is given up after so long; by default after 30 s."""
BALANCER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""As brokers have it by default."""
SMALL = ["-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class Way(NamedTuple):
    """How a gateway reaches the cluster."""

    service_url: str
    admin_url: str


class Server:
    """One Java process that a test may kill and start again.

    Args:
        directory: for settings and the log.
        main: the class to run.
        option: what comes before the settings file on its command line.
        settings: the content of that file.
        port: where it listens when it is ready.
        heap_mib: of Java, and as much outside.
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
    ) -> None:
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

    def launch(self) -> None:
        """Start it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        conf = self._directory / "server.conf"
        conf.write_text("".join(f"{k}={v}\n" for k, v in self._settings.items()))
        self._process = ForeignProcess(
            self._directory.name,
            [
                *_java(self._directory, *self._memory),
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
            "brokerServicePort": str(service),
            "webServicePort": str(web),
        }
        super().__init__(
            directory,
            "org.apache.pulsar.PulsarBrokerStarter",
            "--broker-conf",
            {**settings, **own},
            port=web,
            heap_mib=256,
        )


class PulsarCluster:
    """Two brokers, of which each serves some topics, three bookies, and a proxy.

    Args:
        directory: for data, settings and logs.
        zookeeper: where the cluster's metadata is, `host:port`.
        balancer: the class that decides which broker serves what.
    """

    def __init__(
        self, directory: Path, zookeeper: str, *, balancer: str = BALANCER
    ) -> None:
        self._directory = directory
        self._metadata_url = f"zk:{zookeeper}"
        service, web = free_ports(2)
        settings = {
            **DEFAULTS,
            "clusterName": NAME,
            "metadataStoreUrl": self._metadata_url,
            "configurationMetadataStoreUrl": self._metadata_url,
            "metadataStoreSessionTimeoutMillis": str(SESSION_MS),
            "loadBalancerEnabled": "true",
            "loadManagerClassName": balancer,
            "defaultNumberOfNamespaceBundles": str(BUNDLES),
            "managedLedgerCacheSizeMB": "32",
            "managedLedgerDefaultEnsembleSize": str(COPIES),
            "managedLedgerDefaultWriteQuorum": str(COPIES),
            "managedLedgerDefaultAckQuorum": str(COPIES),
            "bookkeeperClientTimeoutInSeconds": str(BOOKIE_S),
            # As by default: here others are left when one is left out.
            "bookkeeperClientHealthCheckEnabled": "true",
        }
        self.bookies = [
            Bookie(directory / f"bookie-{number}", settings)
            for number in range(BOOKIES)
        ]
        self.brokers = [
            Broker(directory / f"broker-{number}", host, settings)
            for number, host in enumerate(HOSTS)
        ]
        self.proxy = Server(
            directory / "proxy",
            "org.apache.pulsar.proxy.server.ProxyServiceStarter",
            "--config",
            {
                **settings,
                "servicePort": str(service),
                "webServicePort": str(web),
                # By default those of brokers that listen where brokers do.
                "brokerProxyAllowedTargetPorts": "*",
            },
            port=web,
            heap_mib=128,
        )
        self._servers: list[Server] = [*self.bookies, *self.brokers, self.proxy]
        self.through_proxy = Way(
            f"pulsar://127.0.0.1:{service}", f"http://127.0.0.1:{web}"
        )

    @property
    def to_brokers(self) -> Way:
        """The way to whichever broker answers."""
        return Way(
            "pulsar://" + ",".join(one.address for one in self.brokers),
            "http://" + ",".join(one.name for one in self.brokers),
        )

    @started_again
    def start(self) -> None:
        """Start what does not run, and return when topics can be made."""
        if not (self._directory / "set-up").exists():
            self._set_up()
        servers = [one for one in self._servers if not one.running]
        for one in servers:
            one.launch()
        for one in servers:
            one.wait()

    def kill(self) -> None:
        """End all without warning."""
        for one in reversed(self._servers):
            one.kill()

    def owner(self, topic: str) -> Broker:
        """Which broker serves `tenant/namespace/topic`, a partition by itself."""
        found = self._ask("GET", f"lookup/v2/topic/persistent/{topic}")["brokerUrl"]
        return next(one for one in self.brokers if found == f"pulsar://{one.address}")

    def bookies_of(self, topic: str) -> list[Bookie]:
        """Which bookies have what is written to a topic now, a partition by itself."""
        path = f"admin/v2/persistent/{topic}/internalStats?metadata=true"
        give_up = time.monotonic() + START_SECONDS
        # What ZooKeeper did not tell in time is left out of the answer.
        while not (ledger := self._ask("GET", path)["ledgers"][-1].get("metadata")):
            assert time.monotonic() < give_up, f"{topic}: nobody knows its ledger"
            time.sleep(PAUSE_S)
        *_, ensemble = re.findall(r"\d+=\[([^]]*)\]", ledger)
        names = ensemble.split(", ")
        return [one for one in self.bookies if one.name in names]

    def bundle(self, topic: str) -> str:
        """The part of its namespace that a topic is in, which moves as a whole."""
        return str(self._ask("GET", f"lookup/v2/topic/persistent/{topic}/bundle"))

    def bundles(self, namespace: str) -> list[str]:
        """All parts of a namespace."""
        ends = self._ask("GET", f"admin/v2/namespaces/{namespace}/bundles")
        return [f"{a}_{b}" for a, b in itertools.pairwise(ends["boundaries"])]

    def move(self, namespace: str, bundle: str, to: Broker) -> None:
        """Have a broker serve what is in a bundle."""
        where = f"?destinationBroker={to.name}"
        self._ask("PUT", f"admin/v2/namespaces/{namespace}/{bundle}/unload{where}")

    def unload(self, namespace: str) -> None:
        """Have all topics of a namespace opened anew, without anything in memory."""
        self._ask("PUT", f"admin/v2/namespaces/{namespace}/unload", patient=True)

    def split(self, namespace: str, bundle: str) -> None:
        """Make two of a bundle, and have its topics served anew."""
        path = f"admin/v2/namespaces/{namespace}/{bundle}/split?unload=true"
        self._ask("PUT", path)

    def _ask(self, method: str, path: str, *, patient: bool = False) -> Any:
        """What the REST interface answers, whichever broker it has to be asked for.

        Args:
            method: of HTTP.
            path: what follows the host.
            patient: ask again what failed there, as is done with GET.
        """
        request = urllib.request.Request(
            f"{self.through_proxy.admin_url}/{path}", method=method
        )
        patient = patient or method == "GET"
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=START_SECONDS) as reply:
                    text = reply.read().decode()
                break
            except urllib.error.HTTPError as error:
                # What is on its way from broker to broker is nobody's for a moment.
                if error.code < 500 or not patient or time.monotonic() > give_up:
                    raise AssertionError(
                        f"{method} {path}: {error.code} {error.read()[:500]!r}"
                    ) from error
                time.sleep(PAUSE_S)
        return json.loads(text) if text.startswith("{") else text

    def _set_up(self) -> None:
        """Write what brokers and bookies find each other by."""
        self._directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                *_java(self._directory, "-Xmx128m"),
                "org.apache.pulsar.PulsarClusterMetadataSetup",
                *["--cluster", NAME],
                *["--metadata-store", self._metadata_url],
                *["--configuration-metadata-store", self._metadata_url],
                *["--web-service-url", f"http://{self.brokers[0].name}"],
                *["--broker-service-url", f"pulsar://{self.brokers[0].address}"],
            ],
            check=True,
            timeout=START_SECONDS,
            stdout=subprocess.DEVNULL,
        )
        (self._directory / "set-up").touch()


def _java(directory: Path, *options: str) -> list[str]:
    log4j = directory / "log4j2.xml"
    log4j.write_text(LOG4J)
    return [
        *[*JAVA, *SMALL, *options],
        f"-Dlog4j.configurationFile={log4j}",
        *["-cp", distribution(VERSION)],
    ]
