"""A real Apache Pulsar: broker, bookie and metadata store in one process."""

import contextlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import builds
from tests.starts import started_again
from tests.system.process import ForeignProcess, free_ports, listens

HERE = Path(__file__).parent
HOST = "127.0.0.1"
START_SECONDS = 420
"""Pulsar starts in 20 to 40 seconds, and takes minutes on a loaded machine."""
ANSWER_SECONDS = 120
"""An administrator's request to a broker that has no processor for a while."""
READY_SECONDS = 30
"""One that asks whether it is up is asked again."""
CIRCLES = b"was invalidated. state Valid"
CIRCLES_COUNT = 50
"""So many lines with that say of a start that its bookie registers itself for ever."""
LOG_BYTES = 1 << 20
RESTARTS = 10
CLOCKS = "broker-client-s"
"""What Linux keeps of the names of threads of which one looks up each millisecond."""
CLOCKS_SLACK_NS = 20_000_000
VERSION = os.environ.get("ROPEWAY_PULSAR_VERSION", "4.0.8")
"""What tests run on that name no version: 4.0.8, or 4.2.4 for the nightly run."""
ARCHIVE = "org.apache.pulsar:pulsar-server-distribution:{version}:tar.gz:bin"
SMALL = ["-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=768m", "-XX:+UseSerialGC"]
QUICK = ["-XX:TieredStopAtLevel=1"]
"""A server that lives for minutes starts with half of the CPU time: 10 s and not 18."""
DRIVERS = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata"
JAVA = [
    "java",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            *("java.io", "java.lang", "java.nio", "java.util.zip"),
            *("jdk.internal.misc", "jdk.internal.platform", "sun.net"),
        )
    ),
    "--add-opens=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "-XX:+PerfDisableSharedMem",
    "-Djava.net.preferIPv4Stack=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dlog4j2.is.webapp=false",
    "-Djute.maxbuffer=10485760",
    f"-Dbookkeeper.metadata.bookie.drivers={DRIVERS}BookieDriver",
    f"-Dbookkeeper.metadata.client.drivers={DRIVERS}ClientDriver",
]
INTERCEPTORS = [
    f"org.apache.pulsar.common.intercept.Append{what}MetadataInterceptor"
    for what in ("BrokerTimestamp", "Index")
]
DEFAULTS = {
    "clusterName": "standalone",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerCacheSizeMB": "128",
    # As docs/pulsar.md has it: a look at all open topics each 10 ms is a seventh of
    # what a server takes that tests share.
    "managedLedgerCacheEvictionIntervalMs": "1000",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
    "loadBalancerEnabled": "false",
    "webSocketServiceEnabled": "false",
    # The only bookie would be left out for half an hour after a few errors.
    "bookkeeperClientHealthCheckEnabled": "false",
    "numIOThreads": "4",
    "numHttpServerThreads": "8",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "brokerEntryMetadataInterceptors": ",".join(INTERCEPTORS),
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "systemTopicEnabled": "true",
    "topicLevelPoliciesEnabled": "true",
    "maxMessageSize": "5242880",
    # An entry of full size and its headers must fit, or its append never ends.
    "nettyMaxFrameSizeBytes": "5253120",
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "dbStorage_writeCacheMaxSizeMb": "64",
    "dbStorage_readAheadCacheMaxSizeMb": "32",
    "dbStorage_rocksDB_blockCacheSize": "33554432",
    "journalMaxGroupWaitMSec": "1",
    "journalMaxSizeMB": "256",
    "allowLoopback": "true",
    "allowEphemeralPorts": "true",
    "listeningInterface": "lo",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
}
LOG4J = """\
<Configuration status="ERROR">
  <Appenders>
    <Console name="out">
      <PatternLayout pattern="%d{ISO8601} [%t] %-5level %logger{36} - %msg%n"/>
    </Console>
  </Appenders>
  <Loggers><Root level="info"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


def distribution(version: str) -> str:
    """All jars of a server that is released as an archive, as `java -cp` wants them."""
    top = builds.unpacked(ARCHIVE.format(version=version))
    return str(top / f"apache-pulsar-{version}" / "lib" / "*")


def classpath(version: str = VERSION) -> str:
    """All that Pulsar consists of, as `java -cp` wants it."""
    if version.startswith("4.2."):
        return builds.classpath(HERE / "pulsar.xml")
    return distribution(version)


def let_rest(pid: int) -> None:
    """Have the clocks of a broker's own clients look up each 20 ms.

    One does so each millisecond, which is most of what a Pulsar takes that nobody uses:
    1.4 s a minute, and 0.3 with this. Only root may say so of another process:
    elsewhere all stays as it is.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (thread / "comm").read_text().startswith(CLOCKS):
                slack = Path(f"/proc/{thread.name}/timerslack_ns")
                slack.write_text(str(CLOCKS_SLACK_NS))


class Pulsar:
    """One Pulsar process on free ports of 127.0.0.1.

    Args:
        directory: for data, settings and logs; kept over stop and start.
        version: 4.0.8 or 4.2.4; without it, as the environment says.
        journal_sync: acknowledge an entry when the disk has it.
        settings: more lines of the broker's own configuration.
        token: what the admin interface is shown, where `settings` demand one.
        tls: certificate and key of second ports, `tls_service_url` and `tls_admin_url`.
        listener: the name of a listener whose addresses are `localhost`, beside the
            one that is meant where none is named; with `tls`.
        metadata_url: `zk:127.0.0.1:port`; without it, files in `directory`.
        java: heap and collector.
        before: what runs it: the beginning of a command line that ends with its own.
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str = VERSION,
        journal_sync: bool = False,
        settings: Mapping[str, str] | None = None,
        token: str | None = None,
        tls: tuple[Path, Path] | None = None,
        listener: str | None = None,
        metadata_url: str | None = None,
        java: Sequence[str] = (*SMALL, *QUICK),
        before: Sequence[str] = (),
    ) -> None:
        self._before = before
        self._directory = directory
        self._version = version
        self._token = token
        self._metadata_url = metadata_url
        self._java = java
        ports = free_ports(5)
        self._broker_port, self._web_port, self._bookie_port, *secure = ports
        self._tls_port, self._web_tls_port = secure
        self._settings = {
            **DEFAULTS,
            "brokerServicePort": str(self._broker_port),
            "webServicePort": str(self._web_port),
            "journalSyncData": str(journal_sync).lower(),
            **(settings or {}),
        }
        if tls is not None:
            self._settings |= {
                "brokerServicePortTls": str(self._tls_port),
                "webServicePortTls": str(self._web_tls_port),
                "tlsCertificateFilePath": str(tls[0]),
                "tlsKeyFilePath": str(tls[1]),
            }
        if listener is not None:
            self._settings |= {
                "internalListenerName": "internal",
                "advertisedListeners": ",".join(
                    f"{name}:pulsar://{host}:{self._broker_port},"
                    f"{name}:pulsar+ssl://{host}:{self._tls_port}"
                    for name, host in (("internal", HOST), (listener, "localhost"))
                ),
            }
        self._process: ForeignProcess | None = None

    @property
    def service_url(self) -> str:
        """Where clients connect."""
        return f"pulsar://127.0.0.1:{self._broker_port}"

    @property
    def tls_service_url(self) -> str:
        """Where clients that speak TLS connect."""
        return f"pulsar+ssl://127.0.0.1:{self._tls_port}"

    @property
    def admin_url(self) -> str:
        """The REST interface."""
        return f"http://127.0.0.1:{self._web_port}"

    @property
    def tls_admin_url(self) -> str:
        """The REST interface with TLS."""
        return f"https://127.0.0.1:{self._web_tls_port}"

    @property
    def broker_port(self) -> int:
        """The port of `service_url`."""
        return self._broker_port

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def classpath(self) -> str:
        """All that Pulsar consists of, as `java -cp` wants it."""
        return classpath(self._version)

    @started_again
    def start(self) -> None:
        """Start it, and return when topics can be made.

        After a kill, its bookie deletes its registration and registers anew. Where it
        is told of the first only after the second, it takes that for lost, deletes it
        and registers anew, and so on for ever, which takes a processor and a megabyte
        of log a second: one of two to six does. Such a one is started again.
        """
        for _ in range(RESTARTS):
            process = self._launched()
            process.wait_until(self._ready_or_circling, START_SECONDS)
            if not self._circles():
                break
            self.kill()
        else:
            process = self._launched()
            process.wait_until(self._ready, START_SECONDS)
        # What is measured elsewhere is left as it comes.
        if set(QUICK) <= set(self._java):
            let_rest(process.pid)

    def _launched(self) -> ForeignProcess:
        self._directory.mkdir(parents=True, exist_ok=True)
        conf = self._directory / "standalone.conf"
        conf.write_text("".join(f"{k}={v}\n" for k, v in self._settings.items()))
        log4j = self._directory / "log4j2.xml"
        log4j.write_text(LOG4J)
        data = self._directory / "data"
        # Its own ZooKeeper would listen on all addresses, whatever it is told.
        metadata = ["--metadata-dir", str(data / "metadata")]
        if self._metadata_url is not None:
            metadata = ["--metadata-url", self._metadata_url]
        self._log = self._directory / "pulsar.log"
        self._log_began = self._log.stat().st_size if self._log.exists() else 0
        self._process = ForeignProcess(
            "pulsar",
            [
                *self._before,
                *JAVA,
                *self._java,
                f"-Dlog4j.configurationFile={log4j}",
                *["-cp", self.classpath],
                "org.apache.pulsar.PulsarStandaloneStarter",
                *["--config", str(conf), "-nfw", "-nss", "-a", "127.0.0.1"],
                *["--bookkeeper-port", str(self._bookie_port)],
                *["--bookkeeper-dir", str(data / "bookkeeper")],
                *metadata,
            ],
            self._directory,
            # One that a run starts once would leave an archive for nobody.
            shares=self._version == VERSION,
        )
        return self._process

    def _circles(self) -> bool:
        with self._log.open("rb") as lines:
            lines.seek(self._log_began)
            return lines.read(LOG_BYTES).count(CIRCLES) > CIRCLES_COUNT

    def _ready_or_circling(self) -> bool:
        return self._circles() or self._ready()

    def stop(self) -> None:
        """Stop it in order."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End it without warning."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def admin(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> Any:
        """What the REST interface answers to one request; None for no content.

        Args:
            method: of HTTP.
            path: what follows `/admin/v2/`.
            body: sent as JSON.
            seconds: the longest to wait for an answer.
        """
        request = urllib.request.Request(
            f"{self.admin_url}/admin/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        with urllib.request.urlopen(request, timeout=seconds) as reply:
            text = reply.read()
        return json.loads(text) if text[:1] in {b"{", b"["} else text.decode() or None

    def make_namespace(self, namespace: str, *, deduplication: bool = True) -> None:
        """Make a namespace that keeps every message."""
        self.admin("PUT", f"namespaces/{namespace}")
        keep = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        self.admin("POST", f"namespaces/{namespace}/retention", keep)
        self.admin("POST", f"namespaces/{namespace}/deduplication", deduplication)

    def _ready(self) -> bool:
        if not listens(self._web_port):
            return False
        try:
            for path in ("brokers/health", "namespaces/public/default"):
                self.admin("GET", path, seconds=READY_SECONDS)
        except OSError:  # as urllib's errors are
            return False
        return True
